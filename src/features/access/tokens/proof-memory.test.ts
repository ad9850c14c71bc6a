import { expect, test } from 'bun:test'
import { ProofMemory } from './proof-memory.ts'

test('a jti is used once per key, and remembered for 198 seconds at least', () => {
  const memory = new ProofMemory(0)
  expect(memory.use('key', 'jti', 1000)).toBe('fresh')
  expect(memory.use('key', 'jti', 1000)).toBe('used')
  expect(memory.use('other key', 'jti', 1000)).toBe('fresh')
  expect(memory.use('key', 'jti', 198_999)).toBe('used')
  expect(memory.use('key', 'jti', 600_000)).toBe('fresh')
})

test('it tells thousands of proofs apart as it grows', () => {
  const memory = new ProofMemory(0)
  const ids = Array.from({ length: 20_000 }, (_, i) => `jti-${i}`)
  expect(ids.every((id) => memory.use('key', id, 1) === 'fresh')).toBe(true)
  expect(ids.every((id) => memory.use('key', id, 2) === 'used')).toBe(true)
})
