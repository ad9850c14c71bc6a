/** Claims: the code that an agent shows, and the account holder who confirms it. */
import { describe, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn } from '../../support/clients/account.ts'
import {
  confirmAgent,
  confirmedAgent,
  exchangeAgent,
  openAgentClaim,
  pollAgent,
  previewAgent,
  registerAgent,
  withClaims,
} from '../../support/clients/agent.ts'
import { StillClock } from '../../support/clock.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { registerAgent as insertAgent } from '../../support/clients/registered-agent.ts'
import { askSession, sessionRequest, sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { countOf, eventsOf } from '../../support/agent-rows.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const GRANTED = ['atproto', 'repo:*?action=create&action=update', 'transition:email']

const clock = new StillClock()
const { pds } = useWorld({
  config: { agentAuth: withClaims(GRANTED), rateLimit: { enabled: false } },
  options: { clock },
})
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))

const refusal = ({ status, body }: Answer) => [status, body.error]

/** An anonymous registration with an open code. */
async function waiting() {
  const { body: registered } = await registerAgent(pds, { type: 'anonymous' })
  const { body: opened } = await openAgentClaim(pds, registered.claim_token)
  return {
    id: registered.registration_id as string,
    token: registered.claim_token as string,
    code: opened.claim_attempt.user_code as string,
    attempt: opened.claim_attempt_id as string,
  }
}

const revoke = (id: string) => pds.damage('agent_registration', { id }, { status: 'revoked' })
const statusOf = async (id: string) => (await pds.rows('agent_registration', { id }))[0]!.status

describe('opening a claim', () => {
  test('shows a code of six digits, and where to enter it', async () => {
    const { body: registered } = await registerAgent(pds, { type: 'anonymous' })
    const { status, body, headers } = await openAgentClaim(pds, registered.claim_token, {
      email: 'somebody@example.com',
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        registration_id: registered.registration_id,
        claim_attempt_id: expect.stringMatching(/^cla_[0-9a-f]{32}$/),
        status: 'initiated',
        expires_at: new Date(clock.now() + 600_000).toISOString(),
        claim_attempt: {
          user_code: expect.stringMatching(/^\d{6}$/),
          expires_in: 600,
          verification_uri: `${pds.url}/agent/claim`,
          interval: 5,
        },
      },
    })
  })

  test('once more tells the same code, adds no event, and counts the time that is left', async () => {
    const { id, token, code, attempt } = await waiting()
    const before = await countOf(pds)
    clock.advance({ secs: 100 })
    const { body } = await openAgentClaim(pds, token)
    expect(body).toMatchObject({ claim_attempt_id: attempt, claim_attempt: { user_code: code, expires_in: 500 } })
    expect(await countOf(pds)).toEqual(before)
    expect((await eventsOf(pds, id)).map(({ type }) => type)).toEqual(['registered', 'claim_initiated'])
  })

  test('by several requests at once opens one', async () => {
    const { body: registered } = await registerAgent(pds, { type: 'anonymous' })
    const answers = await Promise.all(Array.from({ length: 6 }, () => openAgentClaim(pds, registered.claim_token)))
    expect(new Set(answers.map(({ body }) => body.claim_attempt.user_code)).size).toBe(1)
    expect((await eventsOf(pds, registered.registration_id)).map(({ type }) => type)).toEqual([
      'registered',
      'claim_initiated',
    ])
  })

  test('is refused without a token, with one that is unknown, revoked, confirmed or has expired', async () => {
    const refused = async (token: string, more: object = {}) => refusal(await openAgentClaim(pds, token, more))
    expect(await refused('')).toEqual([400, 'invalid_request'])
    expect(refusal(await request(`${pds.url}/agent/identity/claim`, { json: {} }))).toEqual([400, 'invalid_request'])
    expect(await refused('clm_x', { email: 1 })).toEqual([400, 'invalid_request'])
    expect(await refused('clm_x')).toEqual([400, 'invalid_claim_token'])
    const gone = await waiting()
    await revoke(gone.id)
    expect(await openAgentClaim(pds, gone.token)).toMatchObject({ body: (await openAgentClaim(pds, 'clm_x')).body })
    expect(await refused((await confirmedAgent(pds, alice)).claimToken)).toEqual([400, 'claimed_or_in_flight'])
    const late = await waiting()
    clock.advance({ secs: 599, millis: 999 })
    expect((await openAgentClaim(pds, late.token)).status).toBe(200)
    clock.advance({ millis: 1 })
    expect(await refused(late.token)).toEqual([400, 'claim_expired'])
  })

  test('codes are unique among those that wait, and keep their leading zeros', async () => {
    const codes = new Set<string>()
    for (let i = 0; i < 300; i++) codes.add((await waiting()).code)
    expect(codes.size).toBe(300)
    for (const code of codes) expect(code).toMatch(/^\d{6}$/)
    // Of 300 codes, some begin with a zero, but for a chance of 10^-13.
    expect([...codes].some((code) => code.startsWith('0'))).toBe(true)
  })

  test('codes are in no log', async () => {
    const { code } = await waiting()
    await confirmAgent(pds, bob, code)
    expect(pds.log.filter((line) => JSON.stringify(line).includes(`"${code}"`))).toEqual([])
  })
})

describe('the preview', () => {
  test('shows the owner what the agent may do once it is confirmed', async () => {
    const { id, code } = await waiting()
    const { status, headers, body } = await previewAgent(pds, alice, `${code.slice(0, 3)} ${code.slice(3)}`)
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        registrationId: id,
        registrationType: 'anonymous',
        scopes: GRANTED,
        userCodeExpiresAt: new Date(clock.now() + 600_000).toISOString(),
      },
    })
    expect(await statusOf(id)).toBe('active')
  })

  test('counts: a start with other scopes in between has the owner look again', async () => {
    const { id, code } = await waiting()
    expect((await previewAgent(pds, alice, code)).body.scopes).toEqual(GRANTED)
    await pds.restart({
      agentAuth: {
        anonymousEnabled: true,
        serviceAuthEnabled: true,
        preClaimScopes: ['atproto'],
        grantedScopes: [...GRANTED, 'transition:generic'],
      },
    })
    expect(await confirmAgent(pds, alice, code)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    expect(await statusOf(id)).toBe('active')
    expect((await previewAgent(pds, alice, code)).body.scopes).toEqual([...GRANTED, 'transition:generic'])
    expect(await confirmAgent(pds, alice, code)).toMatchObject({ status: 200, body: { registration_id: id } })
    await pds.restart()
  })

  test('answers whatever is wrong with a code in one way', async () => {
    const expired = await waiting()
    clock.advance({ secs: 600 })
    const revoked = await waiting()
    await revoke(revoked.id)
    const { body: bobs } = await registerAgent(pds, { type: 'service_auth', login_hint: bob.email })
    const used = await confirmedAgent(pds, bob)
    const bodies = new Set<string>()
    for (const code of ['000 000 0', 'nonsense', expired.code, revoked.code, bobs.claim.user_code, used.userCode]) {
      const { status, body } = await previewAgent(pds, alice, code)
      expect({ code, status }).toEqual({ code, status: 404 })
      bodies.add(JSON.stringify(body))
    }
    expect([...bodies]).toEqual([expect.stringContaining('"code":"NOT_FOUND"')])
  })

  test.each([{}, { userCode: '' }, { userCode: 1 }, { userCode: null }])('%j is INVALID_CLAIM', async (json) => {
    const answer = await request(`${pds.url}/v1/agents/claim-preview`, { json, headers: bearer(alice.accessJwt) })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'INVALID_CLAIM' } } })
  })
})

describe('confirming', () => {
  test('binds the registration to the account, with the scopes that were shown, in one step', async () => {
    const { id, code, attempt } = await waiting()
    const { body: shown } = await previewAgent(pds, alice, code)
    const { status, body } = await confirmAgent(pds, alice, `${code.slice(0, 3)}-${code.slice(3)}`, {
      registration_id: id,
    })
    expect({ status, body }).toEqual({ status: 200, body: { registration_id: id, status: 'claimed', did: alice.did } })
    expect(await eventsOf(pds, id)).toEqual([
      { type: 'registered', did: null, detail: { registration_type: 'anonymous', scopes: ['atproto'] } },
      { type: 'claim_initiated', did: null, detail: { claim_attempt_id: attempt } },
      { type: 'claim_confirmed', did: alice.did, detail: { claim_attempt_id: attempt, scopes: shown.scopes } },
    ])
    expect(await pds.rows('agent_registration', { id }, ['did', 'scopes'])).toEqual([
      {
        did: alice.did,
        scopes: JSON.stringify(GRANTED),
      },
    ])
  })

  test('may leave out what only the account sees, which the response repeats', async () => {
    const { code } = await waiting()
    for (const given of ['no', 0, null])
      expect(refusal(await confirmAgent(pds, alice, code, { private_reads: given }))).toEqual([400, 'invalid_request'])
    const { status, body } = await confirmAgent(pds, alice, code, { private_reads: false })
    expect({ status, privateReads: body.private_reads }).toEqual({ status: 200, privateReads: false })
    const allowed = await waiting()
    expect((await confirmAgent(pds, alice, allowed.code, { private_reads: true })).body).not.toHaveProperty(
      'private_reads',
    )
    const { agents } = (await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })).body
    const listed = new Map(
      agents.map((agent: { registrationId: string; privateReads?: boolean }) => [
        agent.registrationId,
        agent.privateReads,
      ]),
    )
    expect(listed.get(body.registration_id)).toBe(false)
    expect(listed.get(allowed.id)).toBeUndefined()
  })

  test('tells the holder by mail', async () => {
    const carol = await createAccount(pds, 'carol')
    await pds.runSteps()
    pds.mails.length = 0
    await confirmedAgent(pds, carol)
    await pds.runSteps()
    await pds.runSteps()
    expect(pds.mails.map(({ subject }) => subject)).toEqual([
      expect.stringContaining('A program now has access to your account'),
    ])
  })

  test('is refused in the order of what is wrong', async () => {
    const refused = async (code: string, more: object = {}, who = alice) =>
      refusal(await confirmAgent(pds, who, code, more))
    expect(await refused('')).toEqual([400, 'invalid_request'])
    expect(await refused('123', {})).toEqual([400, 'invalid_user_code'])
    expect(await refused('nonsense')).toEqual([400, 'invalid_user_code'])
    const used = await confirmedAgent(pds, alice)
    expect(await refused(used.userCode)).toEqual([400, 'claimed_or_in_flight'])
    const lapsed = await waiting()
    clock.advance({ secs: 600 })
    expect(await refused(lapsed.code)).toEqual([400, 'claim_expired'])
    await pds.runSweep('agent-claim-sweep')
    expect(await refused(lapsed.code)).toEqual([400, 'claim_expired'])
    const other = await waiting()
    expect(await refused(other.code, { registration_id: used.registrationId })).toEqual([400, 'invalid_request'])
    await revoke(other.id)
    const revoked = await confirmAgent(pds, alice, other.code)
    expect(refusal(revoked)).toEqual([403, 'access_denied'])
    const { body } = await registerAgent(pds, { type: 'service_auth', login_hint: bob.email })
    const foreign = await confirmAgent(pds, alice, body.claim.user_code)
    expect(foreign.body).toEqual(revoked.body)
    expect(foreign.status).toBe(403)
    expect(await statusOf(body.registration_id)).toBe('active')
    expect(await refused(body.claim.user_code, {}, bob)).toEqual([200, undefined])
  })

  test('tells the holder when somebody else enters the code of an agent that asks for the holder', async () => {
    const dave = await createAccount(pds, 'dave')
    const { body } = await registerAgent(pds, { type: 'service_auth', login_hint: dave.email })
    await pds.runSteps()
    await pds.runSteps()
    pds.mails.length = 0
    await confirmAgent(pds, alice, body.claim.user_code)
    await pds.ctx.background.settled()
    await pds.runSteps()
    await pds.runSteps()
    expect(pds.mails.map(({ to, subject }) => [to, subject])).toEqual([
      [dave.email, expect.stringContaining('refused')],
    ])
  })

  test('is for every session of the account itself: of a password, of a wallet, of a key', async () => {
    await using plc = await startPlcServer()
    await using own = await startPds({ agentAuth: { anonymousEnabled: true }, plcDirectoryUrl: plc.url })
    const holder = await sovereignAccount(own, 'holder')
    const byKey = await askSession(own, sessionRequest(own, holder))
    for (const accessJwt of [holder.accessJwt, await walletSession(own, holder.did), byKey.body.accessJwt]) {
      const { body: registered } = await registerAgent(own, { type: 'anonymous' })
      const { body: opened } = await openAgentClaim(own, registered.claim_token)
      const code = opened.claim_attempt.user_code
      expect(await previewAgent(own, { accessJwt }, code)).toMatchObject({
        status: 200,
        body: { registrationId: registered.registration_id },
      })
      expect(await confirmAgent(own, { accessJwt }, code)).toMatchObject({ status: 200, body: { did: holder.did } })
      const { body } = await request(`${own.url}/v1/agents`, { headers: bearer(accessJwt) })
      expect(body.agents.map((agent: { registrationId: string }) => agent.registrationId)).toContain(
        registered.registration_id,
      )
    }
  })

  test('is for the account itself alone', async () => {
    const { id, code } = await waiting()
    const { body: app } = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: 'one', privileged: true },
    })
    const appSession = await logIn(pds, alice, app.password)
    const client = new OAuthClient({ url: pds.url, clock })
    const tokens = await client.signIn({ identifier: alice.handle, password: alice.password })
    const agent = await confirmedAgent(pds, alice)
    const service = await alice.call(
      `com.atproto.server.getServiceAuth?aud=${pds.ctx.config.serverDid}&lxm=com.atproto.server.getSession`,
    )
    const attempts: [Record<string, string>, number, string][] = [
      [{}, 401, 'invalid_token'],
      [bearer('x.y.z'), 401, 'invalid_token'],
      [bearer('A'.repeat(43)), 401, 'invalid_token'],
      [bearer(alice.refreshJwt), 401, 'invalid_token'],
      [bearer(appSession.accessJwt), 401, 'invalid_token'],
      [bearer(service.body.token), 401, 'invalid_token'],
      [bearer(agent.accessToken), 403, 'access_denied'],
      [{ authorization: `DPoP ${agent.accessToken}` }, 401, 'invalid_token'],
    ]
    for (const [headers, status, error] of attempts) {
      const answer = await request(`${pds.url}/agent/identity/claim/confirm`, { json: { user_code: code }, headers })
      expect({ headers, answer: refusal(answer) }).toEqual({ headers, answer: [status, error] })
      const shown = await request(`${pds.url}/v1/agents/claim-preview`, { json: { userCode: code }, headers })
      expect([status, shown.body.error.code]).toEqual([
        shown.status,
        expect.stringMatching(/^(AUTHENTICATION_REQUIRED|INVALID_TOKEN|InsufficientScope)$/),
      ])
    }
    const byApp = await client.call(
      tokens.access_token,
      '/agent/identity/claim/confirm',
      {},
      { json: { user_code: code } },
    )
    expect(refusal(byApp)).toEqual([403, 'insufficient_scope'])
    expect(
      await client.call(tokens.access_token, '/v1/agents/claim-preview', {}, { json: { userCode: code } }),
    ).toMatchObject({
      status: 403,
      body: { error: { code: 'InsufficientScope' } },
    })
    expect(await statusOf(id)).toBe('active')
  })

  test('is refused for an account that is not active, or taken down', async () => {
    const erin = await createAccount(pds, 'erin')
    const { id, code } = await waiting()
    await erin.call('com.atproto.server.deactivateAccount', { json: {} })
    expect(refusal(await confirmAgent(pds, erin, code))).toEqual([403, 'access_denied'])
    await pds.damage('account', { did: erin.did }, { takedown_ref: 'x' })
    expect(refusal(await confirmAgent(pds, erin, code))).toEqual([403, 'access_denied'])
    expect(await statusOf(id)).toBe('active')
  })

  test('succeeds once of many at the same time', async () => {
    const { id, code } = await waiting()
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => confirmAgent(pds, i % 2 ? alice : bob, code)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      expect(['400 claimed_or_in_flight', '409 claimed_or_in_flight', '403 access_denied']).toContain(
        refusal(answer).join(' '),
      )
    expect((await eventsOf(pds, id)).filter(({ type }) => type === 'claim_confirmed')).toHaveLength(1)
  })

  test('beside a revocation leaves the registration revoked, or confirmed and then revoked', async () => {
    for (let i = 0; i < 5; i++) {
      const { id, token, code } = await waiting()
      const [answer] = await Promise.all([confirmAgent(pds, alice, code), revoke(id)])
      expect([200, 403]).toContain(answer.status)
      expect(await statusOf(id)).toBe('revoked')
      expect(refusal(await pollAgent(pds, token))).toEqual([400, 'access_denied'])
      expect(refusal(await confirmAgent(pds, alice, code))).not.toEqual([200, undefined])
    }
  })
})

test('an account confirms no more agents than are listed at once, until it ends one', async () => {
  const crowded = await createAccount(pds, 'crowded')
  const agents = []
  for (let i = 0; i < 500; i++) agents.push(await insertAgent(pds, crowded))
  const { code, id } = await waiting()
  expect(refusal(await confirmAgent(pds, crowded, code))).toEqual([403, 'access_denied'])
  expect(await statusOf(id)).toBe('active')
  await revoke(agents[0]!.id)
  expect((await confirmAgent(pds, crowded, code)).status).toBe(200)
})

describe('guesses', () => {
  test('of one account are refused after ten wrong codes from any addresses, however many at once', async () => {
    await using guarded = await startPds(
      { agentAuth: { anonymousEnabled: true }, rateLimit: { agentClaimConfirmPer5min: 1000 } },
      { clock },
    )
    using _ = atOneNode(guarded, 'the last request of a limit is counted, and each node may let one more through')
    const mallory = await createAccount(guarded, 'mallory')
    const { body } = await registerAgent(guarded, { type: 'anonymous' })
    const { body: opened } = await openAgentClaim(guarded, body.claim_token)
    const right = opened.claim_attempt.user_code as string
    const wrong = (i: number) => String((Number(right) + 1 + i) % 1_000_000).padStart(6, '0')
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        i % 2 ? confirmAgent(guarded, mallory, wrong(i)) : previewAgent(guarded, mallory, wrong(i)),
      ),
    )
    expect(answers.filter(({ status }) => status !== 429)).toHaveLength(10)
    expect(await confirmAgent(guarded, mallory, right)).toMatchObject({
      status: 429,
      body: { error_description: expect.any(String) },
    })
    clock.advance({ secs: 300 })
    expect((await confirmAgent(guarded, mallory, right)).status).toBe(200)
  })

  test('of one address share one budget over confirmation and preview, counted before anything else', async () => {
    await using guarded = await startPds({ agentAuth: { anonymousEnabled: true } })
    using _ = atOneNode(guarded, 'the last request of a limit is counted, and each node may let one more through')
    for (let i = 0; i < 15; i++) {
      await confirmAgent(guarded, { accessJwt: 'none' }, '000000')
      await previewAgent(guarded, { accessJwt: 'none' }, '000000')
    }
    expect((await confirmAgent(guarded, { accessJwt: 'none' }, '000000')).status).toBe(429)
    expect((await previewAgent(guarded, { accessJwt: 'none' }, '000000')).status).toBe(429)
  })
})

describe('the sweep', () => {
  test('marks codes that have expired, with one event each, and frees their digits', async () => {
    clock.advance({ secs: 600 })
    await pds.runSweep('agent-claim-sweep')
    const { id, token, attempt } = await waiting()
    clock.advance({ secs: 599 })
    expect((await pds.runSweep('agent-claim-sweep')).swept).toBe(0)
    clock.advance({ secs: 1 })
    expect((await pds.runSweep('agent-claim-sweep')).swept).toBe(1)
    expect((await pds.runSweep('agent-claim-sweep')).swept).toBe(0)
    expect((await eventsOf(pds, id)).at(-1)).toEqual({
      type: 'claim_expired',
      did: null,
      detail: { claim_attempt_id: attempt },
    })
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'expired_token'])
  })

  test('is not needed for a code to be over', async () => {
    const { token, code } = await waiting()
    clock.advance({ secs: 600 })
    expect(refusal(await confirmAgent(pds, alice, code))).toEqual([400, 'claim_expired'])
    expect(refusal(await pollAgent(pds, token))).toEqual([400, 'expired_token'])
  })

  test('deletes what nobody confirmed a day after its token expired, and keeps its record for a month', async () => {
    await using own = await startPds({ agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true } }, { clock })
    const anna = await createAccount(own, 'anna')
    const kept = await confirmedAgent(own, anna)
    const { body: nobodys } = await registerAgent(own, { type: 'anonymous' })
    await openAgentClaim(own, nobodys.claim_token)
    const { body: annas } = await registerAgent(own, { type: 'service_auth', login_hint: anna.email })
    clock.advance({ secs: 600 + 86_399 })
    await own.runSweep('agent-claim-sweep')
    expect((await countOf(own)).registrations).toBe(3)
    clock.advance({ secs: 1 })
    expect((await own.runSweep('agent-claim-sweep')).abandoned).toBe(2)
    expect(await countOf(own)).toMatchObject({ registrations: 1, claims: 0 })
    expect((await eventsOf(own, annas.registration_id)).length).toBe(0)
    expect((await eventsOf(own, nobodys.registration_id)).map(({ type }) => type)).toEqual([
      'registered',
      'claim_initiated',
      'claim_expired',
    ])
    clock.advance({ days: 30 })
    await own.runSweep('agent-claim-sweep')
    expect((await eventsOf(own, nobodys.registration_id)).length).toBe(0)
    expect((await eventsOf(own, kept.registrationId)).map(({ type }) => type)).toEqual([
      'registered',
      'claim_initiated',
      'claim_confirmed',
      'token_exchanged',
    ])
    expect(refusal(await exchangeAgent(own, kept.assertion))).toEqual([400, 'invalid_grant'])
  })
})

test('a registration beside the deletion of its account leaves no row', async () => {
  const gina = await createAccount(pds, 'gina')
  await Promise.all([
    ...Array.from({ length: 5 }, () => registerAgent(pds, { type: 'service_auth', login_hint: gina.email })),
    deleteAccount({ ctx: pds.ctx }, gina.did as Did),
    ...Array.from({ length: 5 }, () => registerAgent(pds, { type: 'service_auth', login_hint: gina.email })),
  ])
  for (const table of ['agent_registration', 'agent_event'] as const)
    expect(await pds.rows(table, { did: gina.did })).toEqual([])
})

test('what is about an account goes with it', async () => {
  const frank = await createAccount(pds, 'frank')
  const agent = await confirmedAgent(pds, frank)
  const before = await countOf(pds)
  await deleteAccount({ ctx: pds.ctx }, frank.did as Did)
  const after = await countOf(pds)
  expect(after.registrations).toBe(before.registrations - 1)
  expect(refusal(await exchangeAgent(pds, agent.assertion))).toEqual([400, 'invalid_grant'])
})
