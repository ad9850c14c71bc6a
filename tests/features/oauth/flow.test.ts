/** From the pushed request to the end of the session, and everything a client may do wrong on the way. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { answerOf, newKey, OAuthClient, REDIRECT_URI } from '../../support/clients/oauth-client.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let person: { identifier: string; password: string }
const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(() => {
  person = { identifier: alice.handle, password: alice.password }
})

const getSession = 'com.atproto.server.getSession'
const client = () => new OAuthClient(pds)
const refusal = (error: string) => ({ status: 400, body: { error } })
const challenge = (error: string) => ({
  status: 401,
  challenge: expect.stringMatching(new RegExp(`^DPoP error="${error}", error_description="[^"]+", algs="ES256"$`)),
})
const told = ({ status, headers }: Awaited<ReturnType<typeof request>>) => ({
  status,
  challenge: headers.get('www-authenticate'),
})

describe('the whole way', () => {
  test('push, consent, token, call, refresh, revoke', async () => {
    const app = client()
    const pushed = await app.push()
    expect(pushed).toMatchObject({ status: 201, body: { expires_in: 300 } })
    expect(pushed.body.request_uri).toMatch(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/)
    expect(pushed.headers.get('cache-control')).toBe('no-store')

    const decided = await app.decide(pushed.body.request_uri, person)
    expect(decided.status).toBe(303)
    expect(decided.headers.get('location')).toStartWith(`${REDIRECT_URI}?`)
    expect(Object.fromEntries(answerOf(decided))).toEqual({
      code: expect.stringMatching(/^[\w-]{43}$/),
      state: 'some state',
      iss: pds.url,
    })

    const { status, headers, body: tokens } = await app.redeem(answerOf(decided).get('code')!)
    expect({ status, tokens }).toMatchObject({
      status: 200,
      tokens: { token_type: 'DPoP', expires_in: 900, scope: 'atproto transition:generic', sub: alice.did },
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('dpop-nonce')).not.toBeNull()

    const session = await app.call(tokens.access_token, getSession)
    expect(session).toMatchObject({ status: 200, body: { did: alice.did, handle: alice.handle } })
    expect(session.body.email).toBeUndefined()

    const refreshed = await app.refresh(tokens.refresh_token)
    expect(refreshed).toMatchObject({ status: 200, body: { sub: alice.did, scope: tokens.scope } })
    expect(refreshed.body.refresh_token).not.toBe(tokens.refresh_token)
    expect(await app.call(refreshed.body.access_token, getSession)).toMatchObject({ status: 200 })

    const revoked = await app.revoke(refreshed.body.access_token)
    expect(revoked).toMatchObject({ status: 200, body: {} })
    expect(told(await app.call(refreshed.body.access_token, getSession))).toEqual(challenge('invalid_token'))
    expect(await app.refresh(refreshed.body.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('a refresh token, and a code, end the session as well', async () => {
    const app = client()
    const code = await app.code(person)
    const { body: tokens } = await app.redeem(code)
    await app.revoke(tokens.refresh_token)
    expect(told(await app.call(tokens.access_token, getSession))).toEqual(challenge('invalid_token'))
    const another = client()
    const unused = await another.code(person)
    await another.revoke(unused)
    expect(await another.redeem(unused)).toMatchObject(refusal('invalid_grant'))
  })

  test('the answer stands in the fragment when the client asks for it, refusals too', async () => {
    const app = client()
    const approved = await app.decide(await app.requestUri({ response_mode: 'fragment', state: undefined }), person)
    expect(new URL(approved.headers.get('location')!).search).toBe('')
    expect(Object.fromEntries(answerOf(approved))).toEqual({ code: expect.any(String), iss: pds.url })
    const denied = await app.decide(await app.requestUri({ response_mode: 'fragment' }), person, { action: 'deny' })
    expect(new URL(denied.headers.get('location')!).search).toBe('')
    expect(Object.fromEntries(answerOf(denied))).toMatchObject({
      error: 'access_denied',
      state: 'some state',
      iss: pds.url,
    })
  })

  test('what a request keeps is short', async () => {
    const { clientId: client_id } = client()
    const challenge = { code_challenge: 'A'.repeat(43), code_challenge_method: 'S256' }
    for (const [name, most, tooMuch] of [
      ['state', 'ä'.repeat(1024), 'ä'.repeat(1025)],
      ['dpop_jkt', 'A'.repeat(43), 'A'.repeat(44)],
    ] as const) {
      const push = (value: string) =>
        request(`${pds.url}/oauth/par`, {
          json: { client_id, response_type: 'code', redirect_uri: REDIRECT_URI, ...challenge, [name]: value },
        })
      expect(await push(most)).toMatchObject({ status: 201 })
      expect(await push(tooMuch)).toMatchObject(refusal('invalid_request'))
    }
  })

  test('JSON does as well as a form, a parameter given twice does not', async () => {
    const app = client()
    const url = `${pds.url}/oauth/par`
    const parameters = {
      client_id: app.clientId,
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      code_challenge: 'A'.repeat(43),
      code_challenge_method: 'S256',
    }
    expect(await request(url, { json: parameters })).toMatchObject({ status: 201 })
    const twice = `${new URLSearchParams(parameters)}&response_type=code`
    const form = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    expect(await request(url, { ...form, body: twice })).toMatchObject(refusal('invalid_request'))
    expect(await request(url, { json: { ...parameters, state: 7 } })).toMatchObject(refusal('invalid_request'))
    expect(await request(url, { json: [] })).toMatchObject(refusal('invalid_request'))
    expect(await request(url, { json: { ...parameters, login_hint: 'a'.repeat(33_000) } })).toMatchObject({
      status: 413,
    })
    expect(await request(url)).toMatchObject({ status: 405 })
  })

  test('browsers of other origins may push, and see the nonce', async () => {
    const preflight = await request(`${pds.url}/oauth/par`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-headers': 'content-type,dpop' },
    })
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    const { headers } = await client().push()
    expect(headers.get('access-control-expose-headers')).toContain('DPoP-Nonce')
  })
})

describe('a request is not pushed', () => {
  const rows: [what: string, changes: Record<string, string | undefined>, error: string][] = [
    ['without a client', { client_id: undefined }, 'invalid_request'],
    ['by a client that is none', { client_id: 'app' }, 'invalid_client'],
    ['by a public client with an assertion', { client_assertion: 'a.b.c' }, 'invalid_client'],
    ['as a request object', { request: 'a.b.c' }, 'request_not_supported'],
    ['by reference', { request_uri: 'urn:x' }, 'invalid_request'],
    ['with OpenID claims', { claims: '{}' }, 'invalid_request'],
    ['with an OpenID nonce', { nonce: 'x' }, 'invalid_request'],
    ['for a token', { response_type: 'token' }, 'unsupported_response_type'],
    ['for another redirect URI', { redirect_uri: 'http://127.0.0.1:9/other' }, 'invalid_request'],
    ['for a redirect to localhost', { redirect_uri: 'http://localhost:9/callback' }, 'invalid_request'],
    ['with a form post as answer', { response_mode: 'form_post' }, 'invalid_request'],
    ['without a challenge', { code_challenge: undefined }, 'invalid_request'],
    ['with a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['without a challenge method', { code_challenge_method: undefined }, 'invalid_request'],
    ['without the base scope', { scope: 'transition:generic' }, 'invalid_scope'],
    ['with openid', { scope: 'atproto openid' }, 'invalid_scope'],
    ['with more than the client declares', { scope: 'atproto transition:generic transition:email' }, 'invalid_scope'],
    ['with what is no scope, and is not declared', { scope: 'atproto space:x' }, 'invalid_scope'],
    ['with what cannot be read, and is not declared', { scope: 'atproto blob:%zz' }, 'invalid_scope'],
    ['with a hint that names nobody', { login_hint: 'not a handle' }, 'invalid_request'],
    ['without consent', { prompt: 'none' }, 'invalid_request'],
    ['for the key of somebody else', { dpop_jkt: 'A'.repeat(43) }, 'invalid_request'],
  ]
  test.each(rows)('%s', async (_what, changes, error) => {
    expect(await client().push(changes)).toMatchObject(refusal(error))
  })

  test('with a permission set that nobody publishes', async () => {
    const app = new OAuthClient(
      pds,
      `http://localhost/?${new URLSearchParams({ scope: 'atproto include:com.example.auth', redirect_uri: REDIRECT_URI })}`,
    )
    expect(await app.push({ scope: 'atproto include:com.example.auth' })).toMatchObject(refusal('invalid_scope'))
  })
})

describe('a proof', () => {
  test('without a nonce is asked for one, at each of the three endpoints and at a resource', async () => {
    for (const path of ['/oauth/par', '/oauth/token', '/oauth/revoke']) {
      const answer = await client().postOnce(path, {
        client_id: client().clientId,
        grant_type: 'refresh_token',
        token: 'x',
      })
      expect(answer).toMatchObject(refusal('use_dpop_nonce'))
      expect(answer.headers.get('dpop-nonce')).not.toBeNull()
    }
    const app = client()
    const { access_token } = await app.signIn(person)
    const answer = await app.callOnce(access_token, getSession, { proof: { nonce: 'made up' } })
    expect(told(answer)).toEqual(challenge('use_dpop_nonce'))
    expect(answer.body.error).toBe('use_dpop_nonce')
    expect(answer.headers.get('dpop-nonce')).not.toBeNull()
  })

  test('holds a nonce for two minutes and across a restart, not for four', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    const { nonce } = app
    pds.clock.advance({ secs: 115 })
    await pds.restart()
    expect(await app.callOnce(access_token, getSession, { proof: { nonce } })).toMatchObject({ status: 200 })
    pds.clock.advance({ secs: 120 })
    expect(told(await app.callOnce(access_token, getSession, { proof: { nonce } }))).toEqual(
      challenge('use_dpop_nonce'),
    )
  })

  test('is used once, but one jti may belong to two keys', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    expect(await app.call(access_token, getSession, { proof: { jti: 'one' } })).toMatchObject({ status: 200 })
    expect(told(await app.callOnce(access_token, getSession, { rawProof: app.lastProof }))).toEqual(
      challenge('invalid_dpop_proof'),
    )
    const other = client()
    const tokens = await other.signIn(person)
    expect(await other.call(tokens.access_token, getSession, { proof: { jti: 'one' } })).toMatchObject({ status: 200 })
    await app.push()
    expect(await app.postOnce('/oauth/par', { client_id: app.clientId }, { rawProof: app.lastProof })).toMatchObject(
      refusal('invalid_dpop_proof'),
    )
  })

  test('of another key, for another place or for another token opens nothing', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    const other = await client().signIn(person)
    expect(told(await app.call(access_token, getSession, { key: newKey() }))).toEqual(challenge('invalid_token'))
    expect(told(await app.call(other.access_token, getSession))).toEqual(challenge('invalid_token'))
    const wrong: Record<string, unknown>[] = [
      { htu: 'https://elsewhere.example/xrpc/com.atproto.server.getSession' },
      { htu: `${pds.url}/xrpc/com.atproto.server.getsession` },
      { htm: 'POST' },
      { ath: undefined },
      { iat: 0 },
    ]
    for (const proof of wrong)
      expect(told(await app.call(access_token, getSession, { proof }))).toEqual(challenge('invalid_dpop_proof'))
    expect(told(await app.callOnce(access_token, getSession, { rawProof: null }))).toEqual(
      challenge('invalid_dpop_proof'),
    )
    expect(
      await app.call(access_token, getSession, { proof: { htu: `${pds.url}/xrpc/${getSession}?a=b` } }),
    ).toMatchObject({ status: 200 })
  })

  test('is compared with the public address, whatever the Host says', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    const url = `${pds.url}/xrpc/${getSession}`
    const { createHash } = await import('node:crypto')
    const ath = createHash('sha256').update(access_token).digest('base64url')
    const dpop = app.proof('GET', `http://forged.example/xrpc/${getSession}`, { ath })
    const answer = await request(url, {
      headers: { host: 'forged.example', authorization: `DPoP ${access_token}`, dpop },
    })
    expect(told(answer)).toEqual(challenge('invalid_dpop_proof'))
  })

  test('must not speak of a token where there is none', async () => {
    expect(await client().push({}, { proof: { ath: 'A'.repeat(43) } })).toMatchObject(refusal('invalid_dpop_proof'))
  })

  test('is not needed to push; the code then belongs to the key that redeems it', async () => {
    const app = client()
    const { status, body } = await app.push({}, { rawProof: null })
    expect(status).toBe(201)
    const code = answerOf(await app.decide(body.request_uri, person)).get('code')!
    expect(await app.redeem(code, { key: newKey() })).toMatchObject({ status: 200 })
  })
})

describe('an access token', () => {
  test('does not do as a bearer token, nor does it outlive its time', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    const asBearer = await request(`${pds.url}/xrpc/${getSession}`, { headers: bearer(access_token) })
    expect({ ...told(asBearer), error: asBearer.body.error }).toEqual({
      ...challenge('invalid_token'),
      error: 'invalid_token',
    })
    // Used before, so that what is remembered of it ends with it.
    expect(await app.call(access_token, getSession)).toMatchObject({ status: 200 })
    pds.clock.advance({ secs: 901 })
    const expired = await app.call(access_token, getSession)
    expect({ ...told(expired), error: expired.body.error }).toEqual({
      ...challenge('invalid_token'),
      error: 'ExpiredToken',
    })
  })

  test('of a session of the service does not do with a proof, nor does one that was tampered with', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    expect(told(await app.call(alice.accessJwt, getSession))).toEqual(challenge('invalid_token'))
    const [header, payload, signature] = access_token.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const widened = Buffer.from(JSON.stringify({ ...claims, scope: 'atproto identity:*' })).toString('base64url')
    expect(told(await app.call(`${header}.${widened}.${signature}`, getSession))).toEqual(challenge('invalid_token'))
    expect(told(await app.call('rubbish', getSession))).toEqual(challenge('invalid_token'))
  })

  test('does not open what apps may not do', async () => {
    const app = client()
    const { access_token } = await app.signIn(person)
    expect(
      await app.call(access_token, 'com.atproto.server.createAppPassword', {}, { json: { name: 'sneaky' } }),
    ).toMatchObject({
      status: 403,
    })
    expect(await app.call(access_token, 'com.atproto.server.listAppPasswords')).toMatchObject({ status: 403 })
  })
})

describe('a code', () => {
  const wrong: [what: string, misstep: (app: OAuthClient) => Parameters<OAuthClient['redeem']>[1]][] = [
    ['with the verifier of another', () => ({ parameters: { code_verifier: 'B'.repeat(43) } })],
    ['without a verifier', () => ({ parameters: { code_verifier: undefined } })],
    ['for another redirect URI', () => ({ parameters: { redirect_uri: 'http://127.0.0.1:9/other' } })],
    ['without a redirect URI', () => ({ parameters: { redirect_uri: undefined } })],
    ['with another key', () => ({ key: newKey() })],
    ['by another client', () => ({ parameters: { client_id: 'http://localhost' } })],
  ]
  test.each(wrong)('%s is refused, and burnt', async (_what, misstep) => {
    const app = client()
    const code = await app.code(person)
    expect(await app.redeem(code, misstep(app))).toMatchObject(refusal('invalid_grant'))
    expect(await app.redeem(code)).toMatchObject(refusal('invalid_grant'))
  })

  test('is good for a minute', async () => {
    const app = client()
    const code = await app.code(person)
    pds.clock.advance({ secs: 61 })
    expect(await app.redeem(code)).toMatchObject(refusal('invalid_grant'))
  })

  test('that is used twice ends what came of it', async () => {
    const app = client()
    const code = await app.code(person)
    const { body: tokens } = await app.redeem(code)
    expect(await app.redeem(code)).toMatchObject(refusal('invalid_grant'))
    expect(told(await app.call(tokens.access_token, getSession))).toEqual(challenge('invalid_token'))
    expect(await app.refresh(tokens.refresh_token)).toMatchObject(refusal('invalid_grant'))
  })

  test('gives one session when it is redeemed twice at once', async () => {
    const app = client()
    const code = await app.code(person)
    const answers = await Promise.all([app.redeem(code), app.redeem(code)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('with a challenge that was redeemed before is refused', async () => {
    const app = client()
    const [first, second] = [await app.code(person), await app.code(person)]
    expect(await app.redeem(first)).toMatchObject({ status: 200 })
    expect(await app.redeem(second)).toMatchObject(refusal('invalid_grant'))
  })

  test('that was made up is refused, and so is a grant that is none', async () => {
    const app = client()
    expect(await app.redeem('x')).toMatchObject(refusal('invalid_grant'))
    expect(await app.redeem('A'.repeat(43), { parameters: { grant_type: 'password' } })).toMatchObject(
      refusal('unsupported_grant_type'),
    )
    expect(await app.redeem('A'.repeat(43), { parameters: { grant_type: undefined } })).toMatchObject(
      refusal('invalid_request'),
    )
  })
})

describe('a refresh token', () => {
  test('that is sent ten times at once is exchanged once, and all are told the same successor', async () => {
    const app = client()
    const { access_token, refresh_token } = await app.signIn(person)
    const answers = await Promise.all(Array.from({ length: 10 }, () => app.refresh(refresh_token)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
    for (const { body } of answers) expect(await app.call(body.access_token, getSession)).toMatchObject({ status: 200 })
    expect(await app.refresh(answers[0]!.body.refresh_token)).toMatchObject({ status: 200 })
    expect(await app.call(access_token, getSession)).toMatchObject({ status: 200 })
  })

  test('is answered alike for a minute, also by a server that was started anew, and to nobody with another key or client', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    const { body: first } = await app.refresh(refresh_token)
    for (const restarts of [false, true, false]) {
      pds.clock.advance({ secs: 15 })
      if (restarts) await pds.restart()
      expect(await app.refresh(refresh_token, { key: newKey() })).toMatchObject(refusal('invalid_grant'))
      expect(await app.refresh(refresh_token, { parameters: { client_id: 'http://localhost' } })).toMatchObject(
        refusal('invalid_grant'),
      )
      expect((await app.refresh(refresh_token)).body).toMatchObject({ refresh_token: first.refresh_token })
    }
    expect(await app.refresh(first.refresh_token)).toMatchObject({ status: 200 })
  })

  test('ends the session a minute after its first use however often it was sent meanwhile, and when its successor was used', async () => {
    const endings: ((app: OAuthClient, token: string) => Promise<unknown>)[] = [
      async (app, token) => {
        await Promise.all([app.refresh(token), app.refresh(token), app.refresh(token)])
        pds.clock.advance({ secs: 61 })
      },
      async (app, token) => {
        await app.refresh(token)
        pds.clock.advance({ secs: 59 })
        await app.refresh(token)
        pds.clock.advance({ secs: 2 })
      },
      async (app, token) => {
        const [answer] = await Promise.all([app.refresh(token), app.refresh(token)])
        await Promise.all([app.refresh(answer.body.refresh_token), app.refresh(answer.body.refresh_token)])
      },
    ]
    for (const spend of endings) {
      const app = client()
      const { access_token, refresh_token } = await app.signIn(person)
      await spend(app, refresh_token)
      expect(await app.refresh(refresh_token)).toMatchObject(refusal('invalid_grant'))
      expect(told(await app.call(access_token, getSession))).toEqual(challenge('invalid_token'))
    }
  })

  test('is worth nothing to another key or client, and they cannot end the session', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    expect(await app.refresh(refresh_token, { key: newKey() })).toMatchObject(refusal('invalid_grant'))
    expect(await app.refresh(refresh_token, { parameters: { client_id: 'http://localhost' } })).toMatchObject(
      refusal('invalid_grant'),
    )
    expect(await app.revoke(refresh_token, { key: newKey() })).toMatchObject({ status: 200 })
    expect(await app.refresh(refresh_token)).toMatchObject({ status: 200 })
  })

  test('of a public client lives for fourteen days, however often it is used', async () => {
    const app = client()
    const { refresh_token } = await app.signIn(person)
    pds.clock.advance({ days: 13 })
    const { body } = await app.refresh(refresh_token)
    pds.clock.advance({ days: 1, secs: 1 })
    expect(await app.refresh(body.refresh_token)).toMatchObject(refusal('invalid_grant'))
    expect((await pds.runSweep('oauth-expiry')).requests).toBeGreaterThan(0)
  })
})
