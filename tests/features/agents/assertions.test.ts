/**
 * What counts as an assertion at the token endpoint: the tokens of the contract's vectors, and every way to forge one.
 * The server signs with the key of the vectors, so that a test can sign whatever the server would not.
 */
import { createHmac, createPrivateKey, createPublicKey } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { normalizeAtprotoOauthScopeValue } from '@atproto/oauth-scopes'
import { createAccount } from '../../support/clients/account.ts'
import { exchangeAgent, JWT_BEARER, tokenGrant } from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { newKey, signJwt, type Key } from '../../support/clients/oauth-client.ts'
import { Random } from '../../support/random.ts'
import canonicalization from '../../vectors/contract/agents-scope-canonicalization.json' with { type: 'json' }
import vectors from '../../vectors/contract/agents-assertion-and-set.json' with { type: 'json' }
import { countOf } from '../../support/agent-rows.ts'
import { useWorld } from '../../support/world.ts'

const { assertionClaimed, assertionPreClaim, accessToken, jwtBearerRequest, serviceKey, publicUrl } = vectors
const { claims, header } = assertionClaimed

const key: Key = {
  privateKey: createPrivateKey({
    format: 'jwk',
    key: { ...serviceKey.jwk, d: Buffer.from(serviceKey.privateScalarHex, 'hex').toString('base64url') },
  }),
  jwk: serviceKey.jwk,
}

const clock = new StillClock(vectors.now * 1000)
const { pds } = useWorld({
  config: { publicUrl, agentAuth: { anonymousEnabled: true }, rateLimit: { enabled: false } },
  options: { clock },
})
beforeAll(async () => {
  const { did } = await createAccount(pds, 'alice')
  const wrapped = pds.ctx.vault.wrap(Buffer.from(serviceKey.privateScalarHex, 'hex'))
  await pds.damage('server_secret', { name: 'oauth-signing-key' }, { wrapped })
  await pds.damage('account', { did }, { did: claims.sub })
  await pds.plant('agent_registration', {
    id: claims.registration_id,
    did: claims.sub,
    type: 'anonymous',
    scopes: JSON.stringify(claims.scope.split(' ')),
    status: 'claimed',
    created_at: 0,
    updated_at: 0,
  })
  await pds.restart()
})
beforeEach(() => setRegistration({}))

const setRegistration = ({ did = claims.sub, status = 'claimed' }: { did?: string | null; status?: string }) =>
  pds.damage('agent_registration', { id: claims.registration_id }, { did, status })

const refusal = ({ status, body }: Answer) => [status, body.error]
const INVALID = [400, 'invalid_grant']
const encoded = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

describe('the vectors', () => {
  test('a request of the contract gets a token', async () => {
    const answer = await request(`${pds.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': jwtBearerRequest.contentType },
      body: jwtBearerRequest.body,
    })
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 300, scope: claims.scope } })
  })

  test('an assertion counts while its registration is confirmed by this account', async () => {
    expect((await exchangeAgent(pds, assertionClaimed.jwt)).status).toBe(200)
    await setRegistration({ status: 'active', did: null })
    expect(refusal(await exchangeAgent(pds, assertionClaimed.jwt))).toEqual(INVALID)
    await setRegistration({ did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' })
    expect(refusal(await exchangeAgent(pds, assertionClaimed.jwt))).toEqual(INVALID)
    await setRegistration({ status: 'revoked' })
    expect(refusal(await exchangeAgent(pds, assertionClaimed.jwt))).toEqual([400, 'access_denied'])
  })

  test('an assertion of before the confirmation never counts', async () => {
    for (const registration of [{}, { status: 'active', did: null }]) {
      await setRegistration(registration)
      expect(refusal(await exchangeAgent(pds, assertionPreClaim.jwt))).toEqual(INVALID)
    }
  })

  test('an access token opens resources and is no assertion', async () => {
    const session = await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(accessToken.jwt) })
    expect(session).toMatchObject({ status: 200, body: { did: claims.sub } })
    expect(refusal(await exchangeAgent(pds, accessToken.jwt))).toEqual(INVALID)
  })

  test('an assertion opens no resource', async () => {
    for (const jwt of [assertionClaimed.jwt, assertionPreClaim.jwt])
      expect((await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(jwt) })).status).toBe(
        401,
      )
  })

  test.each(canonicalization.values)('the scope $input', ({ input, canonical }) => {
    expect(normalizeAtprotoOauthScopeValue(input)).toBe(canonical as never)
  })
})

describe('what is signed with the right key and yet is no assertion', () => {
  const { exp, iat } = claims
  test.each([
    ['its own kind', {}, {}, 200],
    ['another kind', { typ: 'at+jwt' }, {}, 400],
    ['a kind in another spelling', { typ: 'jwt' }, {}, 400],
    ['no kind', { typ: undefined }, {}, 400],
    ['an event token', { typ: 'secevent+jwt' }, {}, 400],
    ['a critical extension', { crit: ['b64'], b64: false }, {}, 400],
    ['an empty list of critical extensions', { crit: [] }, {}, 400],
    ['another algorithm', { alg: 'ES384' }, {}, 400],
    ['a symmetric algorithm', { alg: 'HS256' }, {}, 400],
    ['no algorithm', { alg: 'none' }, {}, 400],
    ['an algorithm in another spelling', { alg: 'es256' }, {}, 400],
    ['another issuer', {}, { iss: 'https://evil.example' }, 400],
    ['an issuer with a slash', {}, { iss: `${publicUrl}/` }, 400],
    ['another audience', {}, { aud: 'https://elsewhere.example' }, 400],
    ['a list of audiences', {}, { aud: [publicUrl] }, 400],
    ['a list of audiences with another first', {}, { aud: ['https://elsewhere.example', publicUrl] }, 400],
    ['no audience', {}, { aud: undefined }, 400],
    ['no expiry', {}, { exp: undefined }, 400],
    ['an expiry in words', {}, { exp: String(exp) }, 400],
    ['an expiry that is over', {}, { exp: iat }, 400],
    ['an expiry before all time', {}, { exp: -1e300 }, 400],
    ['no subject', {}, { sub: undefined }, 400],
    ['another subject', {}, { sub: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }, 400],
    ['its registration as subject', {}, { sub: claims.registration_id }, 400],
    ['no scope', {}, { scope: undefined }, 400],
    ['an empty scope', {}, { scope: '' }, 400],
    ['a list of scopes', {}, { scope: claims.scope.split(' ') }, 400],
    ['scopes that were never granted', {}, { scope: 'transition:generic account:email' }, 400],
    ['no registration', {}, { registration_id: undefined }, 400],
    ['an unknown registration', {}, { registration_id: 'reg_none' }, 400],
    ['no type of registration', {}, { registration_type: undefined }, 400],
    ['a huge id', {}, { jti: 'x'.repeat(20_000) }, 200],
  ])('%s', async (_, headers, changes, status) => {
    const answer = await exchangeAgent(pds, signJwt(key, { ...header, ...headers }, { ...claims, ...changes }))
    expect({ status: answer.status, error: answer.body.error }).toEqual({
      status,
      error: status === 200 ? undefined : 'invalid_grant',
    })
  })

  test('scopes beyond those of the registration are left out', async () => {
    const { body } = await exchangeAgent(
      pds,
      signJwt(key, header, { ...claims, scope: 'account:email atproto repo:*' }),
    )
    expect(body.scope).toBe('atproto')
  })
})

describe('what is not signed with the key', () => {
  const [head = '', payload = '', signature = ''] = assertionClaimed.jwt.split('.')

  test('no signature, and one with the public key as a shared secret', async () => {
    const none = encoded({ ...header, alg: 'none' })
    const symmetric = encoded({ ...header, alg: 'HS256' })
    const pem = createPublicKey({ key: serviceKey.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    const der = createPublicKey({ key: serviceKey.jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' })
    const forged = [
      `${none}.${payload}.`,
      `${none}.${payload}`,
      `${none}.${payload}.AA`,
      `${head}.${payload}.`,
      ...[pem, der, JSON.stringify(serviceKey.jwk)].map(
        (secret) =>
          `${symmetric}.${payload}.${createHmac('sha256', secret).update(`${symmetric}.${payload}`).digest('base64url')}`,
      ),
    ]
    for (const jwt of forged) expect([jwt, ...refusal(await exchangeAgent(pds, jwt))]).toEqual([jwt, ...INVALID])
  })

  test('a key of its own, also one that the header brings along', async () => {
    const own = newKey()
    for (const extra of [
      {},
      { jwk: own.jwk },
      { jku: 'https://evil.example/jwks' },
      { kid: '../../etc/passwd' },
      { x5c: ['AA'] },
    ])
      expect(refusal(await exchangeAgent(pds, signJwt(own, { ...header, ...extra }, claims)))).toEqual(INVALID)
  })

  test('members that are there twice', async () => {
    const twice = encoded(JSON.stringify(claims).replace('{', `{"sub":"did:plc:aaaaaaaaaaaaaaaaaaaaaaaa",`))
    const heads = encoded('{"alg":"none","alg":"ES256","typ":"JWT"}')
    for (const jwt of [`${head}.${twice}.${signature}`, `${heads}.${payload}.${signature}`])
      expect(refusal(await exchangeAgent(pds, jwt))).toEqual(INVALID)
  })

  test('other spellings of a signature that is right', async () => {
    const raw = Buffer.from(signature, 'base64url')
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = letters.indexOf(signature.at(-1)!)
    const spellings = [
      `${signature}=`,
      `${signature}==`,
      raw.toString('base64'),
      `${signature} `,
      `${signature}.`,
      ...Array.from({ length: 15 }, (_, i) => signature.slice(0, -1) + letters[(last & ~15) | ((last + 1 + i) & 15)]!),
    ].filter((one) => one !== signature)
    for (const one of spellings)
      expect([one, ...refusal(await exchangeAgent(pds, `${head}.${payload}.${one}`))]).toEqual([one, ...INVALID])
  })

  test('texts that are large, or no text', async () => {
    for (const jwt of [
      '.',
      '..',
      '...',
      'a.b.c.d',
      '\u0000',
      '🙂.🙂.🙂',
      `${head}.${encoded('[]')}.AA`,
      `${encoded('null')}.${payload}.${signature}`,
    ])
      expect(refusal(await exchangeAgent(pds, jwt))).toEqual(INVALID)
    expect((await exchangeAgent(pds, 'x'.repeat(40_000))).status).toBe(413)
  })
})

test('ten thousand mutations of an assertion and of its form get no token and cause no fault', async () => {
  const random = new Random(20_260_101)
  const below = (limit: number) => random.below(limit)
  const before = await countOf(pds)
  const good = assertionClaimed.jwt
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const characters = [...'AZaz09-_.=+/ %&\u0000{}"\\é🙂']
  const at = () => below(good.length)
  const mutations: (() => string)[] = [
    () => good.slice(0, at()) + pick(characters) + good.slice(at()),
    () => {
      const i = at()
      const other = pick(characters)
      return good.slice(0, i) + (other === good[i] ? '~' : other) + good.slice(i + 1)
    },
    () => good.slice(0, at()),
    () => good.slice(1 + at()),
    () => {
      const i = 1 + at()
      return good.slice(i) + good.slice(0, i) + 'x'
    },
    () => {
      const claim = pick(Object.keys(claims))
      const value = pick([null, 0, -1, 1e308, '', [], {}, true, 'x'.repeat(below(3000)), publicUrl, claims.sub])
      const [head, , signature] = good.split('.')
      return `${head}.${encoded({ ...claims, [claim]: value, extra: below(1000) })}.${signature}`
    },
    () => {
      const name = pick(['alg', 'kid', 'typ', 'crit', 'jwk', 'b64', 'zip'])
      const [, payload, signature] = good.split('.')
      return `${encoded({ ...header, [name]: pick([null, 0, '', 'none', 'HS256', [], {}, 'x'.repeat(below(500))]), nonce: below(1000) })}.${payload}.${signature}`
    },
  ]
  let tokens = 0
  const faults: string[] = []
  for (let round = 0; round < 100; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const jwt = pick(mutations)()
        if (jwt === good) return
        const answer =
          below(10) === 0
            ? await tokenGrant(pds, `${JWT_BEARER}${pick(['', ' ', 'x'])}`, { assertion: jwt })
            : await exchangeAgent(pds, jwt)
        if (answer.body.access_token !== undefined) tokens++
        if (answer.status >= 500 || answer.status < 400) faults.push(`${answer.status} ${jwt}`)
      }),
    )
  }
  expect({ tokens, faults: faults.slice(0, 3) }).toEqual({ tokens: 0, faults: [] })
  expect(await countOf(pds)).toEqual(before)
}, 120_000)
