/** Clients that publish who they are: their documents, their keys, their assertions, and what goes wrong with them. */
import { randomBytes } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { keyOfClient } from '../../../src/features/access/oauth/client-keys.ts'
import type { ClientMetadata } from '../../../src/protocol/client-metadata.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import {
  answerOf,
  loopbackClientId,
  newKey,
  OAuthClient,
  type Key,
  type Misstep,
} from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const HOST = 'app.web.test'
const REDIRECT = `https://${HOST}/callback`

let person: { identifier: string; password: string }
let number = 0
/** Of the client that the test is about; each test has a client of its own. */
let clientId: string
let key: Key
let published: Record<string, unknown>
let keys: object[]

const { pds, dns, web } = useWorld({ web: [HOST] })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(() => {
  person = { identifier: alice.handle, password: alice.password }
})

beforeEach(() => {
  number++
  clientId = `https://${HOST}/${number}/client.json`
  key = newKey()
  keys = [{ ...key.jwk, kid: 'one' }]
  published = {
    client_id: clientId,
    client_name: 'An app',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    scope: 'atproto transition:generic',
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks_uri: `https://${HOST}/${number}/jwks.json`,
    dpop_bound_access_tokens: true,
  }
  web.publish(HOST, `/${number}/client.json`, () => Response.json(published))
  web.publish(HOST, `/${number}/jwks.json`, () => Response.json({ keys }))
  web.requests.length = 0
})

const client = (assertion: { key: Key; kid: string } | null = { key, kid: 'one' }) =>
  new OAuthClient(pds, clientId, assertion, REDIRECT)
const refusal = (error: string) => ({ status: 400, body: { error } })
const fetched = (file: string) => web.requests.filter((place) => place.endsWith(`/${number}/${file}`)).length

/** Combining marks: a parser of URLs puts them in order, which takes the square of their number. */
const longHost = `https://a${'\u0301\u0323'.repeat(300)}.test/`

describe('a client', () => {
  test.each(['https://[', longHost])('whose id is %j, or names it, is refused', async (uri) => {
    const loopback = (given: string) =>
      `http://localhost/?${new URLSearchParams({ scope: 'atproto', redirect_uri: given })}`
    for (const id of [`${uri}x`, loopback(uri), loopback(uri.replace('https:', 'http:'))])
      expect(await new OAuthClient(pds, id).push()).toMatchObject(refusal('invalid_client'))
    expect(await client(null).push({ client_id: clientId, redirect_uri: uri })).toMatchObject({ status: 400 })
  })
})

test('a pushed request is stored with what its page shows of the client, not with all that the client publishes', async () => {
  Object.assign(published, {
    jwks_uri: undefined,
    jwks: { keys: [{ ...key.jwk, kid: 'one', x5c: ['x'.repeat(30_000)] }] },
    redirect_uris: [REDIRECT, ...Array.from({ length: 10 }, (_, i) => `${REDIRECT}/${i}${'x'.repeat(2000)}`)],
    tos_uri: `https://${HOST}/terms`,
  })
  const app = client()
  const requestUri = await app.requestUri()
  const rows = await pds.rows('oauth_request', { client_id: clientId }, ['content'])
  expect(rows.map(({ content }) => content.length < 2000)).toEqual([true])
  expect((await request(app.authorizeUrl(requestUri))).body).toContain(`https://${HOST}/terms`)
  expect((await app.redeem(await app.code(person))).status).toBe(200)
})

test('what has expired is deleted in pieces, until nothing of it is left', async () => {
  const content = JSON.stringify({})
  const lapsed = Array.from({ length: 250 }, (_, i) => ({
    id_hash: `lapsed ${i}`,
    client_id: 'x',
    content,
    expires_at: 1,
  }))
  const fetched_at = 1
  await pds.plant('oauth_request', lapsed)
  await pds.plant(
    'oauth_client',
    lapsed.map(({ id_hash: client_id }) => ({ client_id, document: '{}', fetched_at })),
  )
  const { requests, clients } = (await pds.runSweep('oauth-expiry')) as { requests: number; clients: number }
  expect([requests >= 250, clients >= 250]).toEqual([true, true])
  expect([
    await pds.count('oauth_request', { client_id: 'x' }),
    await pds.count('oauth_client', { fetched_at }),
  ]).toEqual([0, 0])
})

describe('a document', () => {
  test.each(['https://[', longHost])('with the URI %j is refused', async (uri) => {
    const members: Record<string, unknown>[] = [
      { redirect_uris: [uri] },
      { redirect_uris: [REDIRECT, uri] },
      { client_uri: uri },
      { policy_uri: uri },
      { jwks_uri: uri },
      { jwks_uri: undefined, jwks: { keys: [{ ...key.jwk, kid: 'one', x5u: uri }] } },
    ]
    const good = published
    for (const member of members) {
      published = { ...good, ...member }
      expect([member, await client().push()]).toMatchObject([member, refusal('invalid_client')])
      pds.clock.advance({ secs: 61 })
    }
  })

  /** A hundred hosts like the last one take a parser of URLs a seventh of a second, at each request of the client. */
  test.each(['/\n', '/back\r\nSet-Cookie: a=b', '/ ', '/漢', '/ü', `.a${'\u0301\u0323'.repeat(120)}.test/`])(
    'with a redirect URI that ends with %j is refused, and so is a request for one',
    async (end) => {
      const uri = `https://${HOST}${end}`
      published.redirect_uris = [REDIRECT, uri]
      const refused = {
        ...refusal('invalid_client').body,
        error_description: expect.stringContaining('percent-encoded'),
      }
      expect(await client().push()).toMatchObject({ status: 400, body: refused })
      const native = (redirectUri: string) => new OAuthClient(pds, loopbackClientId(undefined, redirectUri))
      expect(await native(`http://127.0.0.1${end}`).push()).toMatchObject(refusal('invalid_client'))
      expect(await native('http://127.0.0.1/').push({ redirect_uri: `http://127.0.0.1:9${end}` })).toMatchObject(
        refusal('invalid_request'),
      )
    },
  )

  test('that is nested deeper than 256 levels is refused', async () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    published.nested = nested(300)
    expect(await client().push()).toMatchObject(refusal('invalid_client'))
    pds.clock.advance({ secs: 61 })
    published.nested = nested(250)
    expect(await client().push()).toMatchObject({ status: 201 })
  })

  test('is fetched once in ten minutes, and then anew', async () => {
    for (let i = 0; i < 3; i++) expect(await client().push()).toMatchObject({ status: 201 })
    expect(fetched('client.json')).toBe(1)
    published.redirect_uris = [`https://${HOST}/elsewhere`]
    pds.clock.advance({ secs: 601 })
    expect(await client().push()).toMatchObject(refusal('invalid_request'))
    expect(fetched('client.json')).toBe(2)
  })

  test('of an app that was away for days is fetched again when it refreshes, and that of an app without a session is not', async () => {
    const app = client()
    const { refresh_token: token } = await app.signIn(person)
    pds.clock.advance({ days: 3 })
    await pds.runSweep('oauth-expiry')
    const before = fetched('client.json')
    expect((await app.refresh(token)).status).toBe(200)
    expect(fetched('client.json')).toBe(before + 1)
    const stranger = new OAuthClient(pds, `https://${HOST}/${number}/unknown.json`, { key, kid: 'one' }, REDIRECT)
    expect(await stranger.refresh(token)).toMatchObject(refusal('invalid_client'))
    expect(fetched('unknown.json')).toBe(0)
  })

  test('that breaks a rule, is no JSON, is too big or leads elsewhere makes no client', async () => {
    const answers: (() => Response)[] = [
      () => Response.json({ ...published, dpop_bound_access_tokens: false }),
      () => Response.json({ ...published, client_id: 'https://other.example/client.json' }),
      () => new Response(JSON.stringify(published), { headers: { 'content-type': 'text/html' } }),
      () => new Response('{', { headers: { 'content-type': 'application/json' } }),
      () => Response.json(published, { status: 404 }),
      () => Response.json({ ...published, policy_uri: `https://${HOST}/${'x'.repeat(70_000)}` }),
      () => new Response(null, { status: 302, headers: { location: `https://${HOST}/1/client.json` } }),
    ]
    for (const [i, answer] of answers.entries()) {
      const path = `/${number}/broken-${i}.json`
      web.publish(HOST, path, answer)
      expect(await new OAuthClient(pds, `https://${HOST}${path}`, null, REDIRECT).push()).toMatchObject(
        refusal('invalid_client'),
      )
    }
  })

  test.each([
    [50, 'must not use a loopback host'],
    [51, 'jwks has more than 50 keys'],
  ])('with %i keys is refused for %s', async (count, reason) => {
    const { jwks_uri: _uri, token_endpoint_auth_signing_alg: _alg, ...open } = published
    published = {
      ...open,
      token_endpoint_auth_method: 'none',
      redirect_uris: ['https://127.0.0.1/'],
      jwks: { keys: Array.from({ length: count }, () => ({})) },
    }
    expect(await client(null).push()).toMatchObject({
      status: 400,
      body: { error: 'invalid_client', error_description: expect.stringContaining(reason) },
    })
  })

  test.each([
    [100, 201],
    [101, 400],
  ])('with %i redirect URIs is answered with %i', async (count, status) => {
    published = {
      ...published,
      redirect_uris: [REDIRECT, ...Array.from({ length: count - 1 }, (_, i) => `${REDIRECT}${i}`)],
    }
    const answer = await client().push()
    expect([count, answer.status]).toEqual([count, status])
    if (status === 400) expect(answer.body.error_description).toContain('redirect_uris has more than 100 entries')
  })

  test('that holds more values than a client needs is not examined', async () => {
    const { jwks_uri: _uri, token_endpoint_auth_signing_alg: _alg, ...open } = published
    // 64 KiB of these keep the library that checks them busy for a second.
    published = {
      ...open,
      token_endpoint_auth_method: 'none',
      jwks: { keys: Array.from({ length: 20_000 }, () => ({})) },
    }
    expect(await client(null).push()).toMatchObject({
      status: 400,
      body: { error: 'invalid_client', error_description: expect.stringContaining('more than 1000 values') },
    })
  })

  test('on a private host, or on a host that has one private address, is not asked for', async () => {
    dns.setAddresses('inside.web.test', '10.0.0.7')
    dns.setAddresses('mixed.web.test', '198.41.0.4', '10.0.0.7')
    for (const host of ['inside.web.test', 'mixed.web.test', 'unknown.web.test'])
      expect(await new OAuthClient(pds, `https://${host}/client.json`, null, REDIRECT).push()).toMatchObject(
        refusal('invalid_client'),
      )
    expect(web.requests.filter((place) => !place.startsWith(HOST))).toEqual([])
  })

  test('on the host of the server, by any of its names, is not one of an app', async () => {
    await using own = await startPds({ publicUrl: 'https://pds.example', formerUrls: ['https://old.example'] })
    for (const host of ['pds.example', 'PDS.example', 'pds.example.', 'old.example', 'old.example.']) {
      const app = new OAuthClient(
        { url: own.url, clock: own.clock, publicUrl: 'https://pds.example' },
        `https://${host}/app.json`,
        null,
        REDIRECT,
      )
      const { status, body } = await app.push()
      expect([status, body.error_description]).toEqual([
        400,
        'invalid_client_metadata: an app cannot be on the host of this server',
      ])
    }
  })

  test('that failed is not asked for again for a minute', async () => {
    using _ = atOneNode(pds, 'each node fetches for itself')
    const good = published
    published = { ...good, scope: 'nothing' }
    for (let i = 0; i < 3; i++) expect(await client().push()).toMatchObject(refusal('invalid_client'))
    expect(fetched('client.json')).toBe(1)
    published = good
    pds.clock.advance({ secs: 61 })
    expect(await client().push()).toMatchObject({ status: 201 })
  })

  test('that has become invalid is refused as long as it is, whatever it was before', async () => {
    expect(await client().push()).toMatchObject({ status: 201 })
    published = { ...published, scope: 'nothing' }
    pds.clock.advance({ secs: 601 })
    for (let i = 0; i < 3; i++) expect(await client().push()).toMatchObject(refusal('invalid_client'))
  })

  test('that cannot be reached for a while does not end a session; one that stays away does', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    web.publish(HOST, `/${number}/client.json`, () => new Response(null, { status: 503 }))
    pds.clock.advance({ secs: 3600 })
    const { status, body } = await app.refresh(refresh_token)
    expect(status).toBe(200)
    pds.clock.advance({ days: 2 })
    expect(await app.refresh(body.refresh_token)).toMatchObject(refusal('invalid_client'))
  })

  test('is not fetched for a page or a token of a client that was never here', async () => {
    expect(await client().redeem('A'.repeat(43))).toMatchObject(refusal('invalid_client'))
    expect(web.requests).toEqual([])
  })

  test('without the refresh grant gives no refresh token', async () => {
    published.grant_types = ['authorization_code']
    const app = client()
    const tokens = await app.signIn(person)
    expect(tokens.refresh_token).toBeUndefined()
    expect(await app.refresh('A'.repeat(43))).toMatchObject(refusal('unauthorized_client'))
  })
})

test('key sets are kept by what they take: many of a client each, and few that are stuffed with keys', async () => {
  await using own = await startPds()
  const fetched: string[] = []
  let published: object[] = keys
  own.ctx.outbound.fetch = async (url) => {
    fetched.push(String(url))
    return Response.json({ keys: published })
  }
  const ask = (app: string) =>
    keyOfClient(
      own.ctx,
      {
        authentication: {
          method: 'private_key_jwt',
          alg: 'ES256',
          jwks: null,
          jwksUri: `https://${app}.example/jwks.json`,
        },
      } as ClientMetadata,
      'one',
    )
  for (let app = 0; app < 2000; app++) await ask(`app${app}`)
  for (let app = 0; app < 2000; app++) expect(await ask(`app${app}`)).toMatchObject(keys[0]!)
  expect(fetched).toHaveLength(2000)
  published = Array.from({ length: 20_000 }, () => ({}))
  for (let app = 0; app < 20; app++) await ask(`stuffed${app}`)
  published = keys
  expect(await ask('stuffed0')).toMatchObject(keys[0]!)
})

test('a confidential client that asks for no questions is told that there are some', async () => {
  const app = client()
  const answer = await request(app.authorizeUrl(await app.requestUri({ prompt: 'none', response_mode: 'fragment' })))
  expect(answer.status).toBe(303)
  expect(Object.fromEntries(answerOf(answer))).toMatchObject({
    error: 'login_required',
    state: 'some state',
    iss: pds.url,
  })
  expect(answer.headers.get('location')).toStartWith(`${REDIRECT}#`)
})

test('the page names the host of the client, which it cannot choose, before what it calls itself', async () => {
  published.client_name = 'Your bank \u202E<b>& more'
  published.logo_uri = 'https://elsewhere.example/logo.png'
  const app = client()
  const { body } = await request(app.authorizeUrl(await app.requestUri()))
  expect(body).toContain(`<h1>Sign in to ${HOST}?</h1>`)
  expect(body).toContain('It calls itself “<bdi>Your bank &lt;b&gt;&amp; more</bdi>”')
  expect(body).not.toContain('logo.png')
})

describe('an assertion', () => {
  const wrong: [what: string, claims: Record<string, unknown>][] = [
    ['of another issuer', { iss: 'https://other.example/client.json' }],
    ['about another client', { sub: 'https://other.example/client.json' }],
    ['for another server', { aud: 'https://other.example' }],
    ['for nobody', { aud: undefined }],
    ['for a number', { aud: [7] }],
    ['for an object', { aud: { toString: 7 } }],
    ['without its time', { iat: undefined }],
    ['of more than a minute ago', { iat: Math.floor(Date.now() / 1000) - 100_000_000 }],
    ['of the future', { iat: Math.floor(Date.now() / 1000) + 100_000_000 }],
    ['that has expired', { exp: 1 }],
    ['that is not valid yet', { nbf: 9_000_000_000 }],
    ['without a jti', { jti: undefined }],
  ]
  test.each(wrong)('%s is refused', async (_what, claims) => {
    const app = client()
    expect(await app.push({ client_assertion: app.clientAssertion(claims) })).toMatchObject(refusal('invalid_client'))
  })

  test('that is missing, unsigned, signed by another key or under another name is refused', async () => {
    const app = client()
    const unsigned = `${Buffer.from('{"alg":"none","kid":"one"}').toString('base64url')}.${app.clientAssertion().split('.')[1]}.`
    const attempts: Misstep['parameters'][] = [
      { client_assertion: undefined, client_assertion_type: undefined },
      { client_assertion_type: 'urn:other' },
      { client_assertion: unsigned },
      { client_assertion: app.clientAssertion({}, { key: newKey(), kid: 'one' }) },
      { client_assertion: app.clientAssertion({}, { key, kid: 'unknown' }) },
      { client_assertion: 'rubbish' },
    ]
    for (const parameters of attempts) expect(await app.push(parameters)).toMatchObject(refusal('invalid_client'))
  })

  test('an assertion of a client is used once', async () => {
    const app = client()
    const client_assertion = app.clientAssertion()
    await app.push()
    expect(await app.push({ client_assertion })).toMatchObject({ status: 201 })
    expect(await app.push({ client_assertion })).toMatchObject(refusal('invalid_client'))
  })

  test('may have a long jti, which is used once as well', async () => {
    const app = client()
    await app.push()
    const client_assertion = app.clientAssertion({ jti: randomBytes(6000).toString('base64url') })
    expect(await app.push({ client_assertion })).toMatchObject({ status: 201 })
    expect(await app.push({ client_assertion })).toMatchObject(refusal('invalid_client'))
    const rows = await pds.rows('oauth_replay', { kind: 'assertion' })
    expect(Math.max(...rows.map(({ value }) => String(value).length))).toBeLessThan(100)
  })

  test('may tell its times in parts of a second', async () => {
    const app = client()
    await app.push()
    const times = { iat: app.nowSecs + 0.1234, exp: app.nowSecs + 30.5678 }
    expect(await app.push({ client_assertion: app.clientAssertion(times) })).toMatchObject({ status: 201 })
    expect(await app.push({ client_assertion: app.clientAssertion({ ...times, exp: undefined }) })).toMatchObject({
      status: 201,
    })
  })

  test('is needed at every endpoint, and its key is not that of the proofs', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    const none = { client_assertion: undefined, client_assertion_type: undefined }
    expect(await app.refresh(refresh_token, { parameters: none })).toMatchObject(refusal('invalid_client'))
    expect(await app.revoke(refresh_token, { parameters: none })).toMatchObject(refusal('invalid_client'))
    expect(await app.refresh(refresh_token)).toMatchObject({ status: 200 })
    expect(await app.push({}, { key })).toMatchObject(refusal('invalid_request'))
  })
})

describe('keys', () => {
  test('are fetched again for an unknown kid, but not more often than the cooldown allows', async () => {
    using _ = atOneNode(pds, 'each node fetches for itself')
    expect(await client().push()).toMatchObject({ status: 201 })
    const next = newKey()
    keys = [{ ...next.jwk, kid: 'two' }]
    expect(await client({ key: next, kid: 'two' }).push()).toMatchObject(refusal('invalid_client'))
    expect(fetched('jwks.json')).toBe(1)
    pds.clock.advance({ secs: 31 })
    expect(await client({ key: next, kid: 'two' }).push()).toMatchObject({ status: 201 })
    for (let i = 0; i < 3; i++)
      expect(await client({ key: next, kid: 'three' }).push()).toMatchObject(refusal('invalid_client'))
    expect(fetched('jwks.json')).toBe(2)
  })

  test('that were withdrawn stop working when the copy is too old, and end what is bound to them', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    const next = newKey()
    keys = [{ ...next.jwk, kid: 'two' }]
    expect(await app.push()).toMatchObject({ status: 201 })
    pds.clock.advance({ secs: 3601 })
    expect(await app.push()).toMatchObject(refusal('invalid_client'))
    const renewed = client({ key: next, kid: 'two' })
    renewed.key = app.key
    expect(await renewed.refresh(refresh_token)).toMatchObject(refusal('invalid_grant'))
    keys = [{ ...key.jwk, kid: 'one' }]
    pds.clock.advance({ secs: 3601 })
    expect(await app.refresh(refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('of one client are not interchangeable in a session', async () => {
    const other = newKey()
    keys = [...keys, { ...other.jwk, kid: 'two' }]
    const app = client()
    const { refresh_token } = await app.signIn(person)
    const changed = client({ key: other, kid: 'two' })
    changed.key = app.key
    expect(await changed.refresh(refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect(await app.refresh(refresh_token)).toMatchObject({ status: 200 })
  })

  test('make sessions that live for two years, when they are used every three months', async () => {
    const app = client()
    let { refresh_token } = await app.signIn(person)
    for (let quarter = 0; quarter < 8; quarter++) {
      pds.clock.advance({ days: 90 })
      const { status, body } = await app.refresh(refresh_token)
      expect(status).toBe(200)
      refresh_token = body.refresh_token
    }
    pds.clock.advance({ days: 11 })
    expect(await app.refresh(refresh_token)).toMatchObject(refusal('invalid_grant'))
  })
})
