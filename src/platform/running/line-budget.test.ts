import { expect, test } from 'bun:test'
import { LineBudget } from './line-budget.ts'

test('a key has a share of what all have, and what was left out is told with the next line', () => {
  let now = 0
  const budget = new LineBudget({ monotonic: () => now })
  const taken = (key: string, times: number) => Array.from({ length: times }, () => budget.take(key)).filter((omitted) => omitted !== null)
  expect(taken('a', 1000)).toEqual(Array(10).fill(0))
  expect(taken('b', 1)).toEqual([990])
  for (let i = 0; i < 100_000; i++) budget.take(`flood-${i}`)
  expect(taken('c', 1)).toEqual([])
  now = 60_000
  expect(taken('a', 2)).toEqual([100_000 - 49 + 1, 0])
})
