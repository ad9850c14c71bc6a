import { expect, test } from 'bun:test'
import { TokenBucket } from './token-bucket.ts'

test('a bucket gives its burst at once, and then one token at a time', () => {
  const bucket = new TokenBucket(3, 60)
  const taken = (now: number) => Array.from({ length: 5 }, () => bucket.take(now)).filter(Boolean).length
  expect(taken(0)).toBe(3)
  expect(bucket.waitMillis(0)).toBe(60_000)
  expect(bucket.waitMillis(45_000)).toBe(15_000)
  expect(taken(59_000)).toBe(0)
  expect(bucket.waitMillis(60_000)).toBe(0)
  expect(taken(60_000)).toBe(1)
  expect(taken(24 * 3_600_000)).toBe(3)
})

test('a bucket that was found empty fills up from then on', () => {
  const bucket = new TokenBucket(10, 100)
  bucket.empty(1000)
  expect(bucket.waitMillis(1000)).toBe(36_000)
  expect(bucket.take(37_000)).toBe(true)
  expect(bucket.take(37_000)).toBe(false)
})
