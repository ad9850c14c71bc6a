/** A session that has ended is over at once, for the access tokens that it still has as well. */
import { createHmac } from 'node:crypto'
import { AtpAgent } from '@atproto/api'
import { describe, expect, test } from 'bun:test'
import { issueAccessToken, sessionTokenKey } from '../../../src/features/access/sessions/session-tokens.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { withAgents } from '../../support/clients/registered-agent.ts'
import { setTakedown } from '../../system/conformance/callers.ts'
import { createAccount, holder, logIn, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { newShare, withMasterKey } from '../../support/clients/recovery.ts'
import { useWorld } from '../../support/world.ts'

const APPVIEW = 'did:web:appview.test#bsky_appview'
const COLLECTION = 'app.bsky.feed.post'

let count = 0
const { pds, appview } = useWorld({
  appview: true,
  config: {
    ...withMasterKey,
    agentAuth: { ...withAgents },
    rateLimit: { enabled: false },
    spaces: { enabled: true },
  },
})

const newcomer = () => createAccount(pds, `person${++count}`)
const operator = basic('admin', ADMIN_TOKEN)
const at = ({ accessJwt }: TestAccount, path: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.url}${path}`, {
    ...init,
    headers: { ...bearer(accessJwt), ...(init.headers as Record<string, string>) },
  })
const record = () => ({ $type: COLLECTION, text: `${++count}`, createdAt: '2026-01-01T00:00:00.000Z' })
const write = (holder: TestAccount) =>
  holder.call('com.atproto.repo.createRecord', { json: { repo: holder.did, collection: COLLECTION, record: record() } })
const spaceOf = ({ did }: TestAccount) => ({ space: `at://${did}/space/test.forum.space/a`, repo: did })
const session = (holder: TestAccount) => holder.call('com.atproto.server.getSession')
const upload = (holder: TestAccount, body: string | ReadableStream = `${++count}`) =>
  holder.call('com.atproto.repo.uploadBlob', { method: 'POST', body, headers: { 'content-type': 'text/plain' } })

async function agentCode(email: string): Promise<string> {
  const { body } = await request(`${pds.url}/agent/identity`, { json: { type: 'anonymous' } })
  const claim = await request(`${pds.url}/agent/identity/claim`, { json: { claim_token: body.claim_token, email } })
  return claim.body.claim_attempt.user_code
}
const confirmAgent = async (holder: TestAccount): Promise<Answer> =>
  at(holder, '/agent/identity/claim/confirm', { json: { user_code: await agentCode(holder.email) } })

/**
 * Whatever a session opens, one of each kind. `owner`: what no app password opens. `error`: where its name is another.
 */
const paths: Record<string, { owner?: true; error?: string; call(holder: TestAccount): Promise<Answer> }> = {
  'who it is': { call: session },
  preferences: { call: (holder) => holder.call('app.bsky.actor.getPreferences') },
  'the status of the account': { call: (holder) => holder.call('com.atproto.server.checkAccountStatus') },
  'an export': { call: (holder) => holder.call(`com.atproto.sync.getRepo?did=${holder.did}`) },
  'a write': { call: write },
  'a write that changes nothing': {
    call: (holder) =>
      holder.call('com.atproto.repo.deleteRecord', {
        json: { repo: holder.did, collection: COLLECTION, rkey: 'none' },
      }),
  },
  'a write in a space': {
    owner: true,
    call: (holder) =>
      holder.call('com.atproto.space.createRecord', {
        json: { ...spaceOf(holder), collection: COLLECTION, record: record() },
      }),
  },
  'a read of a space': {
    owner: true,
    call: (holder) => holder.call(`com.atproto.space.getLatestCommit?${new URLSearchParams(spaceOf(holder))}`),
  },
  'a batch of writes': {
    call: (holder) =>
      holder.call('com.atproto.repo.applyWrites', {
        json: {
          repo: holder.handle,
          writes: [{ $type: 'com.atproto.repo.applyWrites#create', collection: COLLECTION, value: record() }],
        },
      }),
  },
  'an upload': { call: upload },
  'a read of the AppView': { call: (holder) => holder.call('app.bsky.feed.getTimeline') },
  'a forwarded read': { call: (holder) => holder.call('app.bsky.graph.getFollows?actor=alice.test') },
  'a forwarded procedure': {
    call: (holder) => holder.call('app.bsky.feed.sendInteractions', { json: { interactions: [] } }),
  },
  'a token for another service': {
    call: (holder) =>
      holder.call(`com.atproto.server.getServiceAuth?aud=${encodeURIComponent(APPVIEW)}&lxm=app.bsky.feed.getTimeline`),
  },
  'an app password': {
    owner: true,
    call: (holder) => holder.call('com.atproto.server.createAppPassword', { json: { name: `password ${++count}` } }),
  },
  'an agent': { owner: true, error: 'invalid_token', call: confirmAgent },
  'the list of agents': { owner: true, error: 'TOKEN_EXPIRED', call: (holder) => at(holder, '/v1/agents') },
  'an email address': {
    owner: true,
    call: (holder) => holder.call('com.atproto.server.requestEmailUpdate', { method: 'POST' }),
  },
  'a handle': {
    owner: true,
    call: (holder) => holder.call('com.atproto.identity.updateHandle', { json: { handle: holder.handle } }),
  },
}

/** What is left of the caller: 400 in methods of the standard, 401 elsewhere, and never an effect. */
async function expectEnded(holder: TestAccount): Promise<void> {
  const asked = appview.received.length
  const head = async () => (await xrpc(pds, `com.atproto.sync.getLatestCommit?did=${holder.did}`)).body.rev
  const before = await head()
  for (const [path, { error = 'ExpiredToken', call }] of Object.entries(paths)) {
    const { status, body } = await call(holder)
    expect([path, body.error?.code ?? body.error, [400, 401].includes(status)]).toEqual([path, error, true])
  }
  expect(appview.received.length).toBe(asked)
  expect(await head()).toBe(before)
}

async function expectLive(holder: TestAccount, isOwner = true): Promise<void> {
  for (const [path, { owner, call }] of Object.entries(paths))
    if (isOwner || !owner) expect([path, (await call(holder)).status]).toEqual([path, 200])
}

/** Signs in to the account page. Returns a function that sends its forms. */
async function accountPage({ did, handle, password }: TestAccount) {
  const form = (path: string, fields: Record<string, string>, cookie = '') =>
    request(`${pds.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie },
      body: new URLSearchParams(fields).toString(),
    })
  const cookie = (await form('/account/sign-in', { identifier: handle, password })).headers
    .get('set-cookie')!
    .split(';')[0]!
  const { body } = await request(`${pds.url}/account`, { headers: { cookie } })
  const form_token = /name="form_token" value="([^"]+)"/.exec(body)![1]!
  return async (path: string, fields: Record<string, string>) => {
    expect((await form(path, { account: did, form_token, ...fields }, cookie)).status).toBe(303)
  }
}

const sessionIdOf = ({ accessJwt }: TestAccount): string =>
  JSON.parse(Buffer.from(accessJwt.split('.')[1]!, 'base64url').toString()).sid
const ended = { status: 400, body: { error: 'ExpiredToken', message: 'Token has been revoked' } }

/** Each ends the session that it gets, of the account. */
const endings: Record<string, (holder: TestAccount) => Promise<unknown>> = {
  async 'a reset of the password'({ email }) {
    await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
    const json = { token: await lastCode(pds, email), password: 'a password of my own' }
    expect((await xrpc(pds, 'com.atproto.server.resetPassword', { json })).status).toBe(200)
  },
  'a password that the operator sets': ({ did }) =>
    xrpc(pds, 'com.atproto.admin.updateAccountPassword', {
      json: { did, password: 'another password' },
      headers: operator,
    }),
  'credentials that the operator revokes': ({ did }) =>
    request(`${pds.url}/v1/admin/accounts/${did}/revoke-credentials`, { method: 'POST', headers: operator }),
  'its refresh token': ({ refreshJwt }) =>
    xrpc(pds, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(refreshJwt) }),
  async 'a new password on the account page'(holder) {
    await (
      await accountPage(holder)
    )('/account/password', { current: holder.password, next: 'a new password' })
  },
  async 'the list of sessions on the account page'(holder) {
    await (
      await accountPage(holder)
    )('/account/sessions', { id: sessionIdOf(holder) })
  },
  async 'a refresh token that two parties have used'({ refreshJwt }) {
    const refresh = (token: string) =>
      xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(token) })
    const next = await refresh((await refresh(refreshJwt)).body.refreshJwt)
    expect([next.status, (await refresh(refreshJwt)).status]).toEqual([200, 400])
  },
}

describe('the access token opens nothing once the session was ended by', () => {
  test.each(Object.entries(endings))('%s', async (_, end) => {
    const account = await newcomer()
    await expectLive(account)
    await end(account)
    await expectEnded(account)
  })

  test('the end of its app password', async () => {
    const account = await newcomer()
    const made = await account.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
    const phone = await logIn(pds, account, made.body.password)
    await expectLive(phone, false)
    await account.call('com.atproto.server.revokeAppPassword', { json: { name: 'phone' } })
    for (const [path, { owner, call }] of Object.entries(paths))
      if (!owner) expect([path, await call(phone)]).toMatchObject([path, ended])
    await expectLive(account)
  })
})

describe('nobody else is signed out', () => {
  test('by the end of one of many sessions', async () => {
    const [account, other] = [await newcomer(), await newcomer()]
    const second = await logIn(pds, account, account.password)
    await endings['its refresh token']!(account)
    await expectLive(second)
    await expectLive(other)
    expect(await session(account)).toMatchObject(ended)
  })

  test('who signs in within the same second as all others are signed out', async () => {
    const account = await newcomer()
    await endings['credentials that the operator revokes']!(account)
    await expectLive(await logIn(pds, account, account.password))
    expect(await session(account)).toMatchObject(ended)
  })

  test('by a new password, if a wallet opened the session', async () => {
    const account = await newcomer()
    await pds.damage('session', { did: account.did }, { by_password: 0 })
    await endings['a password that the operator sets']!(account)
    expect((await session(account)).status).toBe(200)
  })

  test('by a restart, nor when the refresh token is exchanged', async () => {
    const account = await newcomer()
    await pds.restart()
    await xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(account.refreshJwt) })
    await expectLive(account)
  })
})

test('the session of another account does not make a token good', async () => {
  const [alice, bob] = [await newcomer(), await newcomer()]
  const token = await issueAccessToken(pds.ctx, {
    did: alice.did as Did,
    sessionId: sessionIdOf(bob),
    kind: 'full',
    personalDetails: false,
  })
  await expectEnded(holder(pds, { ...alice, accessJwt: token }))
})

test('a token that names no session, as version 0.1.0 issued them, is over, and its client gets another', async () => {
  const account = await newcomer()
  const [head, payload] = account.accessJwt.split('.') as [string, string]
  const { sid: _, ...claims } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const signed = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  const seal = createHmac('sha256', await sessionTokenKey(pds.ctx))
    .update(signed)
    .digest('base64url')
  const old = holder(pds, { ...account, accessJwt: `${signed}.${seal}` })
  await expectEnded(old)
  const agent = new AtpAgent({ service: pds.url })
  agent.sessionManager.session = { ...old, active: true }
  expect((await agent.com.atproto.server.getSession()).data.did).toBe(account.did)
  expect(agent.session!.accessJwt).not.toBe(old.accessJwt)
})

test('a real client is signed out when its session was ended elsewhere', async () => {
  const account = await newcomer()
  const events: string[] = []
  const agent = new AtpAgent({ service: pds.url, persistSession: (event) => void events.push(event) })
  await agent.login({ identifier: account.handle, password: account.password })
  await endings['credentials that the operator revokes']!(account)
  await agent.com.atproto.server.getSession().catch((error: unknown) => events.push(String(error)))
  expect(events).toEqual(['create', 'expired', 'Error: Token has been revoked'])
  expect(agent.session).toBeUndefined()
})

test('a takedown limits sessions, which end as others do, and at the latest when it is lifted', async () => {
  const account = await newcomer()
  await setTakedown(pds, account.did, true)
  expect(await session(account)).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect((await write(account)).body.error).toBe('AccountTakedown')
  const limited = () => logIn(pds, account, account.password, { allowTakendown: true })
  const export_ = (holder: TestAccount) => holder.call(`com.atproto.sync.getRepo?did=${holder.did}`)
  const [first, second] = [await limited(), await limited()]
  expect([(await export_(first)).status, (await export_(second)).status]).toEqual([200, 200])
  await xrpc(pds, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(first.refreshJwt) })
  expect(await export_(first)).toMatchObject(ended)
  const refresh = () =>
    xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(second.refreshJwt) })
  expect(await refresh()).toMatchObject({ status: 401, body: { error: 'AccountTakedown' } })
  await setTakedown(pds, account.did, false)
  expect([await export_(second), await export_(account), await refresh()]).toMatchObject([ended, ended, ended])
})

test.each([
  ['a repository', 'com.atproto.repo.createRecord', () => ({})],
  ['a space', 'com.atproto.space.createRecord', (did: string) => ({ space: `at://${did}/space/com.example.place/a` })],
])('what an ended session tries in %s is not charged to its account', async (_, nsid, more) => {
  await using limited = await startPds({ spaces: { enabled: true } })
  const account = await createAccount(limited, 'alice')
  await xrpc(limited, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(account.refreshJwt) })
  const attempt = (repo: string) =>
    account.call(nsid, { json: { repo, collection: COLLECTION, record: record(), ...more(account.did) } })
  const left = () => limited.ctx.limits.charge({ name: 'repoWrite', key: account.did, cost: 0 })!.remaining
  const before = left()
  // The first is charged: it finds that the session has ended, though it would be refused for another reason.
  expect(await attempt('did:web:a.test')).toMatchObject(ended)
  expect(left()).toBe(before - 3)
  for (const repo of [account.did, 'did:web:a.test', account.did]) expect(await attempt(repo)).toMatchObject(ended)
  expect(left()).toBe(before - 3)
})

describe('a request that is running when the session ends', () => {
  /** A body whose second part is sent when the test says so. */
  function inTwoParts(bytes: Uint8Array): { body: ReadableStream<Uint8Array>; send(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const parts = [bytes.slice(0, 5), bytes.slice(5)]
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(parts[0]!),
      async pull(controller) {
        await promise
        controller.enqueue(parts[1]!)
        controller.close()
      },
    })
    return { body, send: resolve }
  }

  /** Other requests go through meanwhile, so those that were sent before have passed their guard. */
  async function passGuards(holder: TestAccount): Promise<void> {
    for (let i = 0; i < 5; i++) await session(holder)
  }

  interface Sent {
    path: string
    method?: string
    type?: string
    /** An object is sent as JSON. */
    body(holder: TestAccount): object | Promise<object>
    error?: string
    /** Ends the session; the operator revokes all credentials if omitted. */
    end?: keyof typeof endings
  }
  const withAppPassword = async (holder: TestAccount) => {
    await holder.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
    return { name: 'phone' }
  }
  const sent: Record<string, Sent> = {
    'a write': {
      path: '/xrpc/com.atproto.repo.createRecord',
      body: ({ did }) => ({ repo: did, collection: COLLECTION, record: record() }),
    },
    'an upload': {
      path: '/xrpc/com.atproto.repo.uploadBlob',
      type: 'text/plain',
      body: () => new TextEncoder().encode(`${++count} and so on`),
    },
    'an import': {
      path: '/xrpc/com.atproto.repo.importRepo',
      type: 'application/vnd.ipld.car',
      async body(holder) {
        const archive = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${holder.did}`)
        const bytes = new Uint8Array(await archive.arrayBuffer())
        await write(holder)
        return bytes
      },
    },
    preferences: {
      path: '/xrpc/app.bsky.actor.putPreferences',
      body: () => ({ preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }] }),
    },
    'an app password': { path: '/xrpc/com.atproto.server.createAppPassword', body: () => ({ name: 'mine' }) },
    'the end of an app password': {
      path: '/xrpc/com.atproto.server.revokeAppPassword',
      body: withAppPassword,
      end: 'its refresh token',
    },
    'the end of an app password, by its owner': {
      path: '/v1/app-passwords/revoke',
      body: withAppPassword,
      error: 'TOKEN_EXPIRED',
      end: 'its refresh token',
    },
    'an email address': {
      path: '/xrpc/com.atproto.server.updateEmail',
      body: () => ({ email: 'mallory@example.com' }),
    },
    'a handle': { path: '/xrpc/com.atproto.identity.updateHandle', body: () => ({ handle: `other${++count}.test` }) },
    'a deactivation': { path: '/xrpc/com.atproto.server.deactivateAccount', body: () => ({}) },
    'the confirmation of an agent': {
      path: '/agent/identity/claim/confirm',
      body: async ({ email }) => ({ user_code: await agentCode(email) }),
      error: 'invalid_token',
    },
    'a recovery share': {
      path: '/v1/recovery/escrow-share',
      method: 'PUT',
      body: () => ({ share: newShare() }),
      error: 'TOKEN_EXPIRED',
    },
  }
  const stateOf = async ({ did }: TestAccount) => ({
    account: await pds.rows('account', { did }, ['handle', 'email', 'deactivated_at']),
    repo: await pds.rows('repo', { did }, ['head', 'rev']),
    counts: await Promise.all(
      (['app_password', 'blob', 'agent_registration', 'preference', 'escrow_share'] as const).map((table) =>
        pds.count(table, { did }),
      ),
    ),
  })
  test.each(Object.entries(sent))(
    '%s has no effect',
    async (_, { path, method = 'POST', type = 'application/json', body: given, error, end }) => {
      const account = await newcomer()
      const content = await given(account)
      const before = await stateOf(account)
      const { body, send } = inTwoParts(
        content instanceof Uint8Array ? content : new TextEncoder().encode(JSON.stringify(content)),
      )
      const answer = at(account, path, { method, body, headers: { 'content-type': type } })
      await passGuards(account)
      await endings[end ?? 'credentials that the operator revokes']!(account)
      send()
      const answered = await answer
      expect(answered.body.error?.code ?? answered.body.error).toBe(error ?? 'ExpiredToken')
      expect(await stateOf(account)).toEqual(before)
    },
  )

  test.each([
    ['its session ends', endings['credentials that the operator revokes']!, 'ExpiredToken'],
    ['its account is taken down', ({ did }: TestAccount) => setTakedown(pds, did, true), 'AccountTakedown'],
  ] as const)('an answer of another service is not passed on if %s', async (_, end, error) => {
    const account = await newcomer()
    appview.received.length = 0
    const { promise, resolve } = Promise.withResolvers<void>()
    appview.answer('app.bsky.graph.getFollows', async () => {
      await promise
      return Response.json({ secret: true })
    })
    const answer = account.call('app.bsky.graph.getFollows?actor=alice.test')
    for (let i = 0; i < 1000 && appview.received.length === 0; i++) await passGuards(account)
    await end(account)
    pds.clock.advance({ secs: 1 })
    resolve()
    expect((await answer).body.error).toBe(error)
  })
})
