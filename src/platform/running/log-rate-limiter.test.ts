import { expect, test } from 'bun:test'
import { LogRateLimiter } from './log-rate-limiter.ts'

test('a key has a share of what all have, and what was left out is told with the next line', () => {
  let now = 0
  const budget = new LogRateLimiter({ monotonic: () => now })
  const taken = (key: string, times: number) => {
    const lines: (number | null)[] = []
    for (let i = 0; i < times; i++) budget.within(key, (omitted) => lines.push(omitted))
    return lines
  }
  expect(taken('a', 1000)).toEqual(Array(10).fill(null))
  expect(taken('b', 1)).toEqual([990])
  for (let i = 0; i < 100_000; i++) budget.within(`flood-${i}`, () => undefined)
  expect(taken('c', 1)).toEqual([])
  now = 60_000
  expect(taken('a', 2)).toEqual([100_000 - 49 + 1, null])
})
