import { expect, test } from 'bun:test'
import { Stalled, unstalled } from './unstalled.ts'

const LONG_MILLIS = 10_000

async function* numbers(count: number, ended: () => void) {
  try {
    for (let number = 0; number < count; number++) yield number
  } finally {
    ended()
  }
}

test('what comes in time goes through, and the source ends with its reader', async () => {
  let ends = 0
  expect(
    await Array.fromAsync(
      unstalled(
        numbers(3, () => ends++),
        LONG_MILLIS,
      ),
    ),
  ).toEqual([0, 1, 2])
  for await (const _ of unstalled(
    numbers(3, () => ends++),
    LONG_MILLIS,
  ))
    break
  expect(ends).toBe(2)
})

test('a source that stands still is given up', async () => {
  const seen: number[] = []
  const source = async function* () {
    yield 1
    await new Promise(() => {})
  }
  const read = async () => {
    for await (const number of unstalled(source(), 20)) seen.push(number)
  }
  await expect(read()).rejects.toBeInstanceOf(Stalled)
  expect(seen).toEqual([1])
})

test('a fault of the source is told as it is', async () => {
  const source = async function* () {
    yield 1
    throw new RangeError('broken')
  }
  await expect(Array.fromAsync(unstalled(source(), LONG_MILLIS))).rejects.toThrow('broken')
})
