import { expect, test } from 'bun:test'
import { Round } from './round.ts'

test('rows that stay in the list do not keep the others from their turn', async () => {
  let list = [1, 2, 3, 4, 5, 6]
  const round = new Round<number>()
  const next = () => round.next(2, async (after) => list.filter((row) => row > (after ?? 0)).slice(0, 2))
  expect(await next()).toEqual([1, 2])
  list = [1, 2, 4, 5, 6]
  expect(await next()).toEqual([4, 5])
  expect(await next()).toEqual([6])
  expect(await next()).toEqual([1, 2])
  list = [1, 2]
  expect(await next()).toEqual([1, 2])
  list = []
  expect(await next()).toEqual([])
})
