import { expect, test } from 'bun:test'
import type { Config } from '../configuration/config.ts'
import { Limits } from './limits.ts'

const MINUTES_5 = 300_000

function limitsAt(rateLimit: Record<string, number> = {}) {
  const clock = { millis: 0, monotonic: () => clock.millis }
  const config = {
    rateLimit: {
      enabled: true,
      globalIpPer5min: 2,
      createSessionPer5min: 1,
      writePointsHourly: 3,
      writePointsDaily: 4,
      ...rateLimit,
    },
  } as unknown as Config
  return { clock, limits: new Limits(config, clock) }
}

test('a window begins with the first request and is not moved by later or refused ones', () => {
  const { clock, limits } = limitsAt()
  const charge = () => limits.charge({ name: 'globalIp', key: 'a' })
  expect(charge()).toMatchObject({ allowed: true, remaining: 1, resetMillis: MINUTES_5 })
  clock.millis = MINUTES_5 - 1
  expect(charge()).toMatchObject({ allowed: true, remaining: 0, resetMillis: 1 })
  expect(charge()).toMatchObject({ allowed: false, remaining: 0, resetMillis: 1 })
  clock.millis = MINUTES_5
  expect(charge()).toMatchObject({ allowed: true, remaining: 1, resetMillis: MINUTES_5 })
})

test('of several limiters all take their points or none', () => {
  const { limits } = limitsAt()
  const both = () => limits.charge({ name: 'createSession', key: 'a' }, { name: 'globalIp', key: 'a' })
  expect(both()).toMatchObject({ allowed: true, name: 'createSession', remaining: 0 })
  expect(both()).toMatchObject({ allowed: false, name: 'createSession' })
  expect(limits.charge({ name: 'globalIp', key: 'a' })).toMatchObject({ allowed: true, remaining: 0 })
})

test('what costs more than is left is refused, what costs less is not', () => {
  const { limits } = limitsAt()
  const write = (cost: number) => limits.charge({ name: 'repoWrite', key: 'did', cost })
  expect(write(2)).toMatchObject({ allowed: true, limit: 3, remaining: 1 })
  expect(write(2)).toMatchObject({ allowed: false, limit: 3, remaining: 1 })
  expect(write(1)).toMatchObject({ allowed: true, remaining: 0 })
})

test('0 points switch a limiter off', () => {
  const { limits } = limitsAt({ globalIpPer5min: 0 })
  expect(limits.charge({ name: 'globalIp', key: 'a', cost: 1000 })).toBeNull()
})

test('keys that nothing is counted for any more are forgotten, and there is a bound to the rest', () => {
  const { clock, limits } = limitsAt()
  for (let i = 0; i < 100_001; i++) limits.charge({ name: 'globalIp', key: `10.${i}` })
  expect(limits.size).toBeLessThanOrEqual(100_000)
  for (const minutes of [5, 10]) {
    clock.millis = minutes * 60_000
    limits.charge({ name: 'globalIp', key: 'later' })
  }
  expect(limits.size).toBe(2)
})
