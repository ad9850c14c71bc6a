import { expect, test } from 'bun:test'
import vectors from '../../tests/vectors/opaque-token-v1.json' with { type: 'json' }
import { formatOpaqueToken, opaqueTokenHash } from './opaque-token.ts'

test('the published vectors: written in base64url, stored as the hash of the bytes', () => {
  for (const { rawHex, wire, storedHash } of vectors.cases) {
    expect(formatOpaqueToken(Buffer.from(rawHex, 'hex'))).toBe(wire)
    expect(opaqueTokenHash(wire)).toBe(storedHash)
  }
})

test('a token has one spelling', () => {
  const { wire } = vectors.cases[0]!
  for (const text of [`${wire}=`, wire.slice(1), `${wire}A`, wire.replace('_', '/'), ` ${wire.slice(1)}`, ''])
    expect(opaqueTokenHash(text)).toBeNull()
})
