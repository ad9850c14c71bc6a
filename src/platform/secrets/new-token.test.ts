import { expect, test } from 'bun:test'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import { newToken } from './new-token.ts'

test('no token begins with a hyphen, and each has its hash', () => {
  const tokens = Array.from({ length: 2000 }, () => newToken())
  expect(tokens.filter(({ token }) => token.startsWith('-'))).toEqual([])
  for (const { token, hash } of tokens) expect(opaqueTokenHash(token)).toBe(hash)
  expect(new Set(tokens.map(({ token }) => token)).size).toBe(tokens.length)
})
