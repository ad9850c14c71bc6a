/** Apps that are let in by a wallet: who is offered that, what it shows, and the way from the page to a session. */
import { describe, expect, test } from 'bun:test'
import decodeQR from 'qr/decode.js'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startLexiconAuthor } from '../../support/servers/lexicon-author.ts'
import { answerOf, loopbackClientId, OAuthClient, type Tokens } from '../../support/clients/oauth-client.ts'
import {
  completeConsent,
  decisionOf,
  openConsent,
  previewOf,
  sendDecision,
  statusOf,
  walletPathOf,
  latch,
} from '../../support/clients/wallet-consent.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const SCOPE = 'atproto transition:generic transition:email repo:com.example.note'
const APP_HOST = 'app.web.test'

const { pds, dns, web } = useWorld({
  web: [APP_HOST],
  config: { rateLimit: { enabled: false }, accounts: { passwordOptional: true } },
})
/** Has no password; its device is its key. */
const alice = setUp(() => sovereignAccount(pds, 'alice', { password: undefined }))
/** Has a password. */
const bob = setUp(() => createAccount(pds, 'bob'))

/** The QR code of a page as a picture, four pixels for each module. */
function drawn(page: string): { width: number; height: number; data: Uint8Array } {
  const [, size, path] = /class="qr" viewBox="0 0 (\d+) \d+".*?fill="#000" d="([^"]+)"/.exec(page)!
  const side = Number(size) * 4
  const data = new Uint8Array(side * side * 4).fill(255)
  for (const [, x, y, run] of path!.matchAll(/M(\d+) (\d+)h(\d+)/g))
    for (let row = Number(y) * 4; row < Number(y) * 4 + 4; row++)
      for (let column = Number(x) * 4; column < (Number(x) + Number(run)) * 4; column++)
        data.fill(0, (row * side + column) * 4, (row * side + column) * 4 + 3)
  return { width: side, height: side, data }
}

const client = () => new OAuthClient(pds, loopbackClientId(SCOPE))

/** Approve in the wallet, let the browser continue, and redeem the code. */
async function signIn(
  app: OAuthClient,
  grantedScope: string,
  changes: Record<string, string | undefined> = {},
): Promise<Tokens> {
  const consent = await openConsent(app, { scope: SCOPE, login_hint: alice.handle, ...changes })
  expect(await sendDecision(pds, decisionOf(pds, alice, consent, { grantedScope }))).toMatchObject({ status: 200 })
  const { status, body } = await app.redeem(answerOf(await completeConsent(pds, consent.requestId)).get('code')!)
  expect(status).toBe(200)
  return body
}

test('the server says that it can', async () => {
  const { body } = await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)
  expect(body.custos.capabilities).toContain('walletConsent')
})

describe('from the page to a session', () => {
  test('the wallet reads the request, signs it, and the browser carries a code to the app', async () => {
    const app = client()
    const consent = await openConsent(
      app,
      { scope: SCOPE, login_hint: alice.handle },
      { referer: 'https://app.example.com/sign-in?secret' },
    )
    expect({ ...consent }).toMatchObject({
      requestId: expect.stringMatching(/^poauth_[A-Za-z0-9_-]{43}$/),
      userCode: expect.stringMatching(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/),
      matchCode: null,
      link: `obsign:/consent?request_id=${consent.requestId}&origin=https%3A%2F%2Fapp.example.com`,
    })
    const shown = {
      requestId: consent.requestId,
      clientId: app.clientId,
      clientName: app.clientId,
      redirectUri: app.redirectUri,
      origin: 'https://app.example.com',
      ip: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
      requestedScope: SCOPE.split(' '),
      loginHint: 'alice.test',
      matchRequired: false,
    }
    for (const query of [
      { user_code: consent.userCode },
      { user_code: ` ${consent.userCode.toLowerCase().replace('-', '')} ` },
      { request_id: consent.requestId },
    ] as Record<string, string>[])
      expect(await previewOf(pds, query)).toMatchObject({ status: 200, body: shown })
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ status: 200, body: { status: 'pending' } })

    const approved = await sendDecision(
      pds,
      decisionOf(pds, alice, consent, { grantedScope: 'atproto repo:com.example.note' }),
    )
    expect({ status: approved.status, body: approved.body }).toEqual({
      status: 200,
      body: { status: 'approved', did: alice.did },
    })
    pds.clock.advance({ secs: 2 })
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'approved' } })
    expect(await previewOf(pds, { request_id: consent.requestId })).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    })

    const completed = await completeConsent(pds, consent.requestId)
    expect(completed.status).toBe(303)
    expect(Object.fromEntries(answerOf(completed))).toEqual({
      code: expect.any(String),
      state: 'some state',
      iss: pds.url,
    })
    pds.clock.advance({ secs: 2 })
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'completed' } })

    const { status, body: tokens } = await app.redeem(answerOf(completed).get('code')!)
    expect({ status, scope: tokens.scope, sub: tokens.sub }).toEqual({
      status: 200,
      scope: 'atproto repo:com.example.note',
      sub: alice.did,
    })
    expect(await app.call(tokens.access_token, 'com.atproto.server.getSession')).toMatchObject({
      status: 200,
      body: { did: alice.did },
    })
  })

  test('the session is like any other: it refreshes, ends when it is revoked, and is listed', async () => {
    const app = client()
    const tokens = await signIn(app, 'atproto transition:generic')
    const { body: next } = await app.refresh(tokens.refresh_token)
    expect(next).toMatchObject({ scope: 'atproto transition:generic', sub: alice.did })
    const written = {
      repo: alice.did,
      collection: 'com.example.note',
      record: { $type: 'com.example.note', text: 'hello' },
      validate: false,
    }
    const call = (method: string, json: object) => app.call(next.access_token, method, {}, { json })
    expect(await call('com.atproto.repo.createRecord', written)).toMatchObject({ status: 200 })
    expect(await app.revoke(next.access_token)).toMatchObject({ status: 200 })
    expect(await app.call(next.access_token, 'com.atproto.server.getSession')).toMatchObject({ status: 401 })
  })

  test('the code is bound like one of a password: to its verifier, its key and its minute', async () => {
    const codeFor = async (app: OAuthClient) => {
      const consent = await openConsent(app, { scope: SCOPE })
      await sendDecision(pds, decisionOf(pds, alice, consent))
      return answerOf(await completeConsent(pds, consent.requestId)).get('code')!
    }
    const thief = client()
    expect(await thief.redeem(await codeFor(client()))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const app = client()
    expect(await app.redeem(await codeFor(app), { key: client().key })).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
    const late = client()
    const code = await codeFor(late)
    pds.clock.advance({ secs: 61 })
    expect(await late.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('an account that was stopped in between gets no session', async () => {
    const carol = await sovereignAccount(pds, 'carol', { password: undefined })
    const app = client()
    const consent = await openConsent(app, { scope: SCOPE, login_hint: carol.did })
    await sendDecision(pds, decisionOf(pds, carol, consent))
    await carol.call('com.atproto.server.deactivateAccount', { json: {} })
    const code = answerOf(await completeConsent(pds, consent.requestId)).get('code')!
    expect(await app.redeem(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const other = await openConsent(client(), { scope: SCOPE })
    expect(await sendDecision(pds, decisionOf(pds, carol, other))).toMatchObject({ status: 401 })
  })

  test('a fragment carries the answer if the app asked for one', async () => {
    const consent = await openConsent(client(), { scope: SCOPE, response_mode: 'fragment', state: undefined })
    await sendDecision(pds, decisionOf(pds, alice, consent))
    const { headers } = await completeConsent(pds, consent.requestId)
    expect(headers.get('location')).toMatch(/^http:\/\/127\.0\.0\.1:9\/callback#code=[\w-]{43}&iss=/)
  })

  test('what a wallet grants is reduced to the request, in the order of the request', async () => {
    for (const [granted, scope] of [
      ['', 'atproto'],
      ['transition:email atproto', 'atproto transition:email'],
      ['repo:com.example.note transition:generic', 'atproto transition:generic repo:com.example.note'],
      ['atproto identity:* transition:chat.bsky', 'atproto'],
      [` ${SCOPE.replaceAll(' ', '\n\t ')}`, SCOPE],
    ] as const)
      expect((await signIn(client(), granted)).scope).toBe(scope)
  })

  test('a denial ends the request, for the page too', async () => {
    const app = client()
    const consent = await openConsent(app, { scope: SCOPE })
    const denied = await sendDecision(pds, decisionOf(pds, alice, consent, { decision: 'deny' }))
    expect({ status: denied.status, body: denied.body }).toEqual({
      status: 200,
      body: { status: 'denied', did: alice.did },
    })
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'denied' } })
    expect((await completeConsent(pds, consent.requestId)).status).toBe(400)
    expect(await sendDecision(pds, decisionOf(pds, alice, consent))).toMatchObject({ status: 404 })
    expect((await request(app.authorizeUrl(consent.requestUri))).status).toBe(400)
  })

  test('permission sets are granted as they were when the page was opened', async () => {
    await using author = await startLexiconAuthor()
    dns.setTexts('_lexicon.sets.test', `did=${author.did}`)
    const publish = (collection: string) =>
      author.publish('test.sets.auth', {
        lexicon: 1,
        id: 'test.sets.auth',
        defs: {
          main: {
            type: 'permission-set',
            permissions: [{ type: 'permission', resource: 'repo', collection: [collection] }],
          },
        },
      })
    await publish('test.sets.one')
    const scope = 'atproto include:test.sets.auth'
    const app = new OAuthClient(pds, loopbackClientId(scope))
    const consent = await openConsent(app, { scope, login_hint: alice.did })
    const { requestedScope } = (await previewOf(pds, { request_id: consent.requestId })).body
    expect(requestedScope).toEqual(['atproto', 'repo:test.sets.one'])
    await publish('test.sets.two')
    pds.clock.advance({ secs: 200 })
    await sendDecision(pds, decisionOf(pds, alice, consent, { grantedScope: requestedScope.join(' ') }))
    const { body } = await app.redeem(answerOf(await completeConsent(pds, consent.requestId)).get('code')!)
    expect(body.scope).toBe('atproto repo:test.sets.one')
    pds.clock.advance({ days: 2 })
    expect((await app.refresh(body.refresh_token)).body.scope).toBe('atproto repo:test.sets.one')
  })

  test('the client is taken as it was when it asked', async () => {
    const metadata = {
      client_id: `https://${APP_HOST}/client.json`,
      client_name: 'The old\u202e name',
      redirect_uris: [`https://${APP_HOST}/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: SCOPE,
      token_endpoint_auth_method: 'none',
      dpop_bound_access_tokens: true,
    }
    let document: object = metadata
    web.publish(APP_HOST, '/client.json', () => Response.json(document))
    const app = new OAuthClient(pds, metadata.client_id, null, metadata.redirect_uris[0])
    const consent = await openConsent(app, { scope: SCOPE })
    document = { ...metadata, client_name: 'Another', redirect_uris: [`https://${APP_HOST}/elsewhere`] }
    pds.clock.advance({ secs: 200 })
    const before = web.requests.length
    expect((await previewOf(pds, { request_id: consent.requestId })).body).toMatchObject({
      clientName: 'The old name',
      redirectUri: metadata.redirect_uris[0],
    })
    await sendDecision(pds, decisionOf(pds, alice, consent))
    pds.clock.advance({ secs: 1000 })
    const { headers } = await completeConsent(pds, consent.requestId)
    expect(headers.get('location')).toStartWith(`${metadata.redirect_uris[0]}?code=`)
    expect(web.requests.length).toBe(before)
  })
})

describe('a wallet is offered', () => {
  const offered = async (changes: Record<string, string | undefined>) => {
    const app = client()
    return (
      walletPathOf(
        String((await request(app.authorizeUrl(await app.requestUri({ scope: SCOPE, ...changes })))).body),
      ) !== null
    )
  }

  test('unless the account that is meant has a password here', async () => {
    const gone = await createAccount(pds, 'gone')
    await gone.call('com.atproto.server.deactivateAccount', { json: {} })
    const queries = dns.queries.length
    const rows: [string | undefined, boolean][] = [
      [alice.did, true],
      [alice.handle, true],
      [bob.did, false],
      ['BOB.test', false],
      [gone.handle, true],
      [undefined, true],
      ['somebody.example.com', true],
      ['did:plc:abcdefghijklmnopqrstuvwx', true],
      ['did:web:somebody.example.com', true],
    ]
    for (const [hint, expected] of rows) expect([hint, await offered({ login_hint: hint })]).toEqual([hint, expected])
    expect(dns.queries.length).toBe(queries)
  })

  test('on the page itself: not before sign-up, and still after a wrong password', async () => {
    const app = client()
    const create = await app.requestUri({ prompt: 'create' })
    expect((await request(app.authorizeUrl(create))).status).toBe(303)
    expect(walletPathOf((await request(`${app.authorizeUrl(create)}&has_account=yes`)).body)).not.toBeNull()
    expect(await offered({ prompt: 'login' })).toBe(true)

    const requestUri = await app.requestUri()
    const { body: shown } = await request(app.authorizeUrl(requestUri))
    const again = await app.decide(requestUri, { identifier: bob.handle, password: 'wrong' })
    expect({ status: again.status, path: walletPathOf(again.body) }).toEqual({ status: 200, path: walletPathOf(shown) })
    expect(walletPathOf((await request(app.authorizeUrl(requestUri))).body)).toEqual(walletPathOf(shown))
  })

  test('by a page that is shown again only if it was before: a form that was sent by itself makes no request', async () => {
    const app = client()
    const fields = {
      client_id: app.clientId,
      request_uri: await app.requestUri(),
      identifier: bob.handle,
      password: 'wrong',
      action: 'approve',
    }
    const { status, body } = await request(`${pds.url}/oauth/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    })
    expect({ status, path: walletPathOf(body) }).toEqual({ status: 200, path: null })
  })

  test('in elements that wallets in browsers read', async () => {
    const app = client()
    const requestUri = await app.requestUri({ login_hint: alice.handle })
    const { body } = await request(app.authorizeUrl(requestUri))
    const { requestId, userCode } = walletPathOf(body)!
    await latch(pds, requestId, '07')
    const { body: withNumber } = await request(app.authorizeUrl(requestUri))
    for (const element of [
      '<div id="wallet-path">',
      `<div class="user-code mono">${userCode}</div>`,
      '<div class="match-code mono" id="match-code">07</div>',
      ` data-request-id="${requestId}"`,
    ])
      expect(withNumber).toContain(element)
  })

  test('first to an account that signs by wallet, after the password to anybody else', async () => {
    const isFirst = async (login_hint?: string) => {
      const app = client()
      const { body } = await request(app.authorizeUrl(await app.requestUri({ login_hint })))
      return body.indexOf('id="wallet-path"') < body.indexOf('name="password"')
    }
    const hints = [alice.did, alice.handle, undefined, 'somebody.example.com', 'nobody.test']
    expect(await Promise.all(hints.map((hint) => isFirst(hint)))).toEqual([true, true, false, false, false])
  })

  test('beside a password form that works as before, and does not take an app password', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    const consent = walletPathOf((await request(app.authorizeUrl(requestUri))).body)!
    const { body: made } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'an app' } })
    for (const password of [made.password, ' ', 'null', 'undefined'])
      expect((await app.decide(requestUri, { identifier: alice.handle, password })).status).toBe(200)
    const answer = await app.decide(requestUri, { identifier: bob.handle, password: bob.password })
    expect((await app.redeem(answerOf(answer).get('code')!)).body.sub).toBe(bob.did)
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'expired' } })
    expect(await sendDecision(pds, decisionOf(pds, alice, { ...consent, clientId: app.clientId }))).toMatchObject({
      status: 404,
    })
  })

  test('a request that is denied on the page has ended for the wallet', async () => {
    const app = client()
    const consent = await openConsent(app)
    const denied = await app.decide(consent.requestUri, { identifier: '', password: '' }, { action: 'deny' })
    expect(answerOf(denied).get('error')).toBe('access_denied')
    expect(await previewOf(pds, { user_code: consent.userCode })).toMatchObject({ status: 404 })
    expect(await sendDecision(pds, decisionOf(pds, alice, consent))).toMatchObject({ status: 404 })
  })

  test('by a QR code that holds the link', async () => {
    const app = client()
    const { body } = await request(app.authorizeUrl(await app.requestUri()), {
      headers: { referer: 'https://app.example.com/' },
    })
    expect(decodeQR(drawn(body))).toBe(walletPathOf(body)!.link)
  })

  test('in a page that no other site may frame or keep, with a script of this origin alone', async () => {
    const app = client()
    const answer = await request(app.authorizeUrl(await app.requestUri()))
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
    })
    const policy = answer.headers.get('content-security-policy')!
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
      expect(policy).toContain(rule)
    const scripts = [...String(answer.body).matchAll(/<script([^>]*)>([^<]*)/g)]
    expect(scripts).toHaveLength(1)
    const [, attributes, text] = scripts[0]!
    expect(text).toBe('')
    const { status, headers } = await request(pds.url + /src="([^"]+)"/.exec(attributes!)![1]!)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(headers.get('cache-control')).toContain('immutable')
    expect(answer.headers.get('set-cookie') ?? '').not.toContain('consent')
  })
})

describe('a page that is loaded again', () => {
  /** A page of an app that is opened some time after the app has pushed its request. */
  async function openedLate(secs: number) {
    const app = client()
    const requestUri = await app.requestUri()
    pds.clock.advance({ secs })
    const open = () => request(app.authorizeUrl(requestUri))
    return { app, open, load: async () => ({ ...walletPathOf((await open()).body)!, clientId: app.clientId }) }
  }

  test('shows the same request for as long as it waits: five minutes after the app has pushed it, whenever it was opened', async () => {
    const { open, load } = await openedLate(100)
    const consent = await load()
    pds.clock.advance({ secs: 199 })
    expect(await load()).toEqual(consent)
    pds.clock.advance({ secs: 2 })
    expect(await statusOf(pds, consent.requestId)).toMatchObject({ body: { status: 'expired' } })
    expect((await open()).status).toBe(400)
    expect(await sendDecision(pds, decisionOf(pds, alice, consent))).toMatchObject({ status: 404 })
  })

  test('shows an approval, which can be completed when the five minutes are over', async () => {
    const { open, load } = await openedLate(290)
    const consent = await load()
    expect(await sendDecision(pds, decisionOf(pds, alice, consent))).toMatchObject({ status: 200 })
    expect((await open()).body).toContain('Approved in your wallet')
    pds.clock.advance({ secs: 60 })
    expect(await load()).toEqual(consent)
    expect((await completeConsent(pds, consent.requestId)).status).toBe(303)
    expect((await open()).status).toBe(400)
  })

  test('twice at once shows one request', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    const pages = await Promise.all(Array.from({ length: 5 }, () => request(app.authorizeUrl(requestUri))))
    expect(new Set(pages.map(({ body }) => walletPathOf(body)?.requestId)).size).toBe(1)
  })
})

describe('a waiting page', () => {
  test('is told to slow down if it asks for the same request more than once in two seconds', async () => {
    using _ = atOneNode(pds, 'each node paces clients by itself')
    const { requestId } = await openConsent(client())
    const other = await openConsent(client())
    expect(await statusOf(pds, requestId)).toMatchObject({ status: 200, body: { status: 'pending' } })
    for (let i = 0; i < 3; i++) {
      const slow = await statusOf(pds, requestId)
      expect({ status: slow.status, body: slow.body }).toEqual({ status: 429, body: { status: 'slow_down' } })
    }
    expect(await statusOf(pds, other.requestId)).toMatchObject({ status: 200 })
    pds.clock.advance({ secs: 2 })
    const storm = await Promise.all(Array.from({ length: 20 }, () => statusOf(pds, requestId)))
    expect(storm.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('hears the same of what has lapsed and of what never was, and is not cached', async () => {
    const { requestId } = await openConsent(client())
    pds.clock.advance({ secs: 301 })
    for (const id of [requestId, `poauth_${'A'.repeat(43)}`, 'nothing', '']) {
      const { status, body, headers } = await statusOf(pds, id)
      expect({ id, status, body, cache: headers.get('cache-control') }).toEqual({
        id,
        status: 200,
        body: { status: 'expired' },
        cache: 'no-store',
      })
    }
    expect(await request(`${pds.url}/oauth/authorize/status`)).toMatchObject({
      status: 400,
      body: { error: { code: 'InvalidRequest' } },
    })
  })
})

test('approvals can be completed for an hour, and then nothing of them is left', async () => {
  const app = client()
  const consent = await openConsent(app, { scope: SCOPE })
  const forgotten = await openConsent(client(), { scope: SCOPE })
  await sendDecision(pds, decisionOf(pds, alice, consent))
  pds.clock.advance({ secs: 3600 })
  await pds.runSweep('oauth-expiry')
  const { status, headers } = await completeConsent(pds, consent.requestId)
  expect(status).toBe(303)
  expect((await app.redeem(new URL(headers.get('location')!).searchParams.get('code')!)).status).toBe(200)
  pds.clock.advance({ secs: 600 })
  await pds.runSweep('oauth-expiry')
  for (const { requestId } of [consent, forgotten])
    expect(await pds.rows('wallet_consent', { request_id: requestId }, ['status'])).toEqual([])
})
