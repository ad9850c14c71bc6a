import { describe, expect, test } from 'bun:test'
import { aheadBy, clockError, clockOffset, errorSince } from './node-clocks.ts'

const HOUR = 3_600_000

describe('a clock is ahead by no more than an answer proves', () => {
  test('of a quick answer, by the difference', () => {
    expect(aheadBy({ at: 1000, askedAt: 1000 + HOUR, answeredAt: 1002 + HOUR })).toBe(HOUR)
    expect(aheadBy({ at: HOUR, askedAt: 0, answeredAt: 2 })).toBe(2 - HOUR)
  })

  test('of an answer that took hours, by nothing', () => {
    expect(aheadBy({ at: 1000, askedAt: 990, answeredAt: 1000 + 5 * HOUR })).toBe(0)
    expect(aheadBy({ at: 1000 + 5 * HOUR, askedAt: 1000, answeredAt: 1001 + 5 * HOUR })).toBe(0)
  })
})

describe('a clock that is right differs from the one in the middle', () => {
  test.each([
    ['one that is a minute ahead of PostgreSQL and one node', 60_000, [3], 59_997],
    ['one that is a minute behind', -60_000, [0, 0], -60_000],
    ['one that agrees with the other node, and not with PostgreSQL', 60_000, [60_010], 0],
    ['one that agrees with PostgreSQL alone', 0, [60_000, 60_000], -60_000],
    ['one of three that all differ', 60_000, [20_000], 40_000],
    ['one alone with PostgreSQL', 60_000, [], 0],
    ['one that is wrong', 6 * HOUR, [0, 0], 0],
  ] as const)('%s', (_, own, others, offset) => {
    expect(clockOffset(own, others, 0)).toBe(offset)
  })

  test('by the same as before, however long the answer took', () => {
    expect(clockOffset(60_030, [0, 0], 60_000)).toBe(60_000)
    expect(clockOffset(30, [0, 0], 0)).toBe(0)
    expect(clockOffset(30_000, [0, 0], 60_000)).toBe(30_000)
  })

  test('still, once the others have left; not after the clock was set', () => {
    expect(clockOffset(60_030, [], 60_000)).toBe(60_000)
    expect(clockOffset(10, [], 60_000)).toBe(0)
  })
})

describe('a clock is wrong by what most others say', () => {
  test.each([
    ['a node whose clock is right', 0, [0, 6 * HOUR], 0],
    ['one that is hours ahead of PostgreSQL and one node', 6 * HOUR, [3], 6 * HOUR - 3],
    ['one that is hours behind', -6 * HOUR, [0, 20], -6 * HOUR],
    ['one that agrees with the other node, and not with PostgreSQL', 6 * HOUR, [6 * HOUR + 5], 0],
    ['one that agrees with PostgreSQL alone', 0, [6 * HOUR, 6 * HOUR], 0],
    ['one alone with PostgreSQL', 6 * HOUR, [], 0],
    ['one of three that all differ', 6 * HOUR, [12 * HOUR], 0],
    ['one of two that are wrong in another way each', 6 * HOUR, [0, -9 * HOUR], 0],
    ['one of two that are wrong, among more that are right', 6 * HOUR, [0, 0, -9 * HOUR], 6 * HOUR],
    ['one that is a minute ahead', 60_000, [0, 0], 0],
  ] as const)('%s', (_, own, others, error) => {
    expect(clockError(own, others, 0)).toBe(error)
  })

  test('by the same as before, however long the answer took', () => {
    expect(clockError(6 * HOUR + 40, [0], 6 * HOUR)).toBe(6 * HOUR)
    expect(clockError(6 * HOUR + 40, [0], 5 * HOUR)).toBe(6 * HOUR + 40)
  })

  test('still, until the clocks differ by less than half of what agrees: one near the limit is not set to and fro', () => {
    expect(clockError(119_000, [0, 0], 121_000)).toBe(119_000)
    expect(clockError(-119_000, [0, 0], -121_000)).toBe(-119_000)
    expect(clockError(59_000, [0, 0], 119_000)).toBe(0)
    expect(clockError(119_000, [0, 0], 0)).toBe(0)
  })

  test('still, once the others have left; not after the clock was set', () => {
    expect(clockError(6 * HOUR, [], 6 * HOUR)).toBe(6 * HOUR)
    expect(clockError(0, [], 6 * HOUR)).toBe(0)
    expect(clockError(3 * HOUR, [], 6 * HOUR)).toBe(0)
  })
})

describe('a clock that was compared', () => {
  const compared = { wall: 20 * HOUR, monotonic: 1000 }

  test('is wrong by the same, as long as nobody sets it', () => {
    expect(errorSince(6 * HOUR, compared, { wall: 20 * HOUR + 3000, monotonic: 4000.4 })).toBe(6 * HOUR)
    expect(errorSince(6 * HOUR, compared, { wall: 20 * HOUR + 3000, monotonic: 3900 })).toBe(6 * HOUR)
  })

  test('is wrong by as much more or less as somebody has set it since', () => {
    expect(errorSince(6 * HOUR, compared, { wall: 14 * HOUR + 3000, monotonic: 4000 })).toBe(0)
    expect(errorSince(-6 * HOUR, compared, { wall: 26 * HOUR + 3000, monotonic: 4000 })).toBe(0)
    expect(errorSince(6 * HOUR, compared, { wall: 21 * HOUR + 3000, monotonic: 4000 })).toBe(7 * HOUR)
  })
})
