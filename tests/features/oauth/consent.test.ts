/**
 * The page of an authorization request, looked at and answered without a browser: what it shows, and what it must not
 * do.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import {
  answerOf,
  hiddenFields,
  loopbackClientId,
  OAuthClient,
  REDIRECT_URI,
} from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const SCOPE = 'atproto transition:generic transition:email repo:com.example.note'

let person: { identifier: string; password: string }
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(() => {
  person = { identifier: alice.handle, password: alice.password }
})

const client = () => new OAuthClient(pds, loopbackClientId(SCOPE))
const form = (fields: Record<string, string>, headers: Record<string, string> = {}): Parameters<typeof request>[1] => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  body: new URLSearchParams(fields).toString(),
})
const post = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${pds.url}/oauth/authorize`, form(fields, headers))
const page = ({ status, headers, body }: Answer) => ({
  status,
  isPage: headers.get('content-type') === 'text/html; charset=utf-8',
  body: String(body),
})

describe('the page', () => {
  test('shows who asks, for what, and where it leads, and lets nobody put it into another page', async () => {
    const app = client()
    const answer = await request(app.authorizeUrl(await app.requestUri({ scope: SCOPE, login_hint: 'Alice.test' })))
    const { status, isPage, body } = page(answer)
    expect({ status, isPage }).toEqual({ status: 200, isPage: true })
    for (const text of [
      'transition:email',
      'See your email address',
      'repo:com.example.note',
      '127.0.0.1:9',
      'value="alice.test"',
    ])
      expect(body).toContain(text)
    expect(body).toContain(Bun.escapeHTML(app.clientId))
    expect(Object.keys(hiddenFields(body))).toEqual(['request_uri', 'client_id', 'form_token'])
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
    })
    const policy = answer.headers.get('content-security-policy')!
    for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "script-src 'self'"])
      expect(policy).toContain(rule)
    expect(policy).not.toContain('unsafe')
    expect(body).not.toContain('<script')
    expect(body).not.toMatch(/(src|href)="https?:\/\/(?!localhost)/)
  })

  test('is shown again when it is loaded again, until the request is five minutes old', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    for (let i = 0; i < 3; i++) {
      expect(await request(app.authorizeUrl(requestUri))).toMatchObject({ status: 200 })
      pds.clock.advance({ secs: 99 })
    }
    expect((await app.decide(requestUri, { ...person, password: 'wrong' })).status).toBe(200)
    pds.clock.advance({ secs: 4 })
    expect(await request(app.authorizeUrl(requestUri))).toMatchObject({ status: 400 })
    expect((await post({ request_uri: requestUri, client_id: app.clientId, action: 'approve' })).status).toBe(400)
  })

  test('is not there for what was not pushed, is over, or belongs to another client', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    const path = (query: Record<string, string>) => request(`${pds.url}/oauth/authorize?${new URLSearchParams(query)}`)
    const { clientId: client_id } = app
    const refused = [
      await path({ client_id }),
      await path({ request_uri: requestUri }),
      await path({ client_id, response_type: 'code', redirect_uri: REDIRECT_URI, scope: 'atproto' }),
      await path({ client_id, request_uri: requestUri, request: 'a.b.c' }),
      await path({ client_id, request_uri: 'urn:ietf:params:oauth:request_uri:unknown' }),
      await path({ client_id, request_uri: `${requestUri.slice(0, -1)}_` }),
    ]
    for (const answer of refused) expect(page(answer)).toMatchObject({ status: 400, isPage: true })
    for (const answer of refused) expect(answer.headers.get('location')).toBeNull()
    expect(await request(app.authorizeUrl(requestUri))).toMatchObject({ status: 200 })
    expect(await path({ client_id: 'http://localhost', request_uri: requestUri })).toMatchObject({ status: 400 })
    expect(await request(app.authorizeUrl(requestUri))).toMatchObject({ status: 400 })
  })

  test('comes after the sign-up page when the app asks for a new account', async () => {
    const app = client()
    const answer = await request(app.authorizeUrl(await app.requestUri({ prompt: 'create' })))
    expect(answer.status).toBe(303)
    expect(answer.headers.get('location')).toStartWith('/account/sign-up?request_uri=')
    const { body } = await request(pds.url + answer.headers.get('location'))
    const back = /href="(\/oauth\/authorize[^"]*)"/.exec(body)![1]!.replaceAll('&amp;', '&')
    expect(await request(pds.url + back)).toMatchObject({ status: 200 })
  })

  test('is not handed to scripts and frames', async () => {
    const app = client()
    const url = app.authorizeUrl(await app.requestUri())
    const headers: Record<string, string>[] = [
      { 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ]
    for (const one of headers) expect(await request(url, { headers: one })).toMatchObject({ status: 400 })
    expect(
      await request(url, { headers: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } }),
    ).toMatchObject({ status: 200 })
  })
})

describe('the answer', () => {
  test('grants what is ticked, in the order of the request, and nothing that was added', async () => {
    const app = client()
    const requestUri = await app.requestUri({ scope: SCOPE })
    const answer = await app.decide(requestUri, person, {
      granted_scope: ['repo:com.example.note', 'transition:email', 'transition:chat.bsky', 'identity:*'],
    })
    const { body } = await app.redeem(answerOf(answer).get('code')!)
    expect(body.scope).toBe('atproto transition:email repo:com.example.note')
    expect(await app.call(body.access_token, 'com.atproto.server.getSession')).toMatchObject({
      status: 200,
      body: { email: alice.email },
    })
  })

  test('with nothing ticked leaves the sign-in alone', async () => {
    const app = client()
    const answer = await app.decide(await app.requestUri({ scope: SCOPE }), person, { granted_scope: [] })
    const { body } = await app.redeem(answerOf(answer).get('code')!)
    expect(body.scope).toBe('atproto')
    const { status, body: session } = await app.call(body.access_token, 'com.atproto.server.getSession')
    expect({ status, email: session.email }).toEqual({ status: 200, email: undefined })
  })

  test('of no needs no password, and ends the request', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    const denied = await app.decide(requestUri, { identifier: '', password: '' }, { action: 'deny' })
    expect(denied.status).toBe(303)
    expect(Object.fromEntries(answerOf(denied))).toMatchObject({
      error: 'access_denied',
      state: 'some state',
      iss: pds.url,
    })
    expect(await request(app.authorizeUrl(requestUri))).toMatchObject({ status: 400 })
  })

  test('needs nothing but the request and who decides', async () => {
    const requestUri = await client().requestUri()
    expect(await post({ request_uri: requestUri, action: 'approve', ...person })).toMatchObject({ status: 303 })
  })

  test('the decision on a consent page counts once', async () => {
    const app = client()
    const requestUri = await app.requestUri()
    const fields = { request_uri: requestUri, client_id: app.clientId, action: 'approve', ...person }
    const agents = ['Mozilla/5.0 Firefox/128.0', 'Mozilla/5.0 Firefox/128.1']
    const answers = await Promise.all(agents.map((agent) => post(fields, { 'user-agent': agent })))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 400])
  })

  test('must be yes or no, for the request as it was pushed, from a page of ours', async () => {
    const app = client()
    const fields = { request_uri: await app.requestUri(), client_id: app.clientId, action: 'approve', ...person }
    const refused = [
      await post({ ...fields, action: 'maybe' }),
      await post({ ...fields, redirect_uri: 'https://elsewhere.example/' }),
      await post({ ...fields, scope: 'atproto identity:*' }),
      await post({ ...fields, state: 'another' }),
    ]
    for (const answer of refused) expect(page(answer)).toMatchObject({ status: 400, isPage: true })
    expect(await post(fields, { 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
    expect(await post(fields, { 'sec-fetch-site': 'same-site' })).toMatchObject({ status: 403 })
    expect(await post(fields, { origin: 'https://elsewhere.example' })).toMatchObject({ status: 403 })
    expect(await post(fields, { origin: 'null' })).toMatchObject({ status: 403 })
    const shown = await request(app.authorizeUrl(fields.request_uri))
    const { form_token = '' } = hiddenFields(shown.body)
    const cookie = shown.headers.get('set-cookie')!.split(';')[0]!
    expect(await post({ ...fields, form_token, state: 'another' }, { origin: 'null', cookie })).toMatchObject({
      status: 400,
    })
    expect(
      await post({ ...fields, state: 'some state', scope: 'atproto transition:generic', redirect_uri: REDIRECT_URI }),
    ).toMatchObject({
      status: 303,
    })
  })

  test('takes a DID, a handle in any spelling or an address, and the hint binds nobody', async () => {
    const bob = await createAccount(pds, 'bob')
    for (const identifier of [alice.did, '@ALICE.test', alice.email]) {
      const app = client()
      const answer = await app.decide(await app.requestUri({ login_hint: bob.handle }), {
        identifier,
        password: alice.password,
      })
      expect((await app.redeem(answerOf(answer).get('code')!)).body.sub).toBe(alice.did)
    }
  })
})

describe('a sign-in', () => {
  const told = (body: unknown) => /<p class="note error"[^>]*>([^<]*)/.exec(String(body))?.[1]

  test('that fails says the same whatever is wrong, and shows the page as it was left', async () => {
    const appPassword = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'an app' } })
    const app = client()
    const requestUri = await app.requestUri({ scope: SCOPE })
    const attempts = [
      { identifier: alice.handle, password: 'wrong' },
      { identifier: 'nobody.test', password: alice.password },
      { identifier: 'nobody@example.com', password: 'wrong' },
      { identifier: 'no identifier at all!', password: 'wrong' },
      { identifier: alice.handle, password: appPassword.body.password },
      { identifier: alice.handle, password: 'x'.repeat(600) },
    ]
    const answers = await Promise.all(
      attempts.map((attempt) => app.decide(requestUri, attempt, { granted_scope: ['transition:email'] })),
    )
    expect(answers.map(({ status }) => status)).toEqual(attempts.map(() => 200))
    expect(new Set(answers.map(({ body }) => told(body))).size).toBe(1)
    expect(told(answers[0]!.body)).toContain('is wrong')
    expect(String(answers[0]!.body)).toContain('value="transition:email" checked')
    expect(String(answers[0]!.body)).not.toContain('value="transition:generic" checked')
    for (const { body } of answers) expect(String(body)).not.toContain('wrong"')
    expect(told((await app.decide(requestUri, { identifier: '', password: '' })).body)).toContain('Please enter')
  })

  test('is not even tried after five failures in a minute, with the right password either', async () => {
    const carol = await createAccount(pds, 'carol')
    const app = client()
    const requestUri = await app.requestUri()
    for (let i = 0; i < 5; i++) await app.decide(requestUri, { identifier: carol.handle, password: 'wrong' })
    expect(told((await app.decide(requestUri, { identifier: carol.handle, password: carol.password })).body)).toContain(
      'Too many attempts',
    )
    pds.clock.advance({ secs: 61 })
    expect(await app.decide(requestUri, { identifier: carol.handle, password: carol.password })).toMatchObject({
      status: 303,
    })
  })

  test('to an account that is not active goes back with a refusal, after the right password only', async () => {
    const dave = await createAccount(pds, 'dave')
    await dave.call('com.atproto.server.deactivateAccount', { json: {} })
    const app = client()
    const requestUri = await app.requestUri()
    expect(await app.decide(requestUri, { identifier: dave.handle, password: 'wrong' })).toMatchObject({ status: 200 })
    expect(
      answerOf(await app.decide(requestUri, { identifier: dave.handle, password: dave.password })).get('error'),
    ).toBe('access_denied')
  })

  test('names are shown as they are, and never run', async () => {
    const app = client()
    const answer = await app.decide(await app.requestUri(), {
      identifier: '"><script>alert(1)</script>',
      password: 'x',
    })
    expect(String(answer.body)).not.toContain('<script>')
  })
})

test('under https the cookie is sent nowhere else, and not to scripts', async () => {
  await using secure = await startPds({ publicUrl: 'https://pds.example' })
  const erin = await createAccount(secure, 'erin')
  const answer = await request(
    `${secure.url}/account/sign-in`,
    form({ identifier: erin.handle, password: erin.password, remember: 'yes' }, { origin: 'https://pds.example' }),
  )
  expect(answer).toMatchObject({ status: 303 })
  const cookie = answer.headers.get('set-cookie')!
  expect(cookie).toMatch(/^__Host-holdfast=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=2592000$/)
  expect(answer.headers.get('location')).toBe('/account')
  const account = await request(`${secure.url}/account`, { headers: { cookie: cookie.split(';')[0]! } })
  expect(account.status).toBe(200)
  expect(account.headers.get('strict-transport-security')).not.toBeNull()
  expect(account.headers.get('access-control-allow-origin')).toBeNull()
})
