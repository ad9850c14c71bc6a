import { expect, test } from 'bun:test'
import { parseTid, type Tid } from './identifiers.ts'
import { nextTid, tidMicros } from './tid.ts'

const now = 1_720_000_000_123_456

/** The same number, written by other means. */
function oracle(micros: number, clockId: number): Tid {
  const digits = ((BigInt(micros) << 10n) | BigInt(clockId)).toString(32).padStart(13, '0')
  return digits.replaceAll(/./g, (digit) =>
    '234567abcdefghijklmnopqrstuvwxyz'.charAt(Number.parseInt(digit, 32)),
  ) as Tid
}

test('a TID carries its microseconds and clock id', () => {
  for (const [micros, clockId] of [
    [0, 0],
    [1, 31],
    [now, 1023],
    [2 ** 53 - 1, 7],
  ] as const) {
    const tid = nextTid(null, micros, clockId)
    expect(tid).toBe(oracle(micros, clockId))
    expect(parseTid(tid)).toBe(tid)
    expect(tidMicros(tid)).toBe(micros)
  }
})

test('TIDs grow while the clock stands still, steps back, or changes its id', () => {
  let previous: Tid | null = null
  for (const [micros, clockId] of [
    [now, 9],
    [now, 9],
    [now, 3],
    [now - 5_000_000, 1023],
    [now - 1, 0],
    [now + 1, 0],
    [now + 50, 0],
  ] as const) {
    const tid: Tid = nextTid(previous, micros, clockId)
    if (previous !== null) expect(tid > previous).toBe(true)
    previous = tid
  }
  expect(tidMicros(previous as Tid)).toBe(now + 50)
})

test('TIDs sort as their times do', () => {
  const times = Array.from({ length: 500 }, () => Math.floor(Math.random() * 2 ** 53)).sort((a, b) => a - b)
  const tids = times.map((micros) => nextTid(null, micros, 5))
  expect(tids.toSorted()).toEqual(tids)
})
