/** An agent stops at once: at its next request, and in the requests that are running. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import {
  createPost,
  DEFAULT_SCOPES,
  eventsOf,
  registerAgent,
  revoke,
  tokenFor,
  withAgents,
  type RegisteredAgent,
} from '../../support/clients/registered-agent.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { unaskedIssuer } from '../../support/servers/issuer.ts'

const APPVIEW = 'did:web:appview.test#bsky_appview'
const rpc = (lxm: string) => `rpc:${lxm}?aud=${APPVIEW.replace('#', '%23')}`
const SEND = 'app.bsky.feed.sendInteractions'
const PUT_PREFERENCES = 'app.bsky.actor.putPreferences'
const ALLOWED = [...DEFAULT_SCOPES, rpc(SEND), rpc(PUT_PREFERENCES), 'repo:*']
let count = 0
const { pds, appview } = useWorld({
  appview: true,
  config: {
    agentAuth: { ...withAgents, grantedScopes: ALLOWED, trustedIssuers: [unaskedIssuer] },
    rateLimit: { enabled: false },
  },
})
const alice = setUp(() => createAccount(pds, 'alice'))

const ended = { status: 401, body: { error: 'InvalidToken', message: 'The agent may no longer act for this account' } }
const session = (agent: RegisteredAgent) => agent.call('com.atproto.server.getSession')
const newcomer = () => createAccount(pds, `person${++count}`)

const paths: Record<string, (agent: RegisteredAgent) => Promise<Answer>> = {
  'who it is': session,
  'a write': (agent) => agent.call('com.atproto.repo.createRecord', createPost(agent.did)),
  'an upload': (agent) =>
    agent.call('com.atproto.repo.uploadBlob', { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }),
  'a read of the AppView': (agent) => agent.call('app.bsky.feed.getTimeline'),
  'any other forwarded read': (agent) => agent.call('app.bsky.graph.getFollows?actor=alice.test'),
  'a forwarded procedure': (agent) => agent.call(SEND, { json: { interactions: [] } }),
  'a service token': (agent) =>
    agent.call(`com.atproto.server.getServiceAuth?aud=${APPVIEW.replace('#', '%23')}&lxm=${SEND}`),
  preferences: (agent) => agent.call(PUT_PREFERENCES, { json: { preferences: [] } }),
  'a public export': (agent) => agent.call(`com.atproto.sync.getRepo?did=${agent.did}`),
  'a blob': (agent) => agent.call(`com.atproto.sync.listBlobs?did=${agent.did}`),
}

const admin = (nsid: string, json: object) => xrpc(pds, nsid, { json, headers: basic('admin', ADMIN_TOKEN) })
const takedown = (did: string, applied: boolean) =>
  admin('com.atproto.admin.updateSubjectStatus', {
    subject: { $type: 'com.atproto.admin.defs#repoRef', did },
    takedown: { applied },
  })

describe('the next request is refused on every path', () => {
  const endings: Record<string, (account: TestAccount, agent: RegisteredAgent) => Promise<unknown>> = {
    'once the agent is revoked': (_, agent) => revoke(pds, agent),
    'while the account is deactivated': (account) => account.call('com.atproto.server.deactivateAccount', { json: {} }),
    'while the account is taken down': ({ did }) => takedown(did, true),
    'once the account is deleted': ({ did }) => admin('com.atproto.admin.deleteAccount', { did }),
  }
  test.each(Object.entries(endings))('%s', async (_, end) => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account, { scopes: ALLOWED })
    for (const [path, call] of Object.entries(paths)) expect([path, (await call(agent)).status]).toEqual([path, 200])
    const asked = appview.received.length
    await end(account, agent)
    for (const [path, call] of Object.entries(paths)) expect([path, await call(agent)]).toMatchObject([path, ended])
    expect(appview.received.length).toBe(asked)
  })

  test('an agent goes on when its account comes back, and another agent of the account all the time', async () => {
    const account = await newcomer()
    const [one, other] = [await registerAgent(pds, account), await registerAgent(pds, account)]
    await account.call('com.atproto.server.deactivateAccount', { json: {} })
    expect(await session(one)).toMatchObject(ended)
    await account.call('com.atproto.server.activateAccount', { method: 'POST' })
    expect((await session(one)).status).toBe(200)
    await revoke(pds, one)
    expect([(await session(one)).status, (await session(other)).status]).toEqual([401, 200])
  })

  test('a registration that waits to be confirmed, or is that of another account, opens nothing', async () => {
    const bob = await newcomer()
    for (const given of [
      { status: 'active' as const },
      { status: 'revoked' as const },
      { did: bob.did as never },
      { did: null },
    ]) {
      const agent = await registerAgent(pds, alice, given)
      expect(await session(agent)).toMatchObject(ended)
    }
  })
})

describe('what the operator takes back', () => {
  const restart = (agentAuth: object) =>
    pds.restart({ agentAuth: { ...withAgents, grantedScopes: ALLOWED, trustedIssuers: [unaskedIssuer], ...agentAuth } })
  afterEach(() => restart({}))

  test('an issuer that is no longer trusted: its agents stop, others go on', async () => {
    const known = await registerAgent(pds, alice, {
      type: 'identity_assertion',
      issuer: 'https://idp.test',
      subject: 'a',
    })
    const own = await registerAgent(pds, alice)
    expect((await session(known)).status).toBe(200)
    await restart({ trustedIssuers: [] })
    expect(await session(known)).toMatchObject(ended)
    expect((await session(own)).status).toBe(200)
  })

  test('a scope: it is gone from tokens that were issued with it', async () => {
    const agent = await registerAgent(pds, alice)
    expect((await agent.call('com.atproto.repo.createRecord', createPost(alice.did))).status).toBe(200)
    await restart({ grantedScopes: ['atproto', 'blob:*/*'] })
    expect(await agent.call('com.atproto.repo.createRecord', createPost(alice.did))).toMatchObject({
      status: 403,
      body: { error: 'InsufficientScope' },
    })
    expect((await session(agent)).status).toBe(200)
    // Whatever is allowed later, the old scopes are what the owner confirmed.
    await restart({ grantedScopes: ['repo:*'] })
    expect(await session(agent)).toMatchObject(ended)
  })

  test('a token never has more than its registration', async () => {
    const agent = await registerAgent(pds, alice, { scopes: ['atproto'] })
    const wide = await tokenFor(pds, agent.id, alice.did, ALLOWED)
    const answer = await xrpc(pds, 'com.atproto.repo.createRecord', { ...createPost(alice.did), headers: bearer(wide) })
    expect(answer).toMatchObject({ status: 403, body: { error: 'InsufficientScope' } })
  })

  test('an operator who turns agents off ends all of them', async () => {
    const agent = await registerAgent(pds, alice)
    await restart({ anonymousEnabled: false, trustedIssuers: [] })
    expect(await session(agent)).toMatchObject(ended)
  })
})

/** A body whose second part is sent when the test says so. */
function inTwoParts(first: string, second: string): { body: ReadableStream<Uint8Array>; send(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const parts = [first, second].map((part) => new TextEncoder().encode(part))
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

const sending = (agent: RegisteredAgent, nsid: string, type: string, body: ReadableStream) =>
  request(`${pds.url}/xrpc/${nsid}`, {
    method: 'POST',
    body,
    headers: { ...bearer(agent.token), 'content-type': type },
  })

/** Other requests go through meanwhile, so those that were sent before have passed their guard. */
async function passGuards(): Promise<void> {
  for (let i = 0; i < 5; i++) await alice.call('com.atproto.server.getSession')
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i++) await passGuards()
  expect(holds()).toBe(true)
}

describe('a request that is running', () => {
  const halves = (text: string) => [text.slice(0, 5), text.slice(5)] as const

  test('a write whose agent is revoked before it is committed is not made', async () => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account)
    const { body, send } = inTwoParts(...halves(JSON.stringify(createPost(account.did).json)))
    const answer = sending(agent, 'com.atproto.repo.createRecord', 'application/json', body)
    await passGuards()
    await revoke(pds, agent)
    send()
    expect(await answer).toMatchObject(ended)
    expect(
      (await xrpc(pds, `com.atproto.repo.listRecords?repo=${account.did}&collection=app.bsky.feed.post`)).body.records,
    ).toEqual([])
    expect(await eventsOf(pds, agent)).toEqual([])
  })

  test('of writes beside a revocation, those that are made are answered and on record, and no others', async () => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account)
    const writes = Array.from({ length: 40 }, (_, i) =>
      agent.call('com.atproto.repo.createRecord', createPost(account.did, `${i}`)),
    )
    await writes[0]
    await revoke(pds, agent)
    const answers = await Promise.all(writes)
    const made = answers.filter(({ status }) => status === 200)
    for (const answer of answers) if (answer.status !== 200) expect(answer).toMatchObject(ended)
    const { body } = await xrpc(
      pds,
      `com.atproto.repo.listRecords?repo=${account.did}&collection=app.bsky.feed.post&limit=100`,
    )
    expect(body.records.length).toBe(made.length)
    expect((await eventsOf(pds, agent)).map(({ detail }) => detail!['rev']).toSorted()).toEqual(
      made.map((answer) => answer.body.commit.rev).toSorted(),
    )
  })

  test('an upload whose agent is revoked leaves nothing, however much of it had arrived', async () => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account)
    const { body, send } = inTwoParts('the first part', ' and the last')
    const answer = sending(agent, 'com.atproto.repo.uploadBlob', 'text/plain', body)
    const incoming = () => new Stored(pds).incoming()
    await until(() => incoming().length > 0)
    await revoke(pds, agent)
    send()
    expect(await answer).toMatchObject(ended)
    expect(incoming()).toEqual([])
    expect(await eventsOf(pds, agent)).toEqual([])
  })

  test.each(['deactivated', 'taken down'])('an upload for an account that is %s meanwhile is refused', async (how) => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account)
    const { body, send } = inTwoParts('the first part', ` of ${how}`)
    const answer = sending(agent, 'com.atproto.repo.uploadBlob', 'text/plain', body)
    await until(() => new Stored(pds).incoming().length > 0)
    if (how === 'deactivated') await account.call('com.atproto.server.deactivateAccount', { json: {} })
    else await takedown(account.did, true)
    send()
    expect((await answer).status).toBe(401)
  })

  test('preferences are not replaced by an agent that is gone', async () => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account, { scopes: ALLOWED })
    const preference = { $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }
    const { body, send } = inTwoParts(...halves(JSON.stringify({ preferences: [preference] })))
    const answer = sending(agent, PUT_PREFERENCES, 'application/json', body)
    await passGuards()
    await revoke(pds, agent)
    send()
    expect(await answer).toMatchObject(ended)
    expect((await account.call('app.bsky.actor.getPreferences')).body).toEqual({ preferences: [] })
  })

  test('an answer of another service that comes after the revocation is not passed on', async () => {
    const agent = await registerAgent(pds, await newcomer())
    const { promise, resolve } = Promise.withResolvers<void>()
    appview.answer('app.bsky.graph.getFollows', async () => {
      await promise
      return Response.json({ secret: true })
    })
    const answer = agent.call('app.bsky.graph.getFollows?actor=alice.test')
    await until(() => appview.received.length === 1)
    await revoke(pds, agent)
    resolve()
    expect(await answer).toMatchObject(ended)
  })

  test('a thread that is made here is not sent if the agent is revoked while the ancestors are asked for', async () => {
    const account = await newcomer()
    const agent = await registerAgent(pds, account)
    const write = async (more: object) => {
      const { json } = createPost(account.did)
      const { body } = await account.call('com.atproto.repo.createRecord', {
        json: { ...json, record: { ...json.record, ...more } },
      })
      return body
    }
    const { uri, cid, commit } = await write({})
    const fresh = await write({ reply: { root: { uri, cid }, parent: { uri, cid } } })
    const thread = { $type: 'app.bsky.feed.defs#notFoundPost', uri, notFound: true }
    let ends = false
    appview.answer('app.bsky.feed.getPostThread', async (asked) => {
      if (new URL(asked.url).searchParams.get('uri') !== uri)
        return Response.json({ error: 'NotFound' }, { status: 400, headers: { 'atproto-repo-rev': commit.rev } })
      if (ends) await revoke(pds, agent)
      return Response.json({ thread })
    })
    const read = () => agent.call(`app.bsky.feed.getPostThread?uri=${encodeURIComponent(fresh.uri)}`)
    expect((await read()).body).toMatchObject({ thread: { post: { uri: fresh.uri }, parent: thread } })
    ends = true
    expect(await read()).toMatchObject(ended)
  })

  test('an answer that is being passed on breaks off', async () => {
    const agent = await registerAgent(pds, await newcomer())
    const { promise, resolve: send } = Promise.withResolvers<void>()
    async function* parts() {
      yield Buffer.from('the first part')
      await promise
      yield Buffer.from('the last part')
    }
    appview.answer(
      'app.bsky.graph.getFollows',
      () => new Response(parts() as never, { headers: { 'content-type': 'application/octet-stream' } }),
    )
    const response = await fetch(`${pds.url}/xrpc/app.bsky.graph.getFollows?actor=alice.test`, {
      headers: bearer(agent.token),
    })
    const reader = response.body!.getReader()
    let received = new TextDecoder().decode((await reader.read()).value)
    await revoke(pds, agent)
    send()
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read())
        received += new TextDecoder().decode(part.value)
    } catch (error) {
      expect(error).toBeInstanceOf(Error)
    }
    expect(received).toBe('the first part')
  })

  test.each([
    ['text/plain', 'passes in pieces, of which the last does not arrive'],
    ['application/json', 'is read first, and none of it is sent'],
  ])('what an agent sends to another service as %s %s', async (type) => {
    const agent = await registerAgent(pds, await newcomer(), { scopes: ALLOWED })
    let received = ''
    appview.answer(SEND, async (asked) => {
      try {
        for await (const part of asked.body!) received += new TextDecoder().decode(part)
        received += '(end)'
      } catch {
        received += '(broken off)'
      }
      return Response.json({})
    })
    const { body, send } = inTwoParts('{"interactions":', '[]}')
    const answer = sending(agent, SEND, type, body)
    if (type === 'application/json') await passGuards()
    else await until(() => received !== '')
    await revoke(pds, agent)
    send()
    expect(await answer).toMatchObject(ended)
    if (type === 'application/json') expect(received).toBe('')
    expect(received).not.toContain('[]}')
    expect(received).not.toContain('(end)')
  })
})
