import { expect, test } from 'bun:test'
import { parseDidKey } from '@atproto/crypto'
import { verifyJwt } from '@atproto/xrpc-server'
import { isPrivilegedMethod, isProtectedMethod } from './guarded-methods.ts'
import type { Did } from './identifiers.ts'
import { formatDidKey, signingKey, type Curve } from './keys.ts'
import { formatServiceToken } from './service-token.ts'
import { thrownBy } from '../../tests/support/thrown.ts'

const iss = 'did:plc:wezg3sn5g7bpfesjp4w6uwwi' as Did
const aud = 'did:web:api.example'
const lxm = 'app.bsky.feed.getTimeline'

const token = (curve: Curve) => {
  const key = signingKey(curve, new Uint8Array(32).fill(7))
  const iat = Math.floor(Date.now() / 1000)
  return {
    didKey: formatDidKey(key.publicKey),
    text: formatServiceToken(key, { iss, aud, lxm, iat, exp: iat + 60, jti: 'a'.repeat(32) }),
  }
}

test.each(['p256', 'k256'] as const)('the verifier of other services accepts a token of %s', async (curve) => {
  const { didKey, text } = token(curve)
  expect(parseDidKey(didKey).jwtAlg).toBe(curve === 'p256' ? 'ES256' : 'ES256K')
  const payload = await verifyJwt(text, aud, lxm, async () => didKey)
  expect(String(payload.iss)).toBe(iss)
  expect(JSON.parse(Buffer.from(text.split('.')[0]!, 'base64url').toString())).toEqual({
    typ: 'JWT',
    alg: curve === 'p256' ? 'ES256' : 'ES256K',
  })
})

test.each([
  ['another audience', 'did:web:other.example', lxm],
  ['another method', aud, 'app.bsky.feed.getAuthorFeed'],
])('a token is not good for %s', async (_, audience, method) => {
  const { didKey, text } = token('p256')
  expect(await thrownBy(verifyJwt(text, audience, method, async () => didKey))).toThrow()
})

test('methods are guarded whatever their case', () => {
  expect(isProtectedMethod('com.atproto.server.GetSession')).toBe(true)
  expect(isProtectedMethod('com.atproto.server.describeServer')).toBe(false)
  expect(isPrivilegedMethod('chat.bsky.convo.someNewMethod')).toBe(true)
  expect(isPrivilegedMethod('Chat.Bsky.convo.getLog')).toBe(true)
  expect(isPrivilegedMethod('com.atproto.server.createAccount')).toBe(true)
  expect(isPrivilegedMethod('app.bsky.feed.getTimeline')).toBe(false)
})
