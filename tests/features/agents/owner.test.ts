/** What the holder of an account sees of its agents and does about them, and what operators do. */
import { describe, expect, test } from 'bun:test'
import { thinEvents } from '../../../src/features/agents/agents/agent-event-sweep.ts'
import { insertAgentEvent } from '../../../src/features/agents/agents/agent-event-store.ts'
import { insertClaim } from '../../../src/features/agents/agents/agent-claim-store.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../src/protocol/opaque-token.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { noticesTo } from '../../support/servers/mail.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import {
  createPost,
  DEFAULT_SCOPES,
  eventsOf,
  registerAgent,
  withAgents,
  type RegisteredAgent,
} from '../../support/clients/registered-agent.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { beforeTransaction } from '../../support/interruptions.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { unaskedIssuer } from '../../support/servers/issuer.ts'

let count = 0
const { pds } = useWorld({
  config: { agentAuth: { ...withAgents, trustedIssuers: [unaskedIssuer] }, rateLimit: { enabled: false } },
})

const newcomer = () => createAccount(pds, `owner${++count}`)
const at = (path: string, headers: Record<string, string>, json?: unknown): Promise<Answer> =>
  request(`${pds.url}${path}`, { headers, ...(json !== undefined && { json }) })
const list = async ({ accessJwt }: TestAccount) => (await at('/v1/agents', bearer(accessJwt))).body.agents
const end = ({ accessJwt }: TestAccount, id: string) => at(`/v1/agents/${id}/revoke`, bearer(accessJwt), {})
const audit = ({ accessJwt }: TestAccount, id: string, query = '') =>
  at(`/v1/agents/${id}/audit${query}`, bearer(accessJwt))
const session = (agent: RegisteredAgent) => agent.call('com.atproto.server.getSession')
const note = (agent: RegisteredAgent, times: number) =>
  pds.ctx.db.transaction(async (tx) => {
    for (let i = 0; i < times; i++)
      await insertAgentEvent(tx, {
        registrationId: agent.id,
        type: 'token_exchanged',
        did: agent.did as Did,
        now: pds.clock.now(),
      })
  })

describe('the list', () => {
  test('shows the agents of the account in every state, newest first, and those of nobody else', async () => {
    const [alice, bob] = [await newcomer(), await newcomer()]
    const first = await registerAgent(pds, alice)
    pds.clock.advance({ secs: 1 })
    const second = await registerAgent(pds, alice, {
      type: 'identity_assertion',
      issuer: 'https://idp.test',
      subject: 'second',
      status: 'revoked',
    })
    await registerAgent(pds, bob)
    const agents = await list(alice)
    expect(agents).toEqual([
      {
        registrationId: second.id,
        registrationType: 'identity_assertion',
        issuer: 'https://idp.test',
        subject: 'second',
        scopes: DEFAULT_SCOPES,
        status: 'revoked',
        createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
        updatedAt: expect.any(String),
      },
      expect.objectContaining({ registrationId: first.id, registrationType: 'anonymous', status: 'claimed' }),
    ])
  })

  test('says when an agent was last used: a token, a write, an upload, and nothing else', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    const lastUse = async () => (await list(alice))[0].lastUsedAt
    await session(agent)
    expect(await lastUse()).toBeUndefined()
    const uses = [
      () => note(agent, 1),
      () => agent.call('com.atproto.repo.createRecord', createPost(alice.did)),
      () =>
        agent.call('com.atproto.repo.uploadBlob', {
          method: 'POST',
          body: 'x',
          headers: { 'content-type': 'text/plain' },
        }),
    ]
    for (const use of uses) {
      pds.clock.advance({ secs: 10 })
      const start = pds.clock.now()
      await use()
      expect(Date.parse(await lastUse())).toBeGreaterThanOrEqual(start)
    }
    pds.clock.advance({ secs: 10 })
    const before = await lastUse()
    await end(alice, agent.id)
    expect(await lastUse()).toBe(before)
  })

  test('however many strangers ask for the account, the agents that act for it are shown', async () => {
    const alice = await newcomer()
    const acting = await registerAgent(pds, alice)
    pds.clock.advance({ secs: 1 })
    for (let i = 0; i < 210; i++) await registerAgent(pds, alice, { type: 'service_auth', status: 'active' })
    const agents: { registrationId: string }[] = await list(alice)
    expect(agents.length).toBe(201)
    expect(agents.at(-1)!.registrationId).toBe(acting.id)
  })

  test('is there without any way to register, and so is the end of an agent', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    await pds.restart({ agentAuth: { anonymousEnabled: false, trustedIssuers: [] } })
    expect((await list(alice)).length).toBe(1)
    expect((await end(alice, agent.id)).status).toBe(200)
    expect((await audit(alice, agent.id)).body.events.length).toBe(1)
    await pds.restart()
  })
})

describe('ending an agent', () => {
  test('takes effect at the next request, says the same again, and is on record once', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    expect((await session(agent)).status).toBe(200)
    for (let i = 0; i < 2; i++) {
      expect(await end(alice, agent.id)).toMatchObject({
        status: 200,
        body: { registrationId: agent.id, status: 'revoked' },
      })
      expect((await session(agent)).status).toBe(401)
    }
    expect(await eventsOf(pds, agent)).toEqual([{ type: 'revoked', did: alice.did as Did, detail: {} }])
    expect(pds.mails.filter(({ to, subject }) => to === alice.email && /may no longer act/.test(subject))).toEqual([])
  })

  test('ending an agent needs no body', async () => {
    const alice = await newcomer()
    const { id } = await registerAgent(pds, alice)
    const answer = await request(`${pds.url}/v1/agents/${id}/revoke`, {
      method: 'POST',
      headers: bearer(alice.accessJwt),
    })
    expect(answer).toMatchObject({ status: 200, body: { status: 'revoked' } })
  })

  test('ends codes that wait for it', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice, { status: 'active' })
    const now = pds.clock.now()
    await pds.ctx.db.transaction((tx) =>
      insertClaim(tx, {
        id: `cla_${agent.id.slice(4)}`,
        registrationId: agent.id,
        userCode: '424242',
        expiresAt: now + 60_000,
        status: 'pending',
        email: null,
        openedWith: null,
        openedFrom: null,
        createdAt: now,
      }),
    )
    expect((await end(alice, agent.id)).status).toBe(200)
    const confirmed = await at('/agent/identity/claim/confirm', bearer(alice.accessJwt), { user_code: '424242' })
    expect({ status: confirmed.status, error: confirmed.body.error }).toEqual({ status: 400, error: 'claim_expired' })
  })

  test('by a session that ends meanwhile is refused, and ends nothing', async () => {
    using _ = atOneNode(pds, 'the transactions of one node are interrupted')
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    const token = await walletSession(pds, alice.did)
    using __ = beforeTransaction(pds, () => pds.lose('wallet_session', { token_hash: opaqueTokenHash(token)! }))
    expect((await at(`/v1/agents/${agent.id}/revoke`, bearer(token), {})).status).toBe(401)
    expect((await session(agent)).status).toBe(200)
  })

  test('of a child is for the child and its parent', async () => {
    const [parent, child, stranger] = [await newcomer(), await newcomer(), await newcomer()]
    const agent = await registerAgent(pds, child, { type: 'child', parentDid: parent.did as Did })
    expect((await audit(parent, agent.id)).status).toBe(200)
    expect(await list(parent)).toEqual([])
    expect((await end(stranger, agent.id)).status).toBe(404)
    expect((await end(parent, agent.id)).status).toBe(200)
    expect((await session(agent)).status).toBe(401)
  })

  test('of another account, or of none, is refused in the same words', async () => {
    const [alice, bob] = [await newcomer(), await newcomer()]
    const foreign = await registerAgent(pds, bob)
    const unclaimed = await registerAgent(pds, bob, { did: null, status: 'active' })
    const refusals = [foreign.id, unclaimed.id, 'reg_00000000000000000000000000000000', 'x'].flatMap((id) => [
      end(alice, id),
      audit(alice, id),
    ])
    for (const { status, body } of await Promise.all(refusals))
      expect({ status, body }).toEqual({
        status: 404,
        body: { error: { code: 'NOT_FOUND', message: 'No such agent' } },
      })
    expect((await session(foreign)).status).toBe(200)
  })
})

describe('who may', () => {
  test('only the owner: no agent, no app, no app password', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice, { scopes: [...DEFAULT_SCOPES] })
    const made = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'phone', privileged: true } })
    const phone = await logIn(pds, alice, made.body.password)
    const app = new OAuthClient(pds)
    const { access_token: granted } = await app.signIn({ identifier: alice.handle, password: alice.password })
    const paths: [string, { json?: unknown }][] = [
      ['/v1/agents', {}],
      [`/v1/agents/${agent.id}/audit`, {}],
      [`/v1/agents/${agent.id}/revoke`, { json: {} }],
    ]
    for (const [path, init] of paths) {
      const refusedAs = ({ status, body }: Answer) => `${status} ${body.error.code}`
      expect(refusedAs(await request(`${pds.url}${path}`, { ...init, headers: bearer(agent.token) }))).toBe(
        '403 InsufficientScope',
      )
      expect(refusedAs(await app.call(granted, path, {}, init))).toBe('403 InsufficientScope')
      expect(refusedAs(await request(`${pds.url}${path}`, { ...init, headers: bearer(phone.accessJwt) }))).toBe(
        '401 INVALID_TOKEN',
      )
    }
    expect((await session(agent)).status).toBe(200)
  })
})

describe('the record', () => {
  test('comes in pages without gaps or repeats, also while more is written', async () => {
    const alice = await newcomer()
    const [agent, other] = [await registerAgent(pds, alice), await registerAgent(pds, alice)]
    for (let i = 0; i < 5; i++) {
      await note(agent, 5)
      await note(other, 3)
    }
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const { body } = await audit(alice, agent.id, `?limit=7${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      seen.push(...body.events.map(({ id }: { id: string }) => id))
      ;({ cursor } = body)
      if (cursor !== undefined) expect(cursor).toMatch(/^\d+$/)
      await note(agent, 2)
      await note(other, 1)
    } while (cursor !== undefined)
    const all = (await audit(alice, agent.id, '?limit=100')).body.events.map(({ id }: { id: string }) => id)
    expect(seen).toEqual(all.slice(-25))
    expect(new Set(seen).size).toBe(25)
  })

  test('loses the oldest of what an agent did very often, and nothing of what became of it', async () => {
    const alice = await newcomer()
    const [agent, other] = [await registerAgent(pds, alice), await registerAgent(pds, alice)]
    const kept = async ({ id }: RegisteredAgent) =>
      (await audit(alice, id, '?limit=100')).body.events.map(({ id: event }: { id: string }) => event)
    await note(agent, 3)
    await pds.ctx.db.transaction((tx) =>
      insertAgentEvent(tx, { registrationId: agent.id, type: 'claim_expired', did: agent.did as Did, now: 1 }),
    )
    await note(agent, 20)
    await note(other, 5)
    const [before, others] = [await kept(agent), await kept(other)]
    const { signal } = new AbortController()
    await thinEvents(pds.ctx, signal, 10)
    const { events } = (await audit(alice, agent.id, '?limit=100')).body
    expect((await kept(agent)).slice(0, 10)).toEqual(before.slice(0, 10))
    const older = events.slice(10).map(({ eventType }: { eventType: string }) => eventType)
    expect(older[0]).toBe('claim_expired')
    expect(older).not.toContain('token_exchanged')
    expect(await kept(other)).toEqual(others)
    expect(await thinEvents(pds.ctx, signal, 10)).toEqual({ deleted: 0 })
    await pds.runSweep('agent-events')
    expect(await kept(agent)).toHaveLength(events.length)
  })

  test('is shown as objects, newest first', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    await agent.call('com.atproto.repo.createRecord', createPost(alice.did))
    await end(alice, agent.id)
    const { body } = await audit(alice, agent.id)
    expect(body).toEqual({
      events: [
        {
          id: expect.any(String),
          eventType: 'revoked',
          did: alice.did,
          detail: {},
          createdAt: expect.stringMatching(/Z$/),
        },
        {
          id: expect.any(String),
          eventType: 'repo_write',
          did: alice.did,
          detail: { creates: 1, updates: 0, deletes: 0, collections: ['app.bsky.feed.post'], rev: expect.any(String) },
          createdAt: expect.any(String),
        },
      ],
    })
  })

  test.each([
    ['?limit=0', 1],
    ['?limit=-5', 1],
    ['?limit=1000', 100],
    ['', 50],
  ])('a limit outside its range is moved into it: "%s"', async (query, length) => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    await note(agent, 101)
    expect((await audit(alice, agent.id, query)).body.events.length).toBe(length)
  })

  test.each(['?cursor=x', '?cursor=-1', '?cursor=1.5', '?limit=many'])('%s is malformed', async (query) => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    expect(await audit(alice, agent.id, query)).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_CLAIM' } },
    })
  })

  test('the record of an agent ends with the account', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    await agent.call('com.atproto.repo.createRecord', createPost(alice.did))
    await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: alice.did },
      headers: bearer(ADMIN_TOKEN),
    })
    const basic = `Basic ${btoa(`admin:${ADMIN_TOKEN}`)}`
    await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: alice.did },
      headers: { authorization: basic },
    })
    expect(await eventsOf(pds, agent)).toEqual([])
  })
})

describe('operators', () => {
  const operate = (path: string, json?: unknown) => at(path, bearer(ADMIN_TOKEN), json)
  const known = (
    account: TestAccount,
    subject: string,
    issuer = 'https://idp.test',
    status: 'claimed' | 'active' = 'claimed',
  ) => registerAgent(pds, account, { type: 'identity_assertion', issuer, subject, status })
  const sentTo = async ({ email }: TestAccount) =>
    (await noticesTo(pds, email)).filter(({ subject }) =>
      subject.startsWith('A program no longer has access to your account'),
    ).length

  test('count agents, end one, and end all of a provider, with a mail to each holder', async () => {
    const [alice, bob] = [await newcomer(), await newcomer()]
    const [one, two, waiting] = [
      await known(alice, 'one'),
      await known(bob, 'two'),
      await known(bob, 'three', undefined, 'active'),
    ]
    const elsewhere = await known(alice, 'one', 'https://other.test')
    const own = await registerAgent(pds, alice)
    const { body } = await operate('/v1/admin/agents')
    expect(body.agents).toContainEqual({
      type: 'identity_assertion',
      status: 'claimed',
      issuer: 'https://idp.test',
      trusted: true,
      count: 2,
    })
    expect(body.agents).toContainEqual({
      type: 'identity_assertion',
      status: 'claimed',
      issuer: 'https://other.test',
      trusted: false,
      count: 1,
    })
    expect(JSON.stringify(body)).not.toMatch(/did:|reg_/)

    for (let i = 0; i < 2; i++)
      expect(await operate('/v1/admin/agents/revoke', { registrationId: own.id })).toMatchObject({
        status: 200,
        body: { registrationId: own.id, status: 'revoked' },
      })
    expect((await session(own)).status).toBe(401)
    expect(await sentTo(alice)).toBe(1)

    expect(await operate('/v1/admin/agents/revoke', { issuer: 'https://idp.test' })).toMatchObject({
      body: { issuer: 'https://idp.test', ended: 3 },
    })
    expect(await operate('/v1/admin/agents/revoke', { issuer: 'https://idp.test' })).toMatchObject({
      body: { ended: 0 },
    })
    for (const agent of [one, two]) expect((await session(agent)).status).toBe(401)
    expect((await list(bob)).map(({ status }: { status: string }) => status)).toEqual(['revoked', 'revoked'])
    expect(await eventsOf(pds, waiting)).toEqual([
      { type: 'revoked', did: bob.did as Did, detail: { source: 'operator' } },
    ])
    expect(
      (await list(alice)).find(({ registrationId }: { registrationId: string }) => registrationId === elsewhere.id)
        .status,
    ).toBe('claimed')
    expect([await sentTo(alice), await sentTo(bob)]).toEqual([2, 2])
    const { events } = (await operate('/v1/admin/audit?limit=2')).body
    expect(events.map(({ action, subject }: { action: string; subject: string }) => [action, subject])).toEqual([
      ['agents_ended', 'https://idp.test'],
      ['agents_ended', alice.did],
    ])
  })

  test('end many in several transactions', async () => {
    const alice = await newcomer()
    for (let i = 0; i < 120; i++) await known(alice, `${i}`, 'https://many.test')
    expect(await operate('/v1/admin/agents/revoke', { issuer: 'https://many.test' })).toMatchObject({
      body: { ended: 120 },
    })
  })

  test.each([{}, { registrationId: 'a', issuer: 'b' }, { issuer: '' }, { registrationId: 5 }])(
    'have to say which: %p',
    async (json) => {
      expect((await operate('/v1/admin/agents/revoke', json)).status).toBeGreaterThanOrEqual(400)
      expect((await operate('/v1/admin/agents/revoke', { registrationId: 'reg_unknown' })).status).toBe(404)
    },
  )

  test('operators have commands for agents', async () => {
    const alice = await newcomer()
    const agent = await registerAgent(pds, alice)
    const run = (...words: string[]) => runProgram([...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
    const listed = await run('account', 'agents')
    expect(listed).toMatchObject({ code: 0, out: expect.stringMatching(/anonymous +confirmed +\d+/) })
    expect(await run('account', 'end-agents')).toMatchObject({ code: 2 })
    expect(await run('account', 'end-agents', agent.id)).toMatchObject({ code: 0 })
    expect((await session(agent)).status).toBe(401)
    expect(await run('account', 'end-agents', '--issuer', 'https://idp.test')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Programs ended: \d+\n$/),
    })
  })
})
