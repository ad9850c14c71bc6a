import { expect, test } from 'bun:test'
import { codesToCreate } from './invite-accrual.ts'

const base = { now: 1000, createdAt: 0, epochAt: 0, intervalMillis: 100, madeSinceEpoch: 0, unused: 0 }

test('one code for every whole interval, and never more than five unused', () => {
  expect(codesToCreate({ ...base, now: 99 })).toBe(0)
  expect(codesToCreate({ ...base, now: 199 })).toBe(1)
  expect(codesToCreate(base)).toBe(5)
  expect(codesToCreate({ ...base, unused: 3 })).toBe(2)
  expect(codesToCreate({ ...base, unused: 7 })).toBe(0)
})

test('codes already made count, and nothing is owed back', () => {
  expect(codesToCreate({ ...base, madeSinceEpoch: 8 })).toBe(2)
  expect(codesToCreate({ ...base, madeSinceEpoch: 12 })).toBe(0)
})

test('time before the epoch earns nothing', () => {
  expect(codesToCreate({ ...base, epochAt: 750 })).toBe(3)
  expect(codesToCreate({ ...base, createdAt: 800, epochAt: 750 })).toBe(2)
})
