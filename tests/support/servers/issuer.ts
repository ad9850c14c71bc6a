/**
 * An identity provider of agents, which signs by hand, so that a test can do any one thing wrong; and the host of its
 * keys.
 */
import { createHmac, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import type { TrustedIssuer } from '../../../src/platform/configuration/trusted-issuers.ts'
import type { ForeignAlgorithm } from '../../../src/protocol/foreign-keys.ts'
import { request, type Answer } from '../clients/http.ts'
import type { TestPds } from './pds.ts'

export const ASSERTION_REVOKED = 'https://schemas.workos.com/events/agent/auth/identity/assertion/revoked'

export interface IssuerKey {
  kid: string
  algorithm: ForeignAlgorithm
  privateKey: KeyObject
  publicKey: KeyObject
  pem: string
  jwk: Record<string, unknown>
}

const pairOf: Record<ForeignAlgorithm, () => { privateKey: KeyObject; publicKey: KeyObject }> = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS384: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  RS512: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  EdDSA: () => generateKeyPairSync('ed25519'),
}

export function issuerKey(kid: string, algorithm: ForeignAlgorithm = 'ES256'): IssuerKey {
  const { privateKey, publicKey } = pairOf[algorithm]()
  const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string
  return { kid, algorithm, privateKey, publicKey, pem, jwk: { ...publicKey.export({ format: 'jwk' }), kid } }
}

const part = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Signs in the algorithm that the header names: `none` not at all, HMAC with the key's own PEM. */
export function signedText(key: IssuerKey, header: object | string, claims: object | string): string {
  const text = `${part(header)}.${part(claims)}`
  const { alg } = (typeof header === 'string' ? JSON.parse(header) : header) as { alg: string }
  return `${text}.${signatureOf(key, alg, Buffer.from(text)).toString('base64url')}`
}

function signatureOf({ privateKey, pem, algorithm }: IssuerKey, alg: string, bytes: Buffer): Buffer {
  if (alg === 'none') return Buffer.alloc(0)
  if (alg === 'HS256') return createHmac('sha256', pem).update(bytes).digest()
  if (algorithm === 'EdDSA') return sign(null, bytes, privateKey)
  const hash = `sha${algorithm.slice(2)}`
  return algorithm.startsWith('ES')
    ? sign(hash, bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    : sign(hash, bytes, privateKey)
}

type Server = Pick<TestPds, 'url' | 'clock'>
type Changes = { header?: Record<string, unknown>; claims?: Record<string, unknown> }

export const ISSUER = 'https://idp.example.net'

const nowSecs = ({ clock }: Server) => Math.floor(clock.now() / 1000)

/** What the provider says of a person, for five minutes. A claim that is `undefined` is left out. */
export const identityAssertion = (pds: Server, key: IssuerKey, { header = {}, claims = {} }: Changes = {}): string =>
  signedText(
    key,
    { alg: key.algorithm, kid: key.kid, typ: 'oauth-id-jag+jwt', ...header },
    {
      iss: ISSUER,
      aud: pds.url,
      sub: 'user-42',
      email: 'alice@example.com',
      email_verified: true,
      iat: nowSecs(pds),
      exp: nowSecs(pds) + 300,
      auth_time: nowSecs(pds) - 120,
      jti: randomUUID(),
      ...claims,
    },
  )

/** The provider's word that it is over for a person. */
export const revocation = (pds: Server, key: IssuerKey, { header = {}, claims = {} }: Changes = {}): string =>
  signedText(
    key,
    { alg: key.algorithm, kid: key.kid, typ: 'secevent+jwt', ...header },
    {
      iss: ISSUER,
      aud: pds.url,
      iat: nowSecs(pds),
      jti: randomUUID(),
      sub: 'user-42',
      events: { [ASSERTION_REVOKED]: {} },
      ...claims,
    },
  )

export const presentIdentity = (pds: Pick<TestPds, 'url'>, assertion: string, more: object = {}): Promise<Answer> =>
  request(`${pds.url}/agent/identity`, { json: { type: 'identity_assertion', assertion, ...more } })

export const notifyEvent = (
  pds: Pick<TestPds, 'url'>,
  body: string,
  headers: Record<string, string> = { 'content-type': 'application/secevent+jwt' },
): Promise<Answer> =>
  request(`${pds.url}/agent/event/notify`, { method: 'POST', headers, body: new TextEncoder().encode(body) })

export const fixedIssuer = (keys: readonly IssuerKey[], changes: Partial<TrustedIssuer> = {}): TrustedIssuer => ({
  issuer: ISSUER,
  audience: null,
  algorithm: keys[0]!.algorithm,
  keys: { source: 'fixed', publicKeysPem: keys.map(({ pem }) => pem) },
  ...changes,
})

export interface KeyHost extends AsyncDisposable {
  readonly url: string
  /** How often it was asked. */
  asked: number
  /** What it publishes; a function answers in its own way. */
  published: readonly Record<string, unknown>[] | ((request: Request) => Response | Promise<Response>)
  entry(changes?: Partial<TrustedIssuer>): TrustedIssuer
}

export function startKeyHost(published: KeyHost['published']): KeyHost {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 30,
    fetch(asked) {
      host.asked++
      return typeof host.published === 'function'
        ? host.published(asked)
        : Response.json({ keys: host.published }, { headers: { 'content-type': 'application/jwk-set+json' } })
    },
  })
  const host: KeyHost = {
    url: `http://localhost:${server.port}/jwks.json`,
    asked: 0,
    published,
    entry: (changes = {}) => ({
      issuer: ISSUER,
      audience: null,
      algorithm: 'ES256',
      keys: { source: 'jwks', url: host.url },
      ...changes,
    }),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return host
}

/** A provider that is trusted, and never asked. */
export const unaskedIssuer: TrustedIssuer = {
  issuer: 'https://idp.test',
  audience: null,
  algorithm: 'ES256',
  keys: { source: 'jwks', url: 'https://idp.test/jwks' },
}
