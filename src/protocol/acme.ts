/** Messages between a certificate authority and its client (ACME). Source: RFC 8555; RFC 9773, renewal information. */
import { createHash, createPublicKey, sign, type KeyObject } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { base64url } from './base64url.ts'
import { encodeObject } from './jws.ts'
import { thumbprint, type P256Jwk } from './jwk.ts'

const Url = Type.String({ pattern: '^https://', maxLength: 2048 })

/** RFC 8555, 7.1.1. `renewalInfo`: RFC 9773, 4. */
export const acmeDirectory = Type.Object({
  newNonce: Url,
  newAccount: Url,
  newOrder: Url,
  renewalInfo: Type.Optional(Url),
})
export type AcmeDirectory = Static<typeof acmeDirectory>

/** RFC 7807. */
export const acmeProblem = Type.Object({
  type: Type.Optional(Type.String({ maxLength: 200 })),
  detail: Type.Optional(Type.String()),
})
export type AcmeProblem = Static<typeof acmeProblem>

const MAX_AUTHORIZATIONS = 100

/** RFC 8555, 7.1.3. */
export const acmeOrder = Type.Object({
  status: Type.Union(
    (['pending', 'ready', 'processing', 'valid', 'invalid'] as const).map((each) => Type.Literal(each)),
  ),
  authorizations: Type.Array(Url, { maxItems: MAX_AUTHORIZATIONS }),
  finalize: Url,
  certificate: Type.Optional(Url),
  error: Type.Optional(acmeProblem),
})
export type AcmeOrder = Static<typeof acmeOrder>

/** A challenge token: base64url without padding. RFC 8555, 8.1. */
const token = /^[\w-]{20,256}$/
export const isToken = (text: string): boolean => token.test(text)

const Challenge = Type.Object({
  type: Type.String(),
  url: Url,
  status: Type.String(),
  token: Type.Optional(Type.String({ pattern: token.source })),
  error: Type.Optional(acmeProblem),
})

/** RFC 8555, 7.1.4. */
export const acmeAuthorization = Type.Object({
  status: Type.String(),
  identifier: Type.Object({ type: Type.String(), value: Type.String() }),
  challenges: Type.Array(Challenge, { maxItems: 20 }),
})
export type AcmeAuthorization = Static<typeof acmeAuthorization>

/** RFC 9773, 4.2. */
export const acmeRenewalInfo = Type.Object({
  suggestedWindow: Type.Object({ start: Type.String(), end: Type.String() }),
})

/** Returns the public part of a P-256 key. */
function publicJwk(key: KeyObject): P256Jwk {
  const { x = '', y = '' } = createPublicKey(key).export({ format: 'jwk' })
  return { kty: 'EC', crv: 'P-256', x, y }
}

interface SignedRequest {
  key: KeyObject
  /**
   * URL of the account; null for a request that creates or looks up the account, which carries the public key instead.
   */
  account: string | null
  nonce: string
  url: string
  /** Null for a POST that only reads (RFC 8555, 6.3). */
  payload: object | null
}

/** Returns the body of a request: a JWS with ES256 in its flattened form. RFC 8555, 6.2. */
export function signedRequest({ key, account, nonce, url, payload }: SignedRequest): string {
  const who = account === null ? { jwk: publicJwk(key) } : { kid: account }
  const header = encodeObject({ alg: 'ES256', ...who, nonce, url })
  const body = payload === null ? '' : encodeObject(payload)
  const signature = sign('sha256', Buffer.from(`${header}.${body}`), { key, dsaEncoding: 'ieee-p1363' })
  return JSON.stringify({ protected: header, payload: body, signature: base64url(signature) })
}

/**
 * The key authorization, which proves control of a name. Computed from the token and the account key. RFC 8555, 8.1.
 */
export const keyAuthorization = (tokenOfChallenge: string, key: KeyObject): string =>
  `${tokenOfChallenge}.${thumbprint(publicJwk(key))!}`

/** The value of the TXT record for a DNS-01 challenge. RFC 8555, 8.4. */
export const recordValue = (tokenOfChallenge: string, key: KeyObject): string =>
  createHash('sha256').update(keyAuthorization(tokenOfChallenge, key)).digest('base64url')
