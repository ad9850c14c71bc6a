/** How agents register, and what is refused. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { decodeJws } from '../../../src/protocol/jws.ts'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { exchangeAgent, openAgentClaim, pollAgent, registerAgent } from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { countOf } from '../../support/agent-rows.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const SCOPES = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']
const every = { agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true }, rateLimit: { enabled: false } }

const clock = new StillClock()
const { pds } = useWorld({ config: every, options: { clock } })
beforeAll(async () => {
  await createAccount(pds, 'alice')
})

describe('an anonymous registration', () => {
  test('gets an assertion, its scopes and a claim token, which are in no log', async () => {
    const { status, headers, body } = await registerAgent(pds, { type: 'anonymous' })
    const now = clock.now()
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(body).toEqual({
      registration_id: expect.stringMatching(/^reg_[0-9a-f]{32}$/),
      registration_type: 'anonymous',
      identity_assertion: expect.any(String),
      assertion_expires: new Date(now + 3_600_000).toISOString(),
      scopes: SCOPES,
      claim_token: expect.stringMatching(/^clm_[A-Za-z0-9_-]{43}$/),
    })
    const { header, payload } = decodeJws(body.identity_assertion)!
    expect(header).toEqual({ alg: 'ES256', kid: expect.any(String), typ: 'JWT' })
    expect(payload).toEqual({
      iss: pds.url,
      aud: pds.url,
      sub: body.registration_id,
      iat: now / 1000,
      exp: now / 1000 + 3600,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      scope: SCOPES.join(' '),
      registration_id: body.registration_id,
      registration_type: 'anonymous',
    })
    const log = JSON.stringify(pds.log)
    for (const secret of [body.claim_token, body.identity_assertion]) expect(log).not.toContain(secret)
  })

  test('cannot exchange its assertion before somebody confirms it', async () => {
    const { body } = await registerAgent(pds, { type: 'anonymous' })
    expect(await exchangeAgent(pds, body.identity_assertion)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
    expect(await pollAgent(pds, body.claim_token)).toMatchObject({
      status: 400,
      body: { error: 'authorization_pending' },
    })
  })

  test('stores the claim token as a hash alone', async () => {
    const { body } = await registerAgent(pds, { type: 'anonymous' })
    const rows = await pds.rows('agent_registration')
    expect(JSON.stringify(rows)).not.toContain(body.claim_token.slice(4))
  })
})

describe('a registration for an address', () => {
  test('opens a claim at once, for the account of the address in any case, and gets no assertion', async () => {
    const { status, body } = await registerAgent(pds, { type: 'service_auth', login_hint: '  Alice@EXAMPLE.com ' })
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        registration_id: expect.stringMatching(/^reg_[0-9a-f]{32}$/),
        registration_type: 'service_auth',
        claim_token: expect.stringMatching(/^clm_[A-Za-z0-9_-]{43}$/),
        claim: {
          user_code: expect.stringMatching(/^\d{6}$/),
          verification_uri: `${pds.url}/agent/claim`,
          expires_at: new Date(clock.now() + 600_000).toISOString(),
        },
      },
    })
    expect(await openAgentClaim(pds, body.claim_token)).toMatchObject({
      body: { claim_attempt: { user_code: body.claim.user_code } },
    })
  })

  test.each([
    [{}, 'invalid_request'],
    [{ login_hint: '' }, 'invalid_request'],
    [{ login_hint: '   ' }, 'invalid_request'],
    [{ login_hint: 7 }, 'invalid_request'],
    [{ login_hint: 'nobody@example.com' }, 'access_denied'],
    [{ login_hint: 'alice.test' }, 'access_denied'],
    [{ login_hint: '%@example.com' }, 'access_denied'],
  ])('%j is refused with %s, and adds nothing', async (more, error) => {
    const before = await countOf(pds)
    expect(await registerAgent(pds, { type: 'service_auth', ...more })).toMatchObject({ status: 400, body: { error } })
    expect(await countOf(pds)).toEqual(before)
  })

  test('is refused for an account that is not active, and asks nobody', async () => {
    const bob = await createAccount(pds, 'bob')
    await bob.call('com.atproto.server.deactivateAccount', { json: {} })
    expect(await registerAgent(pds, { type: 'service_auth', login_hint: bob.email })).toMatchObject({
      status: 400,
      body: { error: 'access_denied' },
    })
    expect(
      await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: 'bob.test', password: PASSWORD } }),
    ).toMatchObject({
      status: 200,
    })
  })

  test('tells the holder once for each code, without a text of the stranger and without the code', async () => {
    const carol = await createAccount(pds, 'carol')
    await pds.runSteps()
    pds.mails.length = 0
    const { body } = await registerAgent(
      pds,
      { type: 'service_auth', login_hint: carol.email },
      { 'user-agent': 'Call-555-0199/1.0' },
    )
    await openAgentClaim(pds, body.claim_token)
    await pds.runSteps()
    await pds.runSteps()
    expect(pds.mails.map(({ to, subject }) => [to, subject])).toEqual([
      [carol.email, expect.stringContaining('A program requests access')],
    ])
    expect(pds.mails[0]!.text).not.toContain('Call-555')
    expect(pds.mails[0]!.text).not.toContain(body.claim.user_code)
  })
})

describe('what the request says', () => {
  test.each([
    [{}],
    [{ type: '' }],
    [{ type: 'child' }],
    [{ type: 'toString' }],
    [{ type: 'Anonymous' }],
    [{ type: 1 }],
    [{ type: null }],
    [[]],
    ['anonymous'],
    [null],
  ])('%j is an invalid request', async (json) => {
    expect(await registerAgent(pds, json)).toMatchObject({
      status: 400,
      body: { error: 'invalid_request', error_description: expect.any(String) },
    })
  })

  test.each(['{', '', '{"type":"anonymous"', 'type=anonymous'])('the body %j is an invalid request', async (body) => {
    const answer = await request(`${pds.url}/agent/identity`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('a body that is no JSON by its type is an invalid request', async () => {
    const body = JSON.stringify({ type: 'anonymous' })
    for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
      expect(
        await request(`${pds.url}/agent/identity`, { method: 'POST', headers: { 'content-type': type }, body }),
      ).toMatchObject({
        status: 400,
        body: { error: 'invalid_request' },
      })
  })
})

describe('without any way to register', () => {
  test('each way says what is not enabled, writes nothing, and nothing is announced', async () => {
    await using bare = await startPds()
    const assertion = [
      {},
      { assertion: 'a.b.c' },
      { assertion: 'no token' },
      { assertion: 'e30.eyJpc3MiOiJodHRwczovL2EuZXhhbXBsZSJ9.AA' },
    ]
    const refusals = [
      [{ type: 'anonymous' }, 400, 'anonymous_not_enabled'],
      [{ type: 'service_auth', login_hint: 'alice@example.com' }, 400, 'service_auth_not_enabled'],
      [{ type: 'service_auth' }, 400, 'service_auth_not_enabled'],
      ...assertion.map((more) => [{ type: 'identity_assertion', ...more }, 403, 'issuer_not_enabled']),
    ] as const
    for (const [json, status, error] of refusals)
      expect(await registerAgent(bare, json)).toMatchObject({ status, body: { error } })
    expect(await countOf(bare)).toEqual({ registrations: 0, claims: 0, events: 0 })
    for (const grant of [exchangeAgent(bare, 'x.y.z'), pollAgent(bare, 'clm_x')])
      expect(await grant).toMatchObject({ status: 400, body: { error: 'unsupported_grant_type' } })
    const { body } = await request(`${bare.url}/.well-known/oauth-authorization-server`)
    expect(body.agent_auth).toBeUndefined()
    expect(body.grant_types_supported).toEqual(['authorization_code', 'refresh_token'])
    expect(await openAgentClaim(bare, 'clm_x')).toMatchObject({ status: 400, body: { error: 'invalid_claim_token' } })
  })

  test('a way that is off is refused beside one that is on', async () => {
    await using one = await startPds({ agentAuth: { serviceAuthEnabled: true } })
    expect(await registerAgent(one, { type: 'anonymous' })).toMatchObject({
      status: 400,
      body: { error: 'anonymous_not_enabled' },
    })
    expect(await registerAgent(one, { type: 'identity_assertion', assertion: 'a.b.c' })).toMatchObject({
      status: 403,
      body: { error: 'issuer_not_enabled' },
    })
    expect(await countOf(one)).toEqual({ registrations: 0, claims: 0, events: 0 })
  })
})

describe('limits', () => {
  test('sixty registrations of an address in five minutes, and thirty for addresses', async () => {
    await using limited = await startPds({ agentAuth: every.agentAuth })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    for (let i = 0; i < 30; i++)
      await registerAgent(limited, { type: 'service_auth', login_hint: 'nobody@example.com' })
    const refused = { status: 429, body: { error_description: expect.any(String) } }
    expect(await registerAgent(limited, { type: 'service_auth', login_hint: 'nobody@example.com' })).toMatchObject(
      refused,
    )
    for (let i = 0; i < 29; i++) expect((await registerAgent(limited, { type: 'anonymous' })).status).toBe(200)
    expect(await registerAgent(limited, { type: 'anonymous' })).toMatchObject(refused)
    expect(await registerAgent(limited, {})).toMatchObject(refused)
  })

  test('all addresses together are limited in what they add, and what adds nothing is not counted', async () => {
    await using limited = await startPds(
      { agentAuth: every.agentAuth },
      { alone: 'a node charges no more than its share at once' },
    )
    const spent = () => limited.ctx.limits.charge({ name: 'agentIdentityTotal', key: 'anonymous', cost: 0 })!.remaining
    expect(spent()).toBe(10_000)
    await registerAgent(limited, { type: 'service_auth', login_hint: 'nobody@example.com' })
    await registerAgent(limited, { type: 'nothing' })
    await registerAgent(limited, { type: 'anonymous' })
    expect(spent()).toBe(9999)
    limited.ctx.limits.charge({ name: 'agentIdentityTotal', key: 'anonymous', cost: 9999 })
    const before = await countOf(limited)
    expect((await registerAgent(limited, { type: 'anonymous' }, { 'x-forwarded-for': '198.51.100.7' })).status).toBe(
      429,
    )
    expect(await countOf(limited)).toEqual(before)
    const alice = await createAccount(limited, 'alice')
    expect((await registerAgent(limited, { type: 'service_auth', login_hint: alice.email })).status).toBe(200)
  })

  test('addresses that register all they may leave something for another network', async () => {
    await using limited = await startPds({ agentAuth: every.agentAuth })
    using _ = atOneNode(limited, 'one node is charged by hand')
    const register = async (address: string) =>
      (await registerAgent(limited, { type: 'anonymous' }, { 'x-forwarded-for': address })).status
    const charge = (network: string, provider = network) =>
      limited.ctx.limits.charge({
        name: 'agentIdentityTotal',
        key: 'anonymous',
        from: { address: network, network, provider },
      })?.allowed === true
    // A provider of IPv6 with all its networks has a tenth of what is left.
    let registered = 0
    for (let i = 0; i < 20_000; i++) if (charge(`2001:db8:${i.toString(16)}::/48`, '2001:db8::/32')) registered++
    expect(registered).toBeLessThan(1000)
    for (let round = 0; round < 60; round++) for (let i = 0; i < 400; i++) charge(`10.${i}.0.0/24`)
    expect(charge('10.0.0.0/24')).toBe(false)
    expect([await register('198.51.100.7'), await register('2001:db9:7::1')]).toEqual([200, 200])
    // A network that has had its part gets no more of what is left.
    const answers = []
    for (let i = 0; i < 40; i++) answers.push(await register(`198.51.100.${i}`))
    expect(answers.filter((status) => status === 429).length).toBeGreaterThan(0)
    expect(await register('203.0.113.7')).toBe(200)
  })
})

test('nonsense in any member causes no fault and no token', async () => {
  const values = [
    null,
    0,
    -1,
    1e308,
    true,
    '',
    ' ',
    '\u0000',
    'a\u0000b',
    '🙂',
    'x'.repeat(5000),
    [],
    {},
    [[]],
    { type: 'anonymous' },
    '\ud800',
  ]
  const paths = {
    '/agent/identity': ['type', 'login_hint', 'assertion', 'assertion_type'],
    '/agent/identity/claim': ['claim_token', 'email'],
  }
  for (const [path, names] of Object.entries(paths))
    for (const name of names)
      for (const value of values)
        for (const type of ['service_auth', 'identity_assertion', 'nothing']) {
          const { status, body } = await request(`${pds.url}${path}`, { json: { type, [name]: value } })
          expect({ path, name, value, isRefused: status >= 400 && status < 500, error: body.error }).toEqual({
            path,
            name,
            value,
            isRefused: true,
            error: expect.any(String),
          })
        }
})

describe('/auth.md', () => {
  test('tells a program how to register here, in the ways that are enabled', async () => {
    const { status, headers, body } = await request(`${pds.url}/auth.md`)
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      200,
      'text/markdown; charset=utf-8',
      'public, max-age=300',
    ])
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const said = [
      `${pds.url}/agent/identity`,
      `${pds.url}/agent/claim`,
      '### anonymous',
      '### service_auth',
      'slow_down',
      '300 seconds',
      ...SCOPES,
    ]
    for (const text of said) expect(body).toContain(text)
    expect(body).not.toContain('identity_assertion`. `login_required')
    expect(body).not.toContain('### identity_assertion')
    expect(body).not.toContain('undefined')
  })

  test('is absent where no agent can register', async () => {
    await using bare = await startPds()
    expect((await request(`${bare.url}/auth.md`)).status).toBe(404)
    await using vouched = await startPds({
      agentAuth: {
        trustedIssuers: [
          {
            issuer: 'https://idp.example',
            audience: null,
            algorithm: 'ES256',
            keys: { source: 'jwks', url: 'https://idp.example/jwks' },
          },
        ],
      },
    })
    const { body } = await request(`${vouched.url}/auth.md`)
    expect(body).toContain('### identity_assertion')
    expect(body).toContain('https://idp.example')
    expect(body).not.toContain('### anonymous')
  })
})
