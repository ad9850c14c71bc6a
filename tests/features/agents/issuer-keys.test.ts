/** The keys that a trusted issuer publishes: when they are fetched, how long they count, and what a bad host can do. */
import { expect, test } from 'bun:test'
import type { Config } from '../../../src/platform/configuration/config.ts'
import type { TrustedIssuer } from '../../../src/platform/configuration/trusted-issuers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { StillClock } from '../../support/clock.ts'
import { type Answer } from '../../support/clients/http.ts'
import {
  identityAssertion,
  issuerKey,
  notifyEvent,
  presentIdentity,
  revocation,
  startKeyHost,
  type IssuerKey,
} from '../../support/servers/issuer.ts'
import { startRawUpstream } from '../../support/servers/upstream.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'

const [first, second] = [issuerKey('key-1'), issuerKey('key-2')]

interface Server extends AsyncDisposable {
  pds: TestPds
  clock: StillClock
  present(by?: IssuerKey, header?: Record<string, unknown>): Promise<Answer>
}

async function startServer(issuer: TrustedIssuer, agentAuth: Partial<Config['agentAuth']> = {}): Promise<Server> {
  const clock = new StillClock()
  const pds = await startPds(
    { agentAuth: { trustedIssuers: [issuer], ...agentAuth }, rateLimit: { enabled: false } },
    { clock, alone: 'each node fetches key sets for itself' },
  )
  await createAccount(pds, 'alice')
  return {
    pds,
    clock,
    present: (by = first, header = {}) =>
      presentIdentity(
        pds,
        identityAssertion({ url: pds.url, clock }, by, { header, claims: { sub: crypto.randomUUID() } }),
      ),
    [Symbol.asyncDispose]: () => pds[Symbol.asyncDispose](),
  }
}

/** In the words of the protocol: what became of an assertion. */
const verdict = async (answer: Promise<Answer>): Promise<string> => {
  const { status, body } = await answer
  return `${status} ${body.error}`
}
const ACCEPTED = '401 interaction_required'
const REFUSED = '401 invalid_grant'
const FAILED = '500 server_error'

test('a key set is fetched once, and used for its time to live', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry())
  expect(host.asked).toBe(0)
  for (let i = 0; i < 3; i++) expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(1)
  server.clock.advance({ secs: 3599 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(1)
  server.clock.advance({ secs: 1 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(2)
})

test('a key that is rotated in counts at once, and one that is taken out as long as the set is kept', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(ACCEPTED)
  host.published = [second.jwk]
  server.clock.advance({ secs: 30 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(1)
  expect(await verdict(server.present(second))).toBe(ACCEPTED)
  expect(host.asked).toBe(2)
  expect(await verdict(server.present(first))).toBe(REFUSED)
})

test('a key that is taken out counts no longer than the time to live, even if nobody asks for another', async () => {
  await using host = startKeyHost([first.jwk, second.jwk])
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(ACCEPTED)
  host.published = [second.jwk]
  server.clock.advance({ secs: 3599 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  server.clock.advance({ secs: 1 })
  expect(await verdict(server.present())).toBe(REFUSED)
})

test('an unknown kid fetches once in the cooldown, and is refused without a fetch in it', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry())
  expect(await verdict(server.present(second))).toBe(REFUSED)
  expect(host.asked).toBe(1)
  for (let i = 0; i < 5; i++) expect(await verdict(server.present(issuerKey(`unheard-${i}`)))).toBe(REFUSED)
  host.published = [first.jwk, second.jwk]
  server.clock.advance({ secs: 29 })
  expect(await verdict(server.present(second))).toBe(REFUSED)
  expect(host.asked).toBe(1)
  server.clock.advance({ secs: 1 })
  expect(await verdict(server.present(second))).toBe(ACCEPTED)
  expect(host.asked).toBe(2)
})

test('without a cooldown every miss may fetch', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry(), { jwksRefetchCooldownSecs: 0 })
  for (let i = 1; i <= 3; i++) {
    expect(await verdict(server.present(second))).toBe(REFUSED)
    expect(host.asked).toBe(i)
  }
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(3)
})

test('without a time to live every assertion fetches, once the cooldown is over', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry(), { jwksCacheTtlSecs: 0, jwksRefetchCooldownSecs: 10 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(await verdict(server.present())).toBe(FAILED)
  server.clock.advance({ secs: 10 })
  expect(await verdict(server.present(second))).toBe(REFUSED)
  server.clock.advance({ secs: 10 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(host.asked).toBe(3)
})

test('assertions that arrive together share one fetch, whether it succeeds or fails', async () => {
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>()
  await using host = startKeyHost(async () => {
    await isOpen
    return Response.json({ keys: [first.jwk] })
  })
  await using server = await startServer(host.entry(), { jwksRefetchCooldownSecs: 0 })
  const answers = Array.from({ length: 10 }, () => verdict(server.present()))
  await until(() => host.asked > 0)
  open()
  expect(new Set(await Promise.all(answers))).toEqual(new Set([ACCEPTED]))
  expect(host.asked).toBe(1)
})

test('a failed fetch starts the cooldown: what follows fails at once, without a fetch', async () => {
  await using host = startKeyHost(() => new Response('down', { status: 503 }))
  await using server = await startServer(host.entry())
  for (let i = 0; i < 3; i++) expect(await verdict(server.present())).toBe(FAILED)
  expect(host.asked).toBe(1)
  host.published = [first.jwk]
  server.clock.advance({ secs: 29 })
  expect(await verdict(server.present())).toBe(FAILED)
  server.clock.advance({ secs: 1 })
  expect(await verdict(server.present())).toBe(ACCEPTED)
  expect(server.pds.log.filter(({ message }) => message.includes('keys of a trusted issuer'))).toHaveLength(1)
})

test('while the host is down, known keys count as long as the set is fresh, and then none', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(ACCEPTED)
  host.published = () => new Response('down', { status: 503 })
  server.clock.advance({ secs: 60 })
  expect(await verdict(server.present(second))).toBe(REFUSED)
  expect(host.asked).toBe(2)
  expect(await verdict(server.present())).toBe(ACCEPTED)
  server.clock.advance({ secs: 3540 })
  expect(await verdict(server.present())).toBe(FAILED)
  expect(await verdict(server.present())).toBe(FAILED)
  expect(host.asked).toBe(3)
  expect(await notifyEvent(server.pds, revocation({ url: server.pds.url, clock: server.clock }, first))).toMatchObject({
    status: 500,
    body: { err: 'server_error' },
  })
})

const page =
  (body: string, init: ResponseInit = {}) =>
  () =>
    new Response(body, init)
const set = JSON.stringify({ keys: [first.jwk] })

test.each<[string, (request: Request) => Response | Promise<Response>]>([
  ['redirects', () => Response.redirect('/other', 302)],
  ['answers 404', page(set, { status: 404 })],
  ['answers 204', () => new Response(null, { status: 204 })],
  ['is no JSON', page('<html></html>', { headers: { 'content-type': 'text/html' } })],
  ['is half of it', page(set.slice(0, -5))],
  ['is a list', page('[]')],
  ['is null', page('null')],
  ['has no keys', page('{"key":[]}')],
  ['has keys that are an object', page('{"keys":{}}')],
  ['announces too much', page(JSON.stringify({ keys: [first.jwk], more: 'x'.repeat(70_000) }))],
  [
    'sends too much without saying so',
    () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(Buffer.alloc(16_384, ' ')),
        }),
      ),
  ],
  [
    'unpacks to too much',
    () =>
      new Response(Bun.gzipSync(Buffer.from(JSON.stringify({ keys: [first.jwk], more: 'x'.repeat(1_000_000) }))), {
        headers: { 'content-encoding': 'gzip' },
      }),
  ],
])('a host that %s has no keys', async (_, published) => {
  await using host = startKeyHost(published)
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(FAILED)
  expect(host.asked).toBe(1)
})

test('a host that does not answer is given up after five seconds', async () => {
  await using host = startKeyHost(() => new Promise<Response>(() => undefined))
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(FAILED)
}, 60_000)

test('a host that is no web server, or is not there, has no keys', async () => {
  await using strange = await startRawUpstream('SSH-2.0-nothing\r\n')
  for (const url of [`${strange.url}/jwks`, 'http://127.0.0.1:1/jwks', 'http://nowhere.test/jwks']) {
    await using server = await startServer({ ...startless, keys: { source: 'jwks', url } })
    expect(await verdict(server.present())).toBe(FAILED)
  }
})
const startless: TrustedIssuer = {
  issuer: 'https://idp.example.net',
  audience: null,
  algorithm: 'ES256',
  keys: { source: 'jwks', url: '' },
}

test('a set may have other things in it: what is no key for this issuer is passed over', async () => {
  const [rsa, other] = [issuerKey('key-1', 'RS256'), issuerKey('key-1', 'ES384')]
  const { x, ...half } = first.jwk
  await using host = startKeyHost([
    null,
    7,
    [],
    half,
    { ...first.jwk, x: 'AAAA' },
    { ...first.jwk, alg: 'ES384' },
    { ...first.jwk, use: 'enc' },
    { ...first.jwk, key_ops: ['sign'] },
    rsa.jwk,
    other.jwk,
    { kty: 'oct', k: x, kid: 'key-1' },
    { ...first.jwk, alg: 'ES256', use: 'sig', key_ops: ['verify'] },
  ] as Record<string, unknown>[])
  await using server = await startServer(host.entry())
  expect(await verdict(server.present())).toBe(ACCEPTED)
})

test('a token without kid is by the only key, or by none', async () => {
  await using host = startKeyHost([{ ...first.jwk, use: 'sig' }])
  await using server = await startServer(host.entry(), { jwksRefetchCooldownSecs: 0 })
  expect(await verdict(server.present(first, { kid: undefined }))).toBe(ACCEPTED)
  expect(await verdict(server.present(second, { kid: undefined }))).toBe(REFUSED)
  for (const kid of ['', 7, null, ['key-1'], { a: 1 }])
    expect(await verdict(server.present(first, { kid }))).toBe(REFUSED)
  host.published = [first.jwk, second.jwk]
  expect(await verdict(server.present(issuerKey('new')))).toBe(REFUSED)
  expect(await verdict(server.present(first, { kid: undefined }))).toBe(REFUSED)
  expect(await verdict(server.present(second))).toBe(ACCEPTED)
})

test('a key cannot be chosen by the token: of another algorithm, from its own header, or of another issuer', async () => {
  await using host = startKeyHost([first.jwk])
  await using evil = startKeyHost([second.jwk])
  await using server = await startServer(host.entry(), { jwksRefetchCooldownSecs: 0 })
  const secret = { ...first, pem: JSON.stringify(first.jwk) }
  expect(await verdict(server.present(secret, { alg: 'HS256' }))).toBe(REFUSED)
  for (const header of [
    { jku: evil.url },
    { jwk: second.jwk },
    { iss: evil.url },
    { x5u: evil.url },
    { kid: evil.url },
    { kid: '../jwks' },
  ])
    expect(await verdict(server.present(second, { ...header }))).toBe(REFUSED)
  expect(evil.asked).toBe(0)
})

test('nothing is fetched for an issuer that is not trusted, for another algorithm or another purpose', async () => {
  await using host = startKeyHost([first.jwk])
  await using server = await startServer(host.entry())
  const { url } = server.pds
  const of = (claims: object, header = {}) =>
    identityAssertion({ url, clock: server.clock }, first, { claims: { ...claims }, header })
  expect(await verdict(presentIdentity(server.pds, of({ iss: 'https://evil.example.net' })))).toBe(
    '403 issuer_not_enabled',
  )
  for (const header of [{ alg: 'RS256' }, { alg: 'none' }, { typ: 'at+jwt' }, { crit: ['a'], a: 1 }])
    expect(await verdict(presentIdentity(server.pds, of({}, header)))).toBe(REFUSED)
  expect(host.asked).toBe(0)
})
