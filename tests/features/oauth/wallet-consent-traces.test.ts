/** What consents leave behind, for whom, and how many there may be. */
import { describe, expect, test } from 'bun:test'
import { insertRequest, type PendingRequest } from '../../../src/features/access/oauth/authorization-request-store.ts'
import { consentsAwaiting } from '../../../src/features/access/oauth/wallet-consents.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  statusOf,
  walletPathOf,
} from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const passwordless = { accounts: { passwordOptional: true } }

describe('events', () => {
  const { pds } = useWorld({ config: { ...passwordless, rateLimit: { enabled: false } } })

  const events = async (query: Record<string, string> = {}) => {
    const { body } = await request(`${pds.url}/v1/admin/consents?${new URLSearchParams(query)}`, {
      headers: bearer(ADMIN_TOKEN),
    })
    return body as { events: Record<string, any>[]; cursor?: string }
  }
  const rows = (table: 'wallet_consent' | 'wallet_consent_event') => pds.rows(table)

  test('tell operators who let which app in, without any secret', async () => {
    const alice = await sovereignAccount(pds, 'alice', { password: undefined })
    const app = new OAuthClient(pds)
    const consent = await openConsent(app, { login_hint: alice.handle }, { origin: 'https://app.example.com' })
    const proof = decisionOf(pds, alice, consent, { grantedScope: 'atproto' })
    await sendDecision(pds, proof)
    const { headers } = await completeConsent(pds, consent.requestId)
    const denied = await openConsent(new OAuthClient(pds))
    await sendDecision(pds, decisionOf(pds, alice, denied, { decision: 'deny' }))

    const { events: all } = await events()
    const asked = { client_id: app.clientId, requested_scope: 'atproto transition:generic' }
    const of = (found: Record<string, any>) => ({ action: found.action, subject: found.subject, detail: found.detail })
    expect(all.map(of)).toEqual([
      { action: 'denied', subject: alice.did, detail: {} },
      { action: 'request_created', subject: undefined, detail: { ...asked, origin: null, login_hint: null } },
      { action: 'completed', subject: alice.did, detail: {} },
      { action: 'approved', subject: alice.did, detail: { granted_scope: 'atproto' } },
      {
        action: 'request_created',
        subject: undefined,
        detail: { ...asked, origin: 'https://app.example.com', login_hint: 'alice.test' },
      },
    ])
    expect(new Set(all.map((found) => found.request)).size).toBe(2)
    expect((await events({ subject: alice.did, limit: '2' })).events.map(({ action }) => action)).toEqual([
      'denied',
      'completed',
    ])
    const { cursor } = await events({ limit: '2' })
    expect((await events({ cursor: cursor! })).events.map(({ action }) => action)).toEqual([
      'completed',
      'approved',
      'request_created',
    ])

    const code = new URL(headers.get('location')!).searchParams.get('code')!
    const kept = JSON.stringify([await rows('wallet_consent_event'), all]) + JSON.stringify(pds.log)
    for (const secret of [consent.requestId, consent.userCode, consent.requestUri, proof.signature, proof.nonce, code])
      expect(kept).not.toContain(secret as string)
    expect(
      pds.log.filter(({ message }) => /wallet|app authorized/.test(message)).map(({ message }) => message),
    ).toEqual(expect.arrayContaining(['app approved in a wallet', 'app authorized', 'app denied in a wallet']))
  })

  test('of requests that nobody decides go with them; others stay for ninety days', async () => {
    const bob = await sovereignAccount(pds, 'bob', { password: undefined })
    const decided = await openConsent(new OAuthClient(pds), { login_hint: bob.did })
    await openConsent(new OAuthClient(pds), { login_hint: bob.did })
    await sendDecision(pds, decisionOf(pds, bob, decided, { decision: 'deny' }))
    const about = async () =>
      (await events()).events.filter(({ detail, subject }) => detail.login_hint === bob.did || subject === bob.did)
    expect((await about()).map(({ action }) => action)).toEqual(['denied', 'request_created', 'request_created'])
    pds.clock.advance({ secs: 3901 })
    await pds.runSweep('oauth-expiry')
    expect(await rows('wallet_consent')).toEqual([])
    expect((await about()).map(({ action }) => action)).toEqual(['denied', 'request_created'])
    pds.clock.advance({ days: 91 })
    await pds.runSweep('oauth-expiry')
    expect(await rows('wallet_consent_event')).toEqual([])
  })

  test('events and requests of an account are gone when the account is', async () => {
    const carol = await sovereignAccount(pds, 'carol', { password: undefined })
    const approved = await openConsent(new OAuthClient(pds))
    await sendDecision(pds, decisionOf(pds, carol, approved))
    const waiting = await openConsent(new OAuthClient(pds), { login_hint: carol.handle })
    const other = await openConsent(new OAuthClient(pds), { login_hint: 'somebody.example.com' })
    const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: carol.did },
      headers: bearer(ADMIN_TOKEN),
    })
    expect(status).toBe(200)
    expect((await completeConsent(pds, approved.requestId)).status).toBe(400)
    expect((await previewOf(pds, { request_id: waiting.requestId })).status).toBe(404)
    expect((await previewOf(pds, { request_id: other.requestId })).status).toBe(200)
    const kept = JSON.stringify([await rows('wallet_consent'), await rows('wallet_consent_event')])
    for (const name of [carol.did, carol.handle]) expect(kept).not.toContain(name)
  })

  test('a holder sees what waits for the wallet, by any name of the account', async () => {
    const dave = await sovereignAccount(pds, 'dave', { password: undefined })
    const account = { did: dave.did as Did, handle: dave.handle as Handle }
    const first = await openConsent(new OAuthClient(pds), { login_hint: dave.did })
    const second = await openConsent(new OAuthClient(pds), { login_hint: 'DAVE.test' })
    await openConsent(new OAuthClient(pds))
    const waiting = async () => (await consentsAwaiting(pds.ctx, account)).map(({ requestId }) => requestId).toSorted()
    expect(await waiting()).toEqual([first.requestId, second.requestId].toSorted())
    await sendDecision(pds, decisionOf(pds, dave, second, { decision: 'deny' }))
    expect(await waiting()).toEqual([first.requestId])
    pds.clock.advance({ secs: 301 })
    expect(await waiting()).toEqual([])
  })
})

describe('the limits', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const isOffered = async (app: OAuthClient, requestUri: string, address: string) => {
    const { status, body } = await request(app.authorizeUrl(requestUri), { headers: from(address) })
    expect(status).toBe(200)
    expect(body).toContain('name="password"')
    return walletPathOf(body) !== null
  }

  test('on new requests count for the address and for the app, and a page that is loaded again costs nothing', async () => {
    await using pds = await startPds({ rateLimit: { oauthConsentCreatePer5min: 2 } })
    using _ = atOneNode(pds, 'the last request of a limit is counted, and each node may let one more through')
    await sovereignAccount(pds, 'holder')
    const [one, two, three] = [1, 2, 3].map(
      (n) =>
        new OAuthClient(
          pds,
          loopbackClientId('atproto transition:generic', `http://127.0.0.1:${n}/`),
          null,
          `http://127.0.0.1:${n}/`,
        ),
    ) as [OAuthClient, OAuthClient, OAuthClient]
    const first = await one.requestUri()
    expect(await isOffered(one, first, '192.0.2.1')).toBe(true)
    for (let i = 0; i < 5; i++) expect(await isOffered(one, first, '192.0.2.1')).toBe(true)
    expect(await isOffered(two, await two.requestUri(), '192.0.2.1')).toBe(true)
    expect(await isOffered(three, await three.requestUri(), '192.0.2.1')).toBe(false)
    expect(await isOffered(one, await one.requestUri(), '192.0.2.2')).toBe(true)
    expect(await isOffered(one, await one.requestUri(), '192.0.2.3')).toBe(false)
    expect(await isOffered(three, await three.requestUri(), '192.0.2.3')).toBe(true)
    pds.clock.advance({ secs: 290 })
    const late = await one.requestUri()
    expect(await isOffered(one, late, '192.0.2.3')).toBe(false)
    pds.clock.advance({ secs: 11 })
    expect(await isOffered(one, late, '192.0.2.3')).toBe(true)
  })

  test('on questions and decisions are one, for each address, and count what is malformed', async () => {
    await using pds = await startPds({ rateLimit: { oauthConsentActionPer5min: 3 } })
    using _ = atOneNode(pds, 'the last request of a limit is counted, and each node may let one more through')
    await sovereignAccount(pds, 'holder')
    const { requestId, userCode } = await openConsent(new OAuthClient(pds))
    expect((await previewOf(pds, { user_code: userCode })).status).toBe(200)
    expect((await previewOf(pds, { user_code: 'AAAA-AAAA' })).status).toBe(404)
    expect((await sendDecision(pds, {})).status).toBe(422)
    for (const answer of [await previewOf(pds, { user_code: userCode }), await sendDecision(pds, {})]) {
      expect(answer).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    }
    expect((await statusOf(pds, requestId)).status).toBe(200)
    const elsewhere = await request(`${pds.url}/oauth/authorize/consent-request?user_code=${userCode}`, {
      headers: from('192.0.2.9'),
    })
    expect(elsewhere.status).toBe(200)
  })

  test('on all requests of an address count a page that waits once, unless it asks too often or of nothing', async () => {
    await using pds = await startPds({ rateLimit: { globalIpPer5min: 100 } })
    using _ = atOneNode(pds, 'the last request of a limit is counted, and each node may let one more through')
    await sovereignAccount(pds, 'holder')
    const { requestId } = await openConsent(new OAuthClient(pds))
    const poll = (query: Record<string, string> | [string, string][]) =>
      request(`${pds.url}/oauth/authorize/status?${new URLSearchParams(query)}`, { headers: from('192.0.2.1') })
    const left = async () => {
      const answer = await request(`${pds.url}/oauth/jwks`, { headers: from('192.0.2.1') })
      return Number(answer.headers.get('ratelimit-remaining')) + 1
    }
    const cost = async (ask: () => Promise<unknown>) => {
      const before = await left()
      await ask()
      return before - (await left()) - 1
    }
    const paced = async () => {
      for (let i = 0; i < 20; i++) {
        pds.clock.advance({ secs: 3 })
        expect(await poll({ request_id: requestId })).toMatchObject({ status: 200, body: { status: 'pending' } })
      }
    }
    expect(await cost(paced)).toBe(1)
    expect(await cost(paced)).toBe(0)
    expect(await cost(() => poll({ request_id: requestId }))).toBe(1)
    const nothing = `poauth_${'A'.repeat(43)}`
    for (const query of [{ request_id: nothing }, { request_id: 'nothing' }, {}] as Record<string, string>[]) {
      pds.clock.advance({ secs: 3 })
      await poll(query)
      pds.clock.advance({ secs: 3 })
      expect([query, await cost(() => poll(query))]).toEqual([query, 1])
    }
    const twice: [string, string][] = [
      ['request_id', requestId],
      ['request_id', requestId],
    ]
    expect(await cost(() => poll(twice))).toBe(1)
  })
})

const MANY = 100_000

test('a hundred thousand waiting requests are in nobody’s way, and are swept when they have lapsed', async () => {
  await using pds = await startPds({ ...passwordless, rateLimit: { enabled: false } })
  const alice = await sovereignAccount(pds, 'alice', { password: undefined })
  const now = pds.clock.now()
  const expiresAt = now + 300_000
  const pushed = { request: { clientId: 'x' }, client: { clientId: 'x' }, clientKey: null } as unknown as PendingRequest
  await pds.ctx.db.transaction((tx) => insertRequest(tx, 'shared', pushed, expiresAt))
  const ids = Array.from({ length: MANY }, (_, n) => n)
  await pds.plant(
    'wallet_consent',
    ids.map((n) => ({
      request_id: `many ${n}`,
      request_hash: `hash ${n}`,
      user_code: `code ${n}`,
      client_id: 'x',
      requested_scope: 'atproto',
      login_hint: `many${n % 1000}.test`,
      ip: 'unknown',
      status: 'pending',
      created_at: now,
      expires_at: expiresAt,
    })),
  )
  const count = () => pds.count('wallet_consent')
  const app = new OAuthClient(pds)
  const consent = await openConsent(app, { login_hint: alice.did })
  expect((await previewOf(pds, { user_code: consent.userCode })).status).toBe(200)
  expect((await sendDecision(pds, decisionOf(pds, alice, consent))).status).toBe(200)
  expect((await completeConsent(pds, consent.requestId)).status).toBe(303)
  expect(await count()).toBe(MANY + 1)

  pds.clock.advance({ secs: 3901 })
  const other = await openConsent(new OAuthClient(pds))
  expect(MANY + 2 - (await count())).toBe(20)
  expect(await pds.runSweep('oauth-expiry')).toMatchObject({ consents: MANY + 1 - 20 })
  expect(await count()).toBe(1)
  expect((await previewOf(pds, { request_id: other.requestId })).status).toBe(200)
})
