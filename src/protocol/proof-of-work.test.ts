import { createHash } from 'node:crypto'
import { expect, test } from 'bun:test'
import { MAX_WORK_BITS, workBits } from './proof-of-work.ts'

test('the bits of work are the zeros with which the hash begins', () => {
  const work = { challenge: 'challenge', subject: 'alice@example.com' }
  for (let nonce = 0; nonce < 2000; nonce++) {
    const hash = createHash('sha256').update(`challenge:alice@example.com:${nonce}`).digest('hex')
    const digits = BigInt(`0x${hash}`).toString(2).padStart(256, '0')
    expect(workBits({ ...work, nonce: String(nonce) })).toBe(digits.indexOf('1'))
  }
  expect(MAX_WORK_BITS).toBeLessThan(32)
})
