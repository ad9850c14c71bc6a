import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'bun:test'
import { Stalled, steady, unstalled } from './unstalled.ts'
import { errorOf, thrownBy } from '../../tests/support/thrown.ts'

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
  expect(await errorOf(read())).toBeInstanceOf(Stalled)
  expect(seen).toEqual([1])
})

test('a fault of the source is told as it is', async () => {
  const source = async function* () {
    yield 1
    throw new RangeError('broken')
  }
  expect(await thrownBy(Array.fromAsync(unstalled(source(), LONG_MILLIS)))).toThrow('broken')
})

async function* drops(count: number, bytes: number, restMillis: number) {
  for (let drop = 0; drop < count; drop++) {
    await sleep(restMillis)
    yield new Uint8Array(bytes)
  }
}

test('a source that trickles is given up, one that delivers enough goes through', async () => {
  const pace = { millis: 1000, leastBytes: 1, mostMillis: Infinity }
  expect(await Array.fromAsync(steady(drops(30, 1, 1), pace))).toHaveLength(30)
  // Each wait is shorter than may be, and all together bring too little.
  const slow = { ...pace, millis: 300, leastBytes: 1_000_000 }
  expect(await errorOf(Array.fromAsync(steady(drops(1_000_000, 1, 30), slow)))).toBeInstanceOf(Stalled)
})

test('a source that never ends is given up, however much it delivers', async () => {
  const pace = { millis: 300, leastBytes: 0, mostMillis: 0 }
  expect(await errorOf(Array.fromAsync(steady(drops(1_000_000, 10, 30), pace)))).toBeInstanceOf(Stalled)
})

test('a reader that takes its time is not taken for a slow source', async () => {
  let count = 0
  for await (const _ of steady(drops(5, 1, 0), { millis: 1000, leastBytes: 1_000_000, mostMillis: 0 })) {
    await sleep(250)
    count++
  }
  expect(count).toBe(5)
})
