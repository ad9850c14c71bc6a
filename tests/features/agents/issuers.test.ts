/** Agents that trusted issuers vouch for: which assertions are believed, and what follows. */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { TrustedIssuer } from '../../../src/platform/configuration/trusted-issuers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent, exchangeAgent, openAgentClaim, pollAgent } from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import {
  fixedIssuer,
  identityAssertion,
  ISSUER,
  issuerKey,
  notifyEvent,
  presentIdentity,
  revocation,
  signedText,
} from '../../support/servers/issuer.ts'
import { startPds } from '../../support/servers/pds.ts'
import vectors from '../../vectors/contract/agents-assertion-and-set.json' with { type: 'json' }
import { countOf, eventsOf } from '../../support/agent-rows.ts'
import { useWorld } from '../../support/world.ts'

const OTHER_ISSUER = 'https://other.example.net'
const SCOPES = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']
const key = issuerKey('idp-1')
const [second, foreign, otherKey] = [issuerKey('idp-2'), issuerKey('idp-1'), issuerKey('other-1')]

let alice: TestAccount
const clock = new StillClock()
const { pds } = useWorld({
  config: {
    agentAuth: { trustedIssuers: [fixedIssuer([key, second]), fixedIssuer([otherKey], { issuer: OTHER_ISSUER })] },
    rateLimit: { enabled: false },
  },
  options: { clock },
})
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
})

let subject = ''
let people = 0
beforeEach(() => {
  subject = `person-${people++}`
})

type Made = Parameters<typeof identityAssertion>[2]
const assertion = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}, by = key) =>
  identityAssertion(pds, by, { header, claims: { sub: subject, ...claims } })
const present = (claims: Record<string, unknown> = {}, made: Made = {}, by = key): Promise<Answer> =>
  presentIdentity(pds, assertion(claims, made?.header, by))
const secs = () => clock.now() / 1000

const invalidGrant = { status: 401, body: { error: 'invalid_grant', error_description: expect.any(String) } }
/** Expects that the person has to confirm. Compares a copy: a comparison with patterns changes what it compares. */
function expectAsked(answer: Answer): void {
  expect({ status: answer.status, body: structuredClone(answer.body) }).toEqual({
    status: 401,
    body: {
      error: 'interaction_required',
      error_description: expect.any(String),
      claim_token: expect.stringMatching(/^clm_/),
      claim: {
        user_code: expect.stringMatching(/^\d{6}$/),
        verification_uri: expect.stringMatching(/\/agent\/claim$/),
        expires_at: new Date(Number(new Date(answer.body.claim?.expires_at))).toISOString(),
      },
    },
  })
}

/** Expects a refusal after which nothing has been added. */
async function refused(answer: () => Promise<Answer>, expected: object): Promise<void> {
  const before = await countOf(pds)
  expect(await answer()).toMatchObject(expected)
  expect(await countOf(pds)).toEqual(before)
}

/** Registers, and has the account confirm. */
async function claimed(): Promise<{ id: string; claimToken: string }> {
  const { body } = await present()
  expect(body.error).toBe('interaction_required')
  const { body: confirmed } = await confirmAgent(pds, alice, body.claim.user_code)
  return { id: confirmed.registration_id, claimToken: body.claim_token }
}

describe('the first sight of a person', () => {
  test('registers, opens a claim, and ends in a token once the account confirms', async () => {
    const first = await present()
    expectAsked(first)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(await pollAgent(pds, first.body.claim_token)).toMatchObject({
      status: 400,
      body: { error: 'authorization_pending' },
    })
    const confirmed = await confirmAgent(pds, alice, first.body.claim.user_code)
    expect(confirmed).toMatchObject({ status: 200, body: { status: 'claimed', did: alice.did } })
    const again = await present()
    const { identity_assertion: issued, ...rest } = again.body
    expect({ status: again.status, body: rest }).toEqual({
      status: 200,
      body: {
        registration_id: confirmed.body.registration_id,
        registration_type: 'identity_assertion',
        assertion_expires: new Date(clock.now() + 3_600_000).toISOString(),
        scopes: SCOPES,
      },
    })
    expect(await exchangeAgent(pds, issued)).toMatchObject({ status: 200, body: { scope: SCOPES.join(' ') } })
    expect((await eventsOf(pds, confirmed.body.registration_id)).map(({ type, did }) => [type, did])).toEqual([
      ['registered', alice.did],
      ['claim_initiated', alice.did],
      ['claim_confirmed', alice.did],
      ['token_exchanged', alice.did],
    ])
  })

  test.each([
    ['no address', { email: undefined }, 400, 'invalid_grant'],
    ['an empty address', { email: ' ' }, 400, 'invalid_grant'],
    ['an address that is a number', { email: 7 }, 400, 'invalid_grant'],
    ['an address that is not verified', { email_verified: false }, 400, 'invalid_grant'],
    ['an address that is verified in words', { email_verified: 'false' }, 400, 'invalid_grant'],
    [
      'an address whose letters only look like it',
      { email: 'alice@example.com'.replace('x', 'х') },
      400,
      'invalid_grant',
    ],
    [
      'an address with a letter that is another one in lower case',
      { email: 'alice@example.com'.replace('l', 'L').replace('c', 'ſ') },
      400,
      'invalid_grant',
    ],
    ['an address that no account has', { email: 'nobody@example.com' }, 403, 'access_denied'],
    ['something that is no address', { email: 'alice' }, 403, 'access_denied'],
  ])('is refused with %s, and adds nothing', async (_, claims, status, error) => {
    await refused(() => present(claims), { status, body: { error } })
  })

  test('finds the account whatever the case of the address, and without a word on its verification', async () => {
    expectAsked(await present({ email: ' Alice@EXAMPLE.com ', email_verified: undefined }))
  })

  test('is refused for an account that is not active', async () => {
    const bob = await createAccount(pds, `bob${people}`)
    await bob.call('com.atproto.server.deactivateAccount', { json: {} })
    await refused(() => present({ email: bob.email }), { status: 403, body: { error: 'access_denied' } })
  })

  test('happens once when two requests race', async () => {
    const answers = await Promise.all([present(), present(), present()])
    for (const answer of answers) expectAsked(answer)
    // Within five seconds the code is the same; the claim token is new each time, and the newest one alone counts.
    expect(new Set(answers.map(({ body }) => body.claim.user_code)).size).toBe(1)
    const rows = await pds.rows('agent_registration', { subject }, ['id'])
    expect(rows).toHaveLength(1)
    const polled = await Promise.all(answers.map(({ body }) => pollAgent(pds, body.claim_token)))
    expect(polled.map(({ body }) => body.error).toSorted()).toEqual([
      'authorization_pending',
      'invalid_grant',
      'invalid_grant',
    ])
    const registered = await pds.rows('agent_event', { type: 'registered', registration_id: rows[0]!.id })
    expect(registered).toHaveLength(1)
  })
})

describe('a person who is known', () => {
  test('a person who is known and waits gets a new claim token each time, and a new code after five seconds', async () => {
    const first = await present()
    clock.advance({ secs: 4 })
    const soon = await present()
    expectAsked(soon)
    expect(soon.body.claim.user_code).toBe(first.body.claim.user_code)
    expect(soon.body.claim_token).not.toBe(first.body.claim_token)
    expect(await openAgentClaim(pds, first.body.claim_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_claim_token' },
    })
    clock.advance({ secs: 1 })
    const later = await present({ email: undefined })
    expectAsked(later)
    expect(later.body.claim.user_code).not.toBe(first.body.claim.user_code)
    expect(await confirmAgent(pds, alice, first.body.claim.user_code)).toMatchObject({
      status: 400,
      body: { error: 'claim_expired' },
    })
    expect(await confirmAgent(pds, alice, later.body.claim.user_code)).toMatchObject({ status: 200 })
  })

  test('gets a live claim token again after the old one has expired', async () => {
    await present()
    clock.advance({ secs: 700 })
    const later = await present()
    expectAsked(later)
    expect(await pollAgent(pds, later.body.claim_token)).toMatchObject({
      status: 400,
      body: { error: 'authorization_pending' },
    })
  })

  test('is not bound to the address any more: it is the subject that counts', async () => {
    const { id } = await claimed()
    expect(await present({ email: 'nobody@example.com' })).toMatchObject({ status: 200, body: { registration_id: id } })
    expect(await present({ email: undefined })).toMatchObject({ status: 200, body: { registration_id: id } })
  })

  test('a person who was revoked stays revoked, whatever the provider says', async () => {
    await claimed()
    expect(await notifyEvent(pds, revocation(pds, key, { claims: { sub: subject } }))).toMatchObject({ status: 202 })
    await refused(() => present(), { status: 403, body: { error: 'access_denied' } })
  })

  test('is somebody else for another issuer', async () => {
    await claimed()
    expect(await present({ iss: OTHER_ISSUER, email: 'nobody@example.com' }, {}, otherKey)).toMatchObject({
      status: 403,
    })
  })

  test('has no more scopes than the configuration grants after a restart, and not more than before when it grants more', async () => {
    await using own = await startPds({ agentAuth: { trustedIssuers: [fixedIssuer([key])] } })
    const holder = await createAccount(own, 'alice')
    const shown = await presentIdentity(own, identityAssertion(own, key))
    await confirmAgent(own, holder, shown.body.claim.user_code)
    const trustedIssuers = [fixedIssuer([key])]
    await own.restart({ agentAuth: { trustedIssuers, grantedScopes: ['atproto', 'blob:*/*', 'identity:*'] } })
    expect(await presentIdentity(own, identityAssertion(own, key))).toMatchObject({
      status: 200,
      body: { scopes: ['atproto', 'blob:*/*'] },
    })
    await own.restart({ agentAuth: { trustedIssuers: [], anonymousEnabled: true } })
    expect(await presentIdentity(own, identityAssertion(own, key))).toMatchObject({
      status: 403,
      body: { error: 'issuer_not_enabled' },
    })
  })
})

describe('an assertion', () => {
  test.each([
    ['another assertion_type', { assertion_type: 'urn:ietf:params:oauth:token-type:jwt' }, 'invalid_request'],
    ['no assertion', { assertion: '' }, 'invalid_request'],
    ['an assertion that is no text', { assertion: 7 }, 'invalid_request'],
    ['no JWT', { assertion: 'no token' }, 'invalid_grant'],
    ['two parts', { assertion: 'e30.e30' }, 'invalid_grant'],
    ['no issuer', { assertion: signedText(key, { alg: 'ES256' }, { sub: 'a' }) }, 'invalid_grant'],
    ['an issuer that is no text', { assertion: signedText(key, { alg: 'ES256' }, { iss: [ISSUER] }) }, 'invalid_grant'],
    ['claims that are a list', { assertion: signedText(key, { alg: 'ES256' }, '[]') }, 'invalid_grant'],
    [
      'claims that are deep',
      { assertion: signedText(key, { alg: 'ES256' }, `${'['.repeat(9000)}${']'.repeat(9000)}`) },
      'invalid_grant',
    ],
  ])('%s is refused with 400', async (_, more, error) => {
    const json = { type: 'identity_assertion', ...more }
    await refused(() => request(`${pds.url}/agent/identity`, { json }), { status: 400, body: { error } })
  })

  test('an assertion may name its type', async () => {
    expectAsked(await presentIdentity(pds, assertion(), { assertion_type: 'urn:ietf:params:oauth:token-type:id-jag' }))
  })

  test.each([
    ['unknown', 'https://evil.example.net'],
    ['the same in another case', ISSUER.toUpperCase()],
    ['the same with a slash', `${ISSUER}/`],
    ['the empty text', ''],
  ])('of an issuer that is %s is refused before anything else', async (_, iss) => {
    const expected = { status: 403, body: { error: 'issuer_not_enabled' } }
    await refused(() => present({ iss }), expected)
    await refused(() => presentIdentity(pds, signedText(key, { alg: 'none' }, { iss })), expected)
  })

  test.each([
    ['without a subject', { sub: undefined }],
    ['with an empty subject', { sub: '' }],
    ['with a subject that is a number', { sub: 42 }],
    ['with a subject that is longer than any', { sub: 'x'.repeat(256) }],
    ['with a subject that no database stores', { sub: 'a\0b' }],
    ['with half a letter as its subject', { sub: 'a\ud800' }],
    ['without exp', { exp: undefined }],
    ['with exp in words', { exp: 'tomorrow' }],
    ['with exp beyond all time', { exp: 1e300 }],
    ['without aud', { aud: undefined }],
    ['for another server', { aud: 'https://pds.example.org' }],
    ['for a list without this server', { aud: ['https://pds.example.org'] }],
    ['for an object', { aud: { url: 'x' } }],
    ['with nbf in words', { nbf: 'now' }],
    ['with auth_time in words', { auth_time: '0' }],
    ['with auth_time null', { auth_time: null }],
    ['with iat in words', { iat: 'now' }],
    ['with an empty jti', { jti: '' }],
    ['with a jti that is a number', { jti: 7 }],
  ])('%s is refused', async (_, claims) => {
    await refused(() => present(claims), invalidGrant)
  })

  test('for this server with a slash is for another one', () =>
    refused(() => present({ aud: `${pds.url}/` }), invalidGrant))

  test('may be for several servers', async () => {
    expectAsked(await present({ aud: ['https://pds.example.org', pds.url] }))
  })

  test.each([
    ['expired for a minute', 'exp', -60, true],
    ['expired for longer', 'exp', -61, false],
    ['valid in a minute', 'nbf', 60, true],
    ['valid only later', 'nbf', 61, false],
    ['issued in two minutes', 'iat', 120, true],
    ['issued later', 'iat', 121, false],
    ['of a sign-in in the future', 'auth_time', 500, true],
  ])('that is %s: %s', async (_, name, offset, isGood) => {
    const answer = await present({ [name as string]: secs() + (offset as number) })
    if (isGood) expectAsked(answer)
    else expect(answer).toMatchObject(invalidGrant)
  })

  test('of a sign-in an hour ago passes, and a second later needs another sign-in', async () => {
    expectAsked(await present({ auth_time: secs() - 3600 }))
    const late = { status: 401, body: { error: 'login_required', error_description: expect.any(String) } }
    await refused(() => present({ auth_time: secs() - 3601 }), late)
    await refused(() => present({ auth_time: 0 }), late)
    expectAsked(await present({ auth_time: undefined }))
  })

  test('counts once, with or without a jti, and also across a restart', async () => {
    const [named, unnamed] = [assertion({ jti: 'j-1' }), assertion({ jti: undefined })]
    for (const text of [named, unnamed]) {
      expectAsked(await presentIdentity(pds, text))
      await refused(() => presentIdentity(pds, text), invalidGrant)
    }
    await refused(() => present({ jti: 'j-1', iat: secs() - 5 }), invalidGrant)
    expectAsked(await present({ jti: 'j-1', iss: OTHER_ISSUER }, {}, otherKey))
    await pds.restart()
    await refused(() => presentIdentity(pds, named), invalidGrant)
  })

  test('is remembered for as long as it would be accepted, and no longer', async () => {
    const ownClock = new StillClock()
    await using own = await startPds({ agentAuth: { trustedIssuers: [fixedIssuer([key])] } }, { clock: ownClock })
    await createAccount(own, 'alice')
    const used = () => own.count('oauth_replay', { kind: 'identity-assertion' })
    const text = identityAssertion({ url: own.url, clock: ownClock }, key)
    expectAsked(await presentIdentity(own, text))
    ownClock.advance({ secs: 360 })
    await own.runSweep('oauth-expiry')
    expect(await used()).toBe(1)
    expect(await presentIdentity(own, text)).toMatchObject(invalidGrant)
    ownClock.advance({ secs: 1 })
    await own.runSweep('oauth-expiry')
    expect(await used()).toBe(0)
    expect(await presentIdentity(own, text)).toMatchObject(invalidGrant)
  })

  test('counts once when it is sent twice at the same time', async () => {
    const text = assertion({ jti: 'x'.repeat(8000) })
    const answers = await Promise.all([
      presentIdentity(pds, text),
      presentIdentity(pds, text),
      presentIdentity(pds, text),
    ])
    expect(answers.map(({ body }) => body.error).toSorted()).toEqual([
      'interaction_required',
      'invalid_grant',
      'invalid_grant',
    ])
  })
})

describe('the signature of an assertion', () => {
  test('may be by any of several fixed keys, whatever the kid', async () => {
    expectAsked(await present({}, {}, second))
    expectAsked(await present({ sub: `${subject}-2` }, { header: { kid: undefined } }, second))
    expectAsked(await present({ sub: `${subject}-3` }, { header: { kid: 'unheard of' } }))
  })

  test.each([
    ['alg none', { alg: 'none' }],
    ['alg None', { alg: 'None' }],
    ['HMAC with the public key', { alg: 'HS256' }],
    ['another algorithm', { alg: 'RS256' }],
    ['no algorithm', { alg: undefined }],
    ['a list of algorithms', { alg: ['ES256'] }],
    ['a critical extension', { crit: ['exp'], exp: 1 }],
    ['a critical encoding', { crit: ['b64'], b64: false }],
    ['crit that is empty', { crit: [] }],
    ['crit that names what is not there', { crit: ['nothing'] }],
    ['the type of an access token', { typ: 'at+jwt' }],
    ['the type of an access token in full', { typ: 'application/at+jwt' }],
    ['the type of a proof', { typ: 'dpop+jwt' }],
    ['the type of an event', { typ: 'SecEvent+JWT' }],
    ['the type of a logout', { typ: 'logout+jwt' }],
  ])('is refused with %s', async (_, header) => {
    await refused(() => presentIdentity(pds, assertion({}, header)), invalidGrant)
  })

  test('is refused if it is missing, too short, too long, or of another token', async () => {
    const [text, other] = [assertion(), assertion()]
    const [unsigned, signature] = [text.slice(0, text.lastIndexOf('.') + 1), other.slice(other.lastIndexOf('.') + 1)]
    for (const wrong of [
      '',
      signature,
      text.slice(unsigned.length, -4),
      `${text.slice(unsigned.length)}AAAA`,
      'A'.repeat(86),
    ])
      await refused(() => presentIdentity(pds, unsigned + wrong), invalidGrant)
  })

  test('is refused by a key in the header, which may say anything', async () => {
    const { jwk } = foreign
    for (const header of [
      { jwk },
      { x5c: ['MIIB'] },
      { jku: 'http://127.0.0.1:1/keys' },
      { x5u: 'http://127.0.0.1:1/keys' },
    ])
      await refused(() => presentIdentity(pds, assertion({}, header, foreign)), invalidGrant)
  })

  test('of another issuer counts for that issuer alone', async () => {
    await refused(() => present({}, {}, otherKey), invalidGrant)
    await refused(() => present({ iss: OTHER_ISSUER }), invalidGrant)
  })

  test.each([undefined, 'JWT', 'oauth-id-jag+jwt', 'application/oauth-id-jag+jwt'])(
    'is accepted with the type %p',
    async (typ) => {
      expectAsked(await presentIdentity(pds, assertion({}, { typ })))
    },
  )

  test('covers what is read when a member is there twice: the last one', async () => {
    const claims = (first: string, last: string) =>
      `{"iss":"${ISSUER}","iss":"${ISSUER}","aud":"${pds.url}","sub":"${first}","exp":${secs() + 300},"email":"alice@example.com","sub":"${last}"}`
    expectAsked(await presentIdentity(pds, signedText(key, { alg: 'ES256' }, claims('first', subject))))
    expect(await pds.rows('agent_registration', { subject })).not.toEqual([])
    const header = '{"alg":"none","alg":"ES256"}'
    expectAsked(await presentIdentity(pds, signedText(key, header, claims('x', `${subject}-2`))))
    await refused(
      () => presentIdentity(pds, signedText(key, '{"alg":"ES256","alg":"none"}', claims('x', `${subject}-3`)) + 'AA'),
      invalidGrant,
    )
  })

  test.each(['ES384', 'RS256', 'RS384', 'RS512', 'EdDSA'] as const)(
    'may be %s if the configuration says so',
    async (algorithm) => {
      const [own, ecdsa] = [issuerKey('k', algorithm), issuerKey('k')]
      await using other = await startPds({ agentAuth: { trustedIssuers: [fixedIssuer([own])] } })
      await createAccount(other, 'alice')
      expectAsked(await presentIdentity(other, identityAssertion(other, own)))
      for (const text of [
        identityAssertion(other, ecdsa),
        identityAssertion(other, { ...ecdsa, algorithm }, { header: { alg: 'ES256' } }),
      ])
        expect(await presentIdentity(other, text)).toMatchObject(invalidGrant)
      const forged = identityAssertion(other, issuerKey('k', algorithm))
      expect(await presentIdentity(other, forged)).toMatchObject(invalidGrant)
    },
  )
})

describe('an event of an issuer', () => {
  const event = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}, by = key) =>
    revocation(pds, by, { header, claims: { sub: subject, ...claims } })
  const ASSERTION_REVOKED = Object.keys(vectors.revocationSets[0]!.claims.events)[0]!
  const failed = (err: string) => ({ status: 400, body: { err, description: expect.any(String) } })

  test('ends the agent at once: its tokens, its assertion, its code', async () => {
    const { id } = await claimed()
    const { body } = await present()
    const { body: tokens } = await exchangeAgent(pds, body.identity_assertion)
    const mine = () =>
      request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(tokens.access_token) })
    expect((await mine()).status).toBe(200)
    const answer = await notifyEvent(pds, event())
    expect(answer).toMatchObject({ status: 202, body: '' })
    expect((await mine()).status).toBe(401)
    expect(await exchangeAgent(pds, body.identity_assertion)).toMatchObject({
      status: 400,
      body: { error: 'access_denied' },
    })
    const last = (await eventsOf(pds, id)).at(-1)
    expect(last).toEqual({ type: 'revoked', did: alice.did, detail: { source: 'provider_set' } })
    const before = await countOf(pds)
    expect(await notifyEvent(pds, event())).toMatchObject({ status: 202, body: '' })
    expect(await countOf(pds)).toEqual(before)
  })

  test('ends an agent that waits, with its code', async () => {
    const { body } = await present()
    await notifyEvent(pds, event())
    expect((await confirmAgent(pds, alice, body.claim.user_code)).status).toBeGreaterThanOrEqual(400)
    expect(await pollAgent(pds, body.claim_token)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
  })

  test.each([
    ['its subject in the payload', () => ({ sub: undefined, events: { [ASSERTION_REVOKED]: { subject } } })],
    [
      'its subject as an object',
      () => ({
        sub: undefined,
        events: { [ASSERTION_REVOKED]: { subject: { format: 'iss_sub', iss: ISSUER, sub: subject } } },
      }),
    ],
    ['other events beside it', () => ({ events: { [ASSERTION_REVOKED]: {}, 'https://example.com/other': 7 } })],
    ['several audiences', () => ({ aud: ['https://pds.example.org', pds.url] })],
    ['an exp that has just passed', () => ({ exp: secs() - 60 })],
  ])('may have %s', async (_, claims) => {
    const { id } = await claimed()
    expect(await notifyEvent(pds, event(claims()))).toMatchObject({ status: 202 })
    expect((await eventsOf(pds, id)).at(-1)?.type).toBe('revoked')
  })

  test.each([
    [{}],
    [{ 'content-type': 'application/secevent+jwt; charset=utf-8' }],
    [{ 'content-type': 'Application/SecEvent+JWT' }],
  ])('is accepted with the headers %j', async (headers) => {
    expect(await notifyEvent(pds, event(), headers as Record<string, string>)).toMatchObject({ status: 202 })
  })

  test('about somebody unknown gets the same answer, and changes nothing', async () => {
    await refused(() => notifyEvent(pds, event()), { status: 202, body: '' })
  })

  test('of another issuer changes nothing, though the subject has the same name', async () => {
    const { id } = await claimed()
    expect(await notifyEvent(pds, event({ iss: OTHER_ISSUER }, {}, otherKey))).toMatchObject({ status: 202 })
    expect(await notifyEvent(pds, event({ iss: OTHER_ISSUER }))).toMatchObject(failed('authentication_failed'))
    expect((await eventsOf(pds, id)).at(-1)?.type).toBe('claim_confirmed')
    expect(await present()).toMatchObject({ status: 200 })
  })

  test.each([
    ['another type', () => notifyEvent(pds, event(), { 'content-type': 'application/jwt' }), 'invalid_request'],
    ['an empty body', () => notifyEvent(pds, ''), 'invalid_request'],
    ['no JWT', () => notifyEvent(pds, 'no token'), 'invalid_request'],
    ['bytes that are no text', () => notifyEvent(pds, '\ud800'.repeat(3)), 'invalid_request'],
    ['no issuer', () => notifyEvent(pds, event({ iss: undefined })), 'invalid_request'],
    ['an unknown issuer', () => notifyEvent(pds, event({ iss: 'https://evil.example.net' })), 'invalid_issuer'],
    ['a wrong signature', () => notifyEvent(pds, event({}, {}, foreign)), 'authentication_failed'],
    ['no signature', () => notifyEvent(pds, `${event({}, { alg: 'none' })}AA`), 'authentication_failed'],
    ['HMAC with the public key', () => notifyEvent(pds, event({}, { alg: 'HS256' })), 'authentication_failed'],
    ['another audience', () => notifyEvent(pds, event({ aud: 'https://pds.example.org' })), 'authentication_failed'],
    ['no audience', () => notifyEvent(pds, event({ aud: undefined })), 'authentication_failed'],
    ['an exp that has passed', () => notifyEvent(pds, event({ exp: secs() - 61 })), 'authentication_failed'],
    [
      'the type of an assertion',
      () => notifyEvent(pds, event({}, { typ: 'oauth-id-jag+jwt' })),
      'authentication_failed',
    ],
    ['no iat', () => notifyEvent(pds, event({ iat: undefined })), 'invalid_request'],
    ['no jti', () => notifyEvent(pds, event({ jti: undefined })), 'invalid_request'],
    ['no events', () => notifyEvent(pds, event({ events: undefined })), 'invalid_request'],
    ['a list of events', () => notifyEvent(pds, event({ events: [ASSERTION_REVOKED] })), 'invalid_request'],
    [
      'another event',
      () => notifyEvent(pds, event({ events: { 'https://example.com/other': {} } })),
      'invalid_request',
    ],
    [
      'an event that is a text',
      () => notifyEvent(pds, event({ events: { [ASSERTION_REVOKED]: 'now' } })),
      'invalid_request',
    ],
    ['no subject', () => notifyEvent(pds, event({ sub: undefined })), 'invalid_request'],
    ['an assertion in place of an event', () => notifyEvent(pds, assertion({}, { typ: 'JWT' })), 'invalid_request'],
  ])('with %s is refused, in English, and ends nobody', async (_, send, err) => {
    const { id } = await claimed()
    const before = await countOf(pds)
    const answer = await send()
    expect(answer).toMatchObject(failed(err))
    expect(answer.headers.get('content-language')).toBe('en')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(await countOf(pds)).toEqual(before)
    expect((await eventsOf(pds, id)).at(-1)?.type).toBe('claim_confirmed')
  })

  test('that is too large is refused', async () => {
    expect(await notifyEvent(pds, 'x'.repeat(40_000))).toMatchObject({ status: 413, body: { err: 'invalid_request' } })
  })

  test('for which no issuer is trusted is refused', async () => {
    await using bare = await startPds()
    expect(await notifyEvent(bare, revocation(bare, key))).toMatchObject(failed('invalid_issuer'))
  })
})

describe('the vectors of the contract', () => {
  class VectorClock extends StillClock {
    override now(): number {
      return vectors.now * 1000
    }
  }
  const vectorClock = new VectorClock()
  const { jwk, privateScalarHex, issuer } = vectors.issuerKey
  const vectorKey = issuerKeyOf(jwk, privateScalarHex)
  const trusted: TrustedIssuer = fixedIssuer([vectorKey], { issuer, audience: vectors.publicUrl })
  const { pds: vectorPds } = useWorld({
    config: { agentAuth: { trustedIssuers: [trusted] }, rateLimit: { enabled: false } },
    options: { clock: vectorClock },
  })
  beforeAll(async () => {
    await createAccount(vectorPds, 'alice', { email: vectors.idJag.claims.email })
  })

  function issuerKeyOf(publicJwk: { x: string; y: string; kid: string }, scalarHex: string) {
    const made = issuerKey(publicJwk.kid)
    const full = {
      kty: 'EC',
      crv: 'P-256',
      x: publicJwk.x,
      y: publicJwk.y,
      d: Buffer.from(scalarHex, 'hex').toString('base64url'),
    }
    const privateKey = createPrivateKey({ key: full, format: 'jwk' })
    const publicKey = createPublicKey(privateKey)
    return {
      ...made,
      privateKey,
      publicKey,
      pem: publicKey.export({ type: 'spki', format: 'pem' }) as string,
      jwk: { ...publicJwk },
    }
  }

  const changed = (claims: Record<string, unknown>, header: Record<string, unknown> = {}) =>
    signedText(
      vectorKey,
      { ...vectors.idJag.header, ...header },
      { ...vectors.idJag.claims, jti: crypto.randomUUID(), sub: crypto.randomUUID(), ...claims },
    )

  test('the assertion is accepted, once', async () => {
    expectAsked(await request(`${vectorPds.url}/agent/identity`, { json: vectors.identityRequest }))
    expect(await request(`${vectorPds.url}/agent/identity`, { json: vectors.identityRequest })).toMatchObject(
      invalidGrant,
    )
  })

  const now = vectors.now
  const changes: Record<string, () => string> = {
    'auth_time = now - 3601 with the default max age 3600': () => changed({ auth_time: now - 3601 }),
    'auth_time = now - 3600': () => changed({ auth_time: now - 3600 }),
    'auth_time absent': () => changed({ auth_time: undefined }),
    'iss not in trusted_issuers, or the list is empty': () => changed({ iss: 'https://idp.example.org' }),
    'aud is another server': () => changed({ aud: 'https://pds.example.org' }),
    'exp more than 60 s in the past': () => changed({ exp: now - 61 }),
    'header alg differs from the configured algorithm (including none)': () => changed({}, { alg: 'none' }),
    'email absent on first sight of (iss, sub)': () => changed({ email: undefined }),
  }
  test.each(vectors.idJagRefusals)('$change', async ({ change, expect: expected }) => {
    const answer = await presentIdentity(vectorPds, changes[change]!())
    if (expected === 'accepted') expectAsked(answer)
    else {
      const { status, error } = expected as { status: number; error: string }
      expect(answer).toMatchObject({ status, body: { error } })
    }
  })

  test.each(vectors.revocationSets)('the event with $subjectFrom ends the agent', async ({ jwt }) => {
    await vectorPds.damage('agent_registration', { subject: 'user-42' }, { status: 'claimed' })
    expect(await notifyEvent(vectorPds, jwt)).toMatchObject({ status: 202, body: '' })
    expect(await vectorPds.rows('agent_registration', { subject: 'user-42' }, ['status'])).toEqual([
      {
        status: 'revoked',
      },
    ])
  })
})
