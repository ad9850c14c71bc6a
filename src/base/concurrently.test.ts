import { expect, test } from 'bun:test'
import { concurrently } from './concurrently.ts'
import { thrownBy } from '../../tests/support/thrown.ts'

async function* numbers(count: number, failAt = Infinity) {
  for (let i = 0; i < count; i++) {
    if (i === failAt) throw new Error('source')
    yield i
  }
}

test('everything is worked on, and never more than the limit at once', async () => {
  const seen: number[] = []
  let running = 0
  let most = 0
  await concurrently(numbers(20), 3, async (item) => {
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    seen.push(item)
    running--
  })
  expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i))
  expect(most).toBe(3)
})

test('a fault of the source or of the work ends it', async () => {
  const seen: number[] = []
  const see = async (item: number) => void seen.push(item)
  expect(await thrownBy(concurrently(numbers(10, 4), 2, see))).toThrow('source')
  expect(seen).toEqual([0, 1, 2, 3])
  const refuse = async (item: number) => {
    if (item === 2) throw new Error('work')
  }
  expect(await thrownBy(concurrently(numbers(10), 2, refuse))).toThrow('work')
})
