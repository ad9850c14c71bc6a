/**
 * Accounts that an account makes for agents: how they are made, also after a kill, how they end, and how that is
 * undone.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { decodeJws } from '../../../src/protocol/jws.ts'
import { formatDidKey, parseDidKey } from '../../../src/protocol/keys.ts'
import { genesisDid, genesisOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { confirmedAgent, exchangeAgent } from '../../support/clients/agent.ts'
import { bring, reserveKey, type Bringing } from '../../support/clients/brought.ts'
import { allNumbered } from '../../support/clients/events.ts'
import { brokenByPost, type Fate } from '../../support/faults/faulty-line.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { keeper, moveIn } from '../../support/clients/stranger.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { askSession, deviceKey, sessionRequest, walletSession } from '../../support/clients/wallet.ts'
import { eventsOf } from '../../support/agent-rows.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const SCOPES = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']
const GRACE_SECS = 86_400

let wallet: string
const { pds, line } = useWorld({
  line: true,
  config: {
    signingKeyMasterKey: MASTER_KEY,
    agentAuth: { anonymousEnabled: true },
    rateLimit: { enabled: false },
  },
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  wallet = await walletSession(pds, alice.did)
})

let names = 0
const newName = () => `child${names++}`

const make = (name: string, plcOp: unknown, token = wallet): Promise<Answer> =>
  request(`${pds.url}/agent/child`, { json: { handle: `${name}.test`, plcOp }, headers: bearer(token) })
const list = (token = wallet): Promise<Answer> => request(`${pds.url}/agent/child`, { headers: bearer(token) })
const revoke = (did: string, token = wallet): Promise<Answer> =>
  request(`${pds.url}/agent/child/revoke`, { json: { did }, headers: bearer(token) })
const remove = (did: string, token = wallet): Promise<Answer> =>
  request(`${pds.url}/agent/child/delete`, { json: { did }, headers: bearer(token) })

interface Made extends Bringing {
  name: string
  did: string
  registrationId: string
  assertion: string
}

/** A wallet alone above the identity: this server holds none of its rotation keys. */
const bringAlone = async (name: string, changes: Partial<Operation> = {}): Promise<Bringing> => {
  const device = deviceKey()
  return bring(pds, name, { rotationKeys: [device.did], ...changes }, device)
}

async function made(name = newName(), token = wallet): Promise<Made> {
  const brought = await bringAlone(name)
  const { status, body } = await make(name, brought.plcOp, token)
  expect({ status, body }).toMatchObject({ status: 200 })
  return { ...brought, name, did: body.did, registrationId: body.registrationId, assertion: body.identityAssertion }
}

test('what the identity of a child names for permissioned data stays as its wallet has signed it', async () => {
  const name = newName()
  const device = deviceKey()
  const genesis = genesisOperation({
    signingKey: await reserveKey(pds),
    handle: `${name}.test` as Handle,
    rotationKeys: [device.did],
    pdsEndpoint: pds.url,
  })
  const named = {
    verificationMethods: { ...genesis.verificationMethods, atproto_space: device.did },
    services: { ...genesis.services, atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://a.example' } },
  }
  const { status, body } = await make(name, signOperation({ ...genesis, ...named }, device.key))
  expect({ status, body }).toMatchObject({ status: 200 })
  expect((await pds.ctx.plc.state(body.did))!).toMatchObject(named)
  const { body: described } = await xrpc(pds, `com.atproto.repo.describeRepo?repo=${body.did}`)
  expect(described.didDoc.service.map(({ id }: { id: string }) => id)).toContain('#atproto_space_host')
  expect((await remove(body.did)).status).toBe(200)
})

test('who takes an account down learns which accounts it made, which stay', async () => {
  const parent = await createAccount(pds, newName())
  const [first, second] = [await made(newName(), parent.accessJwt), await made(newName(), parent.accessJwt)]
  const operate = async (...words: string[]) =>
    (await runProgram(['account', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })).out
  const lookUp = async (account: string) =>
    (await request(`${pds.url}/v1/admin/accounts/lookup`, { json: { account }, headers: bearer(ADMIN_TOKEN) })).body
  await operate('takedown', second.did)
  const children = [
    { did: first.did, handle: `${first.name}.test`, status: 'active' },
    { did: second.did, handle: `${second.name}.test`, status: 'takendown' },
  ]
  expect(await lookUp(parent.did)).toMatchObject({ madeBy: null, children })
  expect(await lookUp(first.did)).toMatchObject({ madeBy: parent.did, children: [] })
  expect(await operate('show', parent.did)).toContain(`${second.name}.test (${second.did}), takendown`)
  const told = await operate('takedown', parent.did)
  expect(told).toContain(`still active: ${first.name}.test (${first.did}).`)
  expect(await statusOf(first.did)).toMatchObject({ active: true })
  expect(await operate('restore', parent.did)).not.toContain(first.name)
})

const failed = (status: number, code: string) => ({ status, body: { error: { code, message: expect.any(String) } } })
const statusOf = async (did: string) => (await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`)).body
/** What the log of events says of an account, in order. */
async function eventsAbout(did: string): Promise<string[]> {
  await allNumbered(pds)
  const rows = await pds.rows('repo_seq', { did })
  return rows.map(({ event_type: type, frame }) => {
    const text = Buffer.from(frame).toString('latin1')
    return type === 'account' ? `account ${/deactivated|deleted|takendown/.exec(text)?.[0] ?? 'active'}` : type
  })
}

describe('a child', () => {
  test('is an account of its own, whose agent may act, and whose identity is its wallet’s alone', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    const { status, headers, body } = await make(name, brought.plcOp)
    const did = genesisDid(brought.plcOp)
    const { identityAssertion, didDocument, ...rest } = body
    expect({ status, body: rest }).toEqual({
      status: 200,
      body: {
        registrationId: expect.stringMatching(/^reg_[0-9a-f]{32}$/),
        did,
        handle: `${name}.test`,
        assertionExpires: expect.stringMatching(/^\d{4}-.*Z$/),
        scopes: SCOPES,
      },
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(didDocument).toMatchObject({ id: did, alsoKnownAs: [`at://${name}.test`] })
    expect(decodeJws(identityAssertion)!.payload).toMatchObject({
      sub: did,
      registration_id: body.registrationId,
      registration_type: 'child',
      scope: SCOPES.join(' '),
    })
    expect((await pds.ctx.plc.state(did))?.rotationKeys).toEqual([brought.device.did])
    expect(await eventsAbout(did)).toEqual(['commit', 'sync', 'account active'])
    expect(await statusOf(did)).toMatchObject({ active: true })
    expect((await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${name}.test`)).body).toEqual({ did })
    expect(await eventsOf(pds, body.registrationId)).toEqual([
      { type: 'registered', did, detail: { registration_type: 'child', scopes: SCOPES } },
    ])

    const { body: tokens } = await exchangeAgent(pds, identityAssertion)
    const written = await xrpc(pds, 'com.atproto.repo.createRecord', {
      json: {
        repo: did,
        collection: 'app.bsky.feed.post',
        record: { text: 'hello', createdAt: new Date().toISOString() },
      },
      headers: bearer(tokens.access_token),
    })
    expect(written.status).toBe(200)
    expect((await eventsAbout(did)).at(-1)).toBe('commit')
    const asParent = await xrpc(pds, 'com.atproto.repo.createRecord', {
      json: {
        repo: alice.did,
        collection: 'app.bsky.feed.post',
        record: { text: 'hello', createdAt: new Date().toISOString() },
      },
      headers: bearer(tokens.access_token),
    })
    expect(asParent.status).toBeGreaterThanOrEqual(400)
  })

  test('signs in with no password, and with the key of its wallet', async () => {
    const child = await made()
    for (const identifier of [`${child.name}.test`, child.did, `${child.registrationId}@agents.invalid`])
      for (const password of ['', PASSWORD])
        expect(
          (await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password } })).status,
        ).toBeGreaterThanOrEqual(400)
    expect(await askSession(pds, sessionRequest(pds, child))).toMatchObject({ status: 200, body: { did: child.did } })
    expect(await askSession(pds, sessionRequest(pds, { ...child, device: deviceKey() }))).toMatchObject({ status: 401 })
  })

  test('a child gets no mail', async () => {
    const child = await made()
    pds.mails.length = 0
    const { body } = await askSession(pds, sessionRequest(pds, child))
    await xrpc(pds, 'com.atproto.server.requestAccountDelete', { method: 'POST', headers: bearer(body.accessJwt) })
    await pds.runSteps()
    await pds.runSteps()
    expect(pds.mails.filter(({ to }) => to.endsWith('.invalid'))).toEqual([])
  })

  test('is listed for its parent alone, newest first', async () => {
    const bob = await createAccount(pds, newName())
    const [first, second] = [await made(newName(), bob.accessJwt), await made(newName(), bob.accessJwt)]
    const { status, body } = await list(bob.accessJwt)
    expect(status).toBe(200)
    expect(body.children.map(({ did }: { did: string }) => did)).toEqual([second.did, first.did])
    expect(body.children[0]).toEqual({
      registrationId: second.registrationId,
      did: second.did,
      handle: `${second.name}.test`,
      status: 'claimed',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(await list((await createAccount(pds, newName())).accessJwt)).toMatchObject({
      status: 200,
      body: { children: [] },
    })
  })

  test('may be a parent itself', async () => {
    const child = await made()
    const own = (await askSession(pds, sessionRequest(pds, child))).body.accessJwt
    const grandchild = await made(newName(), own)
    expect((await list(own)).body.children).toHaveLength(1)
    expect(await remove(grandchild.did)).toMatchObject(failed(404, 'NOT_FOUND'))
  })
})

describe('making a child is refused', () => {
  const refusedOps: [string, (name: string) => Promise<unknown> | unknown][] = [
    ['an operation that is none', () => ({ type: 'plc_operation' })],
    [
      'an operation that follows another',
      async (name) =>
        (await bringAlone(name, { prev: 'bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy' })).plcOp,
    ],
    ['another first name', async () => (await bringAlone('somebody')).plcOp],
    ['no name', async (name) => (await bringAlone(name, { alsoKnownAs: [] })).plcOp],
    [
      'another server',
      async (name) =>
        (
          await bringAlone(name, {
            services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://pds.example.com' } },
          })
        ).plcOp,
    ],
    [
      'this server with a slash',
      async (name) =>
        (
          await bringAlone(name, {
            services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: `${pds.url}/` } },
          })
        ).plcOp,
    ],
    ['no rotation key', async (name) => (await bringAlone(name, { rotationKeys: [] })).plcOp],
    [
      'the signature of another rotation key',
      async (name) => bringAlone(name, { rotationKeys: [deviceKey().did] }).then(({ plcOp }) => plcOp),
    ],
    [
      'a rotation key that is none',
      async (name) => (await bringAlone(name, { rotationKeys: ['did:web:example.com'] })).plcOp,
    ],
    [
      'a signing key that is not reserved',
      async (name) => (await bringAlone(name, { verificationMethods: { atproto: deviceKey().did } })).plcOp,
    ],
    ['no signing key', async (name) => (await bringAlone(name, { verificationMethods: {} })).plcOp],
    ['a changed signature', async (name) => ({ ...(await bringAlone(name)).plcOp, sig: 'AAAA' })],
    [
      'a tombstone',
      () => ({
        type: 'plc_tombstone',
        prev: 'bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy',
        sig: 'AAAA',
      }),
    ],
  ]
  test.each(refusedOps)('with %s, before the directory hears of it', async (_, operationFor) => {
    const name = newName()
    const before = line.arrived.length
    expect(await make(name, await operationFor(name))).toMatchObject(failed(400, 'INVALID_CLAIM'))
    expect(line.arrived.slice(before).filter(({ method }) => method === 'POST')).toEqual([])
    expect((await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${name}.test`)).status).toBe(400)
  })

  test.each(['', 'no handle', 'a.b.test', 'child.example.com', 'admin.test', 'x.test', '-a.test', 'test'])(
    'no child is made with the handle %p',
    async (handle) => {
      const { plcOp } = await bringAlone(newName())
      const answer = await request(`${pds.url}/agent/child`, { json: { handle, plcOp }, headers: bearer(wallet) })
      expect(answer).toMatchObject(failed(400, 'INVALID_HANDLE'))
    },
  )

  test.each([
    [{}],
    [{ handle: 'a.test' }],
    [{ handle: 7, plcOp: {} }],
    [{ handle: 'a.test', plcOp: 'x' }],
    [[]],
    [null],
  ])('no child is made with the body %j', async (json) => {
    expect(await request(`${pds.url}/agent/child`, { json, headers: bearer(wallet) })).toMatchObject({ status: 422 })
  })

  test('with a handle that somebody has, or is getting', async () => {
    const taken = await bringAlone('alice')
    expect(await make('alice', taken.plcOp)).toMatchObject(failed(409, 'HANDLE_TAKEN'))
    const child = await made()
    expect(await make(child.name, (await bringAlone(child.name)).plcOp)).toMatchObject(failed(409, 'HANDLE_TAKEN'))
    expect(
      (
        await xrpc(pds, 'com.atproto.server.createAccount', {
          json: { handle: `${child.name}.test`, email: 'x@example.com', password: PASSWORD },
        })
      ).status,
    ).toBe(400)
  })

  test('with a key that another child has, or that somebody signs up with', async () => {
    const child = await made()
    const name = newName()
    const second = await bringAlone(name, { verificationMethods: { atproto: child.signingKey } })
    expect(await make(name, second.plcOp)).toMatchObject(failed(400, 'INVALID_CLAIM'))
    const theirs = await reserveKey(pds, alice.did)
    const other = await bringAlone(name, { verificationMethods: { atproto: theirs } })
    expect(await make(name, other.plcOp)).toMatchObject(failed(400, 'INVALID_CLAIM'))
  })

  test('for a DID that has an account here, or another parent', async () => {
    const child = await made()
    const bob = await createAccount(pds, newName())
    expect(await make(child.name, child.plcOp, bob.accessJwt)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
    const name = newName()
    const brought = await bring(pds, name)
    const signUp = { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, plcOp: brought.plcOp }
    expect((await xrpc(pds, 'com.atproto.server.createAccount', { json: signUp })).status).toBe(200)
    expect(await make(name, brought.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
  })

  test('for a parent that is not active', async () => {
    const bob = await createAccount(pds, newName())
    await bob.call('com.atproto.server.deactivateAccount', { json: {} })
    const name = newName()
    expect(await make(name, (await bringAlone(name)).plcOp, bob.accessJwt)).toMatchObject(failed(403, 'FORBIDDEN'))
  })

  test('for a parent that has to confirm its address before it writes; the child has none to confirm', async () => {
    const confirmation = async (value: string | null) => {
      const headers = bearer(ADMIN_TOKEN)
      const url = `${pds.url}/v1/admin/configuration`
      const name = 'signup.require_confirmed_address'
      expect((await request(url, { json: { name, value }, headers })).status).toBe(200)
      const isSet = async () =>
        (await request(url, { headers })).body.keys.some(
          (key: { name: string; from: string }) => key.name === name && (key.from === 'run time') === (value !== null),
        )
      await until(async () => (await isSet()) && (await isSet()))
    }
    const post = (did: string, token: string) =>
      xrpc(pds, 'com.atproto.repo.createRecord', {
        json: { repo: did, collection: 'app.bsky.feed.post', record: { text: 'x', createdAt: '2026-01-01T00:00:00Z' } },
        headers: bearer(token),
      })
    const bob = await createAccount(pds, newName())
    const asBob = await walletSession(pds, bob.did)
    await confirmation('true')
    const name = newName()
    const { plcOp } = await bringAlone(name)
    expect((await make(name, plcOp, asBob)).status).toBe(403)
    expect((await post(bob.did, bob.accessJwt)).status).toBe(403)
    await confirmation(null)
    expect((await post(bob.did, bob.accessJwt)).status).toBe(200)
    await confirmation('true')
    const { status, body } = await make(name, plcOp, asBob)
    expect(status).toBe(200)
    const { body: tokens } = await exchangeAgent(pds, body.identityAssertion)
    expect((await post(body.did, tokens.access_token)).status).toBe(200)
    await confirmation(null)
  })

  test('without a master key; what exists can still be ended', async () => {
    await using bare = await startPds({}, { alone: 'it has no master key' })
    const { accessJwt } = await createAccount(bare, 'alice')
    const headers = bearer(accessJwt)
    expect(await request(`${bare.url}/agent/child`, { json: 'nothing that counts', headers })).toMatchObject(
      failed(503, 'SERVICE_UNAVAILABLE'),
    )
    expect(await request(`${bare.url}/agent/child`, { headers })).toMatchObject({ status: 200, body: { children: [] } })
    for (const end of ['revoke', 'delete'])
      expect(await request(`${bare.url}/agent/child/${end}`, { json: { did: 'did:plc:a' }, headers })).toMatchObject(
        failed(404, 'NOT_FOUND'),
      )
  })

  test('with an operation that is far too large', async () => {
    const plcOp = { ...(await bringAlone(newName())).plcOp, more: 'x'.repeat(20_000) }
    expect(await make(newName(), plcOp)).toMatchObject(failed(413, 'PAYLOAD_TOO_LARGE'))
  })

  test('beyond 500, until one is gone', async () => {
    const parent = await createAccount(pds, newName())
    const token = await walletSession(pds, parent.did)
    const child = await made(newName(), token)
    const [accounts, rows] = [
      await pds.rows('account', { did: child.did }),
      await pds.rows('child_account', { did: child.did }),
    ]
    const others = Array.from({ length: 499 }, (_, i) => ({ did: `did:plc:other${i}` }))
    await pds.plant(
      'account',
      others.map(({ did }) => ({ ...accounts[0], did, handle: null, email: `${did}@agents.invalid` })),
    )
    await pds.plant(
      'child_account',
      others.map(({ did }) => ({ ...rows[0], did })),
    )
    const name = newName()
    const { plcOp } = await bringAlone(name)
    expect(await make(name, plcOp, token)).toMatchObject(failed(409, 'CONFLICT'))
    // What was made is still returned.
    expect(await make(child.name, child.plcOp, token)).toMatchObject({ status: 200 })
    await pds.lose('account', { did: 'did:plc:other7' })
    expect(await make(name, plcOp, token)).toMatchObject({ status: 200 })
    for (const { did } of others) await pds.lose('account', { did })
  })

  test('a parent makes no more children than its rate limit allows', async () => {
    await using limited = await startPds({ signingKeyMasterKey: MASTER_KEY })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    const { accessJwt } = await createAccount(limited, 'alice')
    const attempt = () =>
      request(`${limited.url}/agent/child`, { json: { handle: 'a.test', plcOp: {} }, headers: bearer(accessJwt) })
    for (let i = 0; i < 30; i++) expect((await attempt()).status).not.toBe(429)
    expect(await attempt()).toMatchObject(failed(429, 'RATE_LIMITED'))
  })

  test('too often by a whole family: children do not multiply what their parent may make', async () => {
    await using limited = await startPds({ signingKeyMasterKey: MASTER_KEY })
    using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
    const line = [
      await createAccount(limited, 'alice'),
      await createAccount(limited, 'bob'),
      await createAccount(limited, 'carol'),
    ]
    for (const [i, child] of line.entries())
      if (i > 0)
        await limited.plant('child_account', {
          did: child.did,
          parent_did: line[i - 1]!.did,
          registration_id: `reg_${i}`,
          genesis: '{}',
          created_at: (await limited.rows('account', { did: child.did }))[0]!.created_at,
        })
    const attempt = ({ accessJwt }: TestAccount) =>
      request(`${limited.url}/agent/child`, { json: { handle: 'a.test', plcOp: {} }, headers: bearer(accessJwt) })
    for (let i = 0; i < 30; i++) expect((await attempt(line[i % 3]!)).status).not.toBe(429)
    for (const account of line) expect(await attempt(account)).toMatchObject(failed(429, 'RATE_LIMITED'))
  })
})

describe('whoever is not the account itself', () => {
  const routes: [string, (headers: Record<string, string>) => Promise<Answer>][] = [
    ['making', (headers) => request(`${pds.url}/agent/child`, { json: { handle: 'a.test', plcOp: {} }, headers })],
    ['listing', (headers) => request(`${pds.url}/agent/child`, { headers })],
    ['revoking', (headers) => request(`${pds.url}/agent/child/revoke`, { json: { did: alice.did }, headers })],
    ['deleting', (headers) => request(`${pds.url}/agent/child/delete`, { json: { did: alice.did }, headers })],
  ]
  test.each(routes)('is refused: %s', async (_, call) => {
    expect(await call({})).toMatchObject(failed(401, 'UNAUTHORIZED'))
    expect(await call(bearer('nonsense'))).toMatchObject(failed(401, 'UNAUTHORIZED'))
    expect(await call(bearer(alice.refreshJwt))).toMatchObject({ status: 401 })
    const agent = await confirmedAgent(pds, alice)
    expect(await call(bearer(agent.accessToken))).toMatchObject(failed(403, 'FORBIDDEN'))
    const child = await made()
    const { body: tokens } = await exchangeAgent(pds, child.assertion)
    expect(await call(bearer(tokens.access_token))).toMatchObject(failed(403, 'FORBIDDEN'))
    const { body: created } = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: `app ${newName()}`, privileged: true },
    })
    const { body: app } = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: alice.did, password: created.password },
    })
    expect(await call(bearer(app.accessJwt))).toMatchObject(failed(403, 'FORBIDDEN'))
  })
})

describe('a child that was cut off', () => {
  const accountsNamed = async (name: string) => await pds.rows('account', { handle: `${name}.test` }, ['did'])
  const registrationsOf = async (did: string) => await pds.rows('agent_registration', { did }, ['id'])

  async function finishes(name: string, brought: Bringing): Promise<void> {
    const did = genesisDid(brought.plcOp)
    await pds.restart()
    line.fate = () => 'answered'
    const answer = await make(name, brought.plcOp)
    expect(answer).toMatchObject({ status: 200 })
    expect(await accountsNamed(name)).toEqual([{ did }])
    expect(await registrationsOf(did)).toEqual([{ id: answer.body.registrationId }])
    expect(await eventsAbout(did)).toEqual(['commit', 'sync', 'account active'])
    expect((await pds.ctx.plc.auditLog(did))!).toHaveLength(1)
    expect((await exchangeAgent(pds, answer.body.identityAssertion)).status).toBe(200)
    const again = await make(name, brought.plcOp)
    expect(again.body).toMatchObject({ registrationId: answer.body.registrationId, did })
    expect(again.body.identityAssertion).not.toBe(answer.body.identityAssertion)
    expect(await eventsAbout(did)).toEqual(['commit', 'sync', 'account active'])
  }

  /** Nobody has learned of it. */
  async function isQuiet(did: string): Promise<void> {
    expect(await eventsAbout(did)).toEqual([])
    expect(await registrationsOf(did)).toEqual([])
    expect((await list()).body.children.map((child: { did: string }) => child.did)).not.toContain(did)
    expect((await statusOf(did)).active).not.toBe(true)
  }

  test.each(['question lost', 'answer lost'] as const)(
    'before the directory was known to have it (%s) is finished by a repetition',
    async (fate) => {
      const name = newName()
      const brought = await bringAlone(name)
      line.fate = brokenByPost(fate)
      expect(await make(name, brought.plcOp)).toMatchObject(failed(502, 'PLC_DIRECTORY_ERROR'))
      await isQuiet(genesisDid(brought.plcOp))
      expect(await make(name, brought.plcOp)).toMatchObject(failed(502, 'PLC_DIRECTORY_ERROR'))
      await finishes(name, brought)
    },
  )

  test('after the directory got it is finished by a repetition, which does not ask the directory', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    const did = genesisDid(brought.plcOp)
    // What the third step adds is there already, as somebody else's, so that it fails.
    await pds.plant('agent_registration', {
      id: 'reg_other',
      type: 'child',
      issuer: pds.url,
      subject: did,
      scopes: '[]',
      status: 'revoked',
      created_at: 0,
      updated_at: 0,
    })
    expect(await make(name, brought.plcOp)).toMatchObject({ status: 500 })
    await isQuiet(did)
    await pds.lose('agent_registration', { id: 'reg_other' })
    line.fate = () => 'question lost'
    expect(await make(name, brought.plcOp)).toMatchObject({ status: 200 })
    await finishes(name, brought)
  })

  test('is made once, however many ask at the same time', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    const rival = await bringAlone(name)
    const answers = await Promise.all([brought, brought, rival, brought].map(({ plcOp }) => make(name, plcOp)))
    const statuses = answers.map(({ status }) => status).toSorted()
    expect([
      [200, 200, 200, 409],
      [200, 409, 409, 409],
    ]).toContainEqual(statuses)
    const [winner] = answers.filter(({ status }) => status === 200)
    expect(await accountsNamed(name)).toEqual([{ did: winner!.body.did }])
    expect(await eventsAbout(winner!.body.did)).toEqual(['commit', 'sync', 'account active'])
    const loser = winner!.body.did === genesisDid(brought.plcOp) ? rival : brought
    expect(await pds.ctx.plc.state(genesisDid(loser.plcOp))).toBeNull()
  })

  test('a child that was cut off and that the directory refuses leaves nothing', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    line.fate = ({ method }) => (method === 'POST' ? 400 : 'answered')
    expect(await make(name, brought.plcOp)).toMatchObject(failed(502, 'PLC_DIRECTORY_ERROR'))
    expect(await accountsNamed(name)).toEqual([])
    await isQuiet(genesisDid(brought.plcOp))
    line.fate = () => 'answered'
    expect(await made(name)).toMatchObject({ name })
  })

  test('is kept if the directory refuses it later, because it may have it from before', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    line.fate = brokenByPost('question lost')
    await make(name, brought.plcOp)
    line.fate = ({ method }) => (method === 'POST' ? 400 : 'answered')
    expect(await make(name, brought.plcOp)).toMatchObject(failed(502, 'PLC_DIRECTORY_ERROR'))
    await finishes(name, brought)
  })

  test('is finished once, if an operator has activated it meanwhile, and not if one has taken it down', async () => {
    const names = [newName(), newName()]
    const [early, down] = [await bringAlone(names[0]!), await bringAlone(names[1]!)]
    line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'answered')
    for (const [i, { plcOp }] of [early, down].entries()) {
      await pds.plant('agent_registration', {
        id: `reg_${i}`,
        type: 'child',
        issuer: pds.url,
        subject: genesisDid(plcOp),
        scopes: '[]',
        status: 'revoked',
        created_at: 0,
        updated_at: 0,
      })
      expect(await make(names[i]!, plcOp)).toMatchObject({ status: 500 })
      await pds.lose('agent_registration', { id: `reg_${i}` })
    }
    line.fate = () => 'answered'
    const operate = (nsid: string, json: object) => xrpc(pds, nsid, { json, headers: bearer(ADMIN_TOKEN) })
    const [did, downDid] = [genesisDid(early.plcOp), genesisDid(down.plcOp)]
    await pds.damage('account', { did }, { deactivated_at: null })
    expect(await make(names[0]!, early.plcOp)).toMatchObject({ status: 200 })
    expect(await eventsAbout(did)).toEqual([])
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: downDid }
    expect(
      (await operate('com.atproto.admin.updateSubjectStatus', { subject, takedown: { applied: true, ref: 'x' } }))
        .status,
    ).toBe(200)
    expect(await make(names[1]!, down.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
    expect(await eventsAbout(downDid)).not.toContain('commit')
  })

  test.each([
    [
      'the session that asks has ended',
      401,
      (by: TestAccount) =>
        by.call('com.atproto.server.deleteSession', { method: 'POST', headers: bearer(by.refreshJwt) }),
    ],
    [
      'its parent is deactivated',
      403,
      (by: TestAccount) => by.call('com.atproto.server.deactivateAccount', { json: {} }),
    ],
  ] as const)('is not finished if %s when the directory has answered', async (_, status, end) => {
    const parent = await createAccount(pds, newName())
    const name = newName()
    const brought = await bringAlone(name)
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    line.fate = async ({ method }): Promise<Fate> => {
      if (method !== 'POST') return 'answered'
      asked.resolve()
      await answered.promise
      return 'answered'
    }
    const making = make(name, brought.plcOp, parent.accessJwt)
    await asked.promise
    expect((await end(parent)).status).toBe(200)
    answered.resolve()
    expect((await making).status).toBe(status)
    line.fate = () => 'answered'
    await isQuiet(genesisDid(brought.plcOp))
    const again = await logIn(pds, parent, parent.password)
    await again.call('com.atproto.server.activateAccount', { method: 'POST' })
    expect(await make(name, brought.plcOp, again.accessJwt)).toMatchObject({ status: 200 })
  })

  test('may be deleted by its parent, and is not finished then', async () => {
    const name = newName()
    const brought = await bringAlone(name)
    const did = genesisDid(brought.plcOp)
    line.fate = brokenByPost('answer lost')
    await make(name, brought.plcOp)
    line.fate = () => 'answered'
    expect(await remove(did)).toMatchObject({ status: 200, body: { status: 'deletion_scheduled' } })
    expect(await eventsAbout(did)).toEqual([])
    expect(await make(name, brought.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
  })
})

describe('ending a child', () => {
  test('revoking ends its agent at once, once, and leaves its account', async () => {
    const child = await made()
    const { body: tokens } = await exchangeAgent(pds, child.assertion)
    const revoked = { status: 200, body: { did: child.did, status: 'revoked' } }
    for (let i = 0; i < 2; i++) expect(await revoke(child.did)).toMatchObject(revoked)
    expect(
      (await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(tokens.access_token) })).status,
    ).toBe(401)
    expect(await exchangeAgent(pds, child.assertion)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
    expect((await eventsOf(pds, child.registrationId)).filter(({ type }) => type === 'revoked')).toEqual([
      { type: 'revoked', did: child.did, detail: {} },
    ])
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    expect((await list()).body.children.find(({ did }: { did: string }) => did === child.did).status).toBe('revoked')
    expect(await make(child.name, child.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
  })

  test('is its parent’s business alone', async () => {
    const child = await made()
    const bob = await createAccount(pds, newName())
    for (const did of [child.did, alice.did, 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'nothing', ''])
      for (const end of [revoke, remove]) expect(await end(did, bob.accessJwt)).toMatchObject(failed(404, 'NOT_FOUND'))
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    expect(await request(`${pds.url}/agent/child/delete`, { json: {}, headers: bearer(wallet) })).toMatchObject({
      status: 422,
    })
  })

  test('deleting deactivates it at once, and deletes it after the grace, and can be asked again at any time', async () => {
    const child = await made()
    const { body: tokens } = await exchangeAgent(pds, child.assertion)
    const first = await remove(child.did)
    expect(first).toMatchObject({ status: 200, body: { did: child.did, status: 'deletion_scheduled' } })
    const due = Date.parse(first.body.deleteAfter) - pds.clock.now()
    expect(Math.abs(due - GRACE_SECS * 1000)).toBeLessThan(60_000)
    expect(await statusOf(child.did)).toMatchObject({ active: false, status: 'deactivated' })
    expect(await eventsAbout(child.did)).toEqual(['commit', 'sync', 'account active', 'account deactivated'])
    expect(
      (await request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(tokens.access_token) })).status,
    ).toBe(401)

    pds.clock.advance({ secs: 100 })
    const second = await remove(child.did)
    expect(Date.parse(second.body.deleteAfter) - Date.parse(first.body.deleteAfter)).toBeGreaterThanOrEqual(100_000)
    expect(await eventsAbout(child.did)).toHaveLength(4)
    await pds.runSweep('account-reaper')
    expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${child.did}`)).status).toBe(200)

    pds.clock.advance({ secs: GRACE_SECS + 1 })
    await pds.runSweep('account-reaper')
    expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${child.did}`)).status).toBe(400)
    expect(await eventsAbout(child.did)).toEqual(['account deleted'])
    wallet = await walletSession(pds, alice.did)
    expect((await list()).body.children.map(({ did }: { did: string }) => did)).not.toContain(child.did)
    expect(await remove(child.did)).toMatchObject({ status: 200, body: second.body })
    expect(await make(child.name, child.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
    expect(await revoke(child.did)).toMatchObject(failed(404, 'NOT_FOUND'))
    expect((await pds.ctx.plc.state(child.did as Did))?.rotationKeys).toEqual([child.device.did])
    // The name is free again.
    expect(await made(child.name)).toMatchObject({ name: child.name })
  })

  test('with no grace happens at the next pass', async () => {
    await using quick = await startPds({
      plcDirectoryUrl: line.url,
      signingKeyMasterKey: MASTER_KEY,
      accounts: { childDeletionGraceSecs: 0 },
      rateLimit: { enabled: false },
    })
    const { accessJwt } = await createAccount(quick, 'alice')
    const device = deviceKey()
    const { plcOp } = await bring(quick, 'quick', { rotationKeys: [device.did] }, device)
    const headers = bearer(accessJwt)
    const { body } = await request(`${quick.url}/agent/child`, { json: { handle: 'quick.test', plcOp }, headers })
    await request(`${quick.url}/agent/child/delete`, { json: { did: body.did }, headers })
    await quick.runSweep('account-reaper')
    expect((await xrpc(quick, `com.atproto.sync.getRepoStatus?did=${body.did}`)).status).toBe(400)
  })

  test('can be undone by the key of its wallet, which brings the account back, and not its agent', async () => {
    const child = await made()
    await remove(child.did)
    expect(await askSession(pds, sessionRequest(pds, { ...child, device: deviceKey() }))).toMatchObject({ status: 401 })
    const { status, body } = await askSession(pds, sessionRequest(pds, child))
    expect(status).toBe(200)
    const activated = await xrpc(pds, 'com.atproto.server.activateAccount', {
      method: 'POST',
      headers: bearer(body.accessJwt),
    })
    expect({ status: activated.status, body: activated.body }).toEqual({ status: 200, body: '' })
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    pds.clock.advance({ secs: GRACE_SECS + 1 })
    await pds.runSweep('account-reaper')
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    expect(await exchangeAgent(pds, child.assertion)).toMatchObject({ status: 400 })
    wallet = await walletSession(pds, alice.did)
    expect((await list()).body.children.find(({ did }: { did: string }) => did === child.did)).toMatchObject({
      status: 'revoked',
    })
    expect(await remove(child.did)).toMatchObject({ status: 200 })
    pds.clock.advance({ secs: GRACE_SECS + 1 })
    await pds.runSweep('account-reaper')
    expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${child.did}`)).status).toBe(400)
    expect(await askSession(pds, sessionRequest(pds, child))).toMatchObject({ status: 401 })
    wallet = await walletSession(pds, alice.did)
  })

  test('any other deactivated account gets no session by its key', async () => {
    const child = await made()
    const { body } = await askSession(pds, sessionRequest(pds, child))
    await xrpc(pds, 'com.atproto.server.deactivateAccount', { json: {}, headers: bearer(body.accessJwt) })
    expect(await askSession(pds, sessionRequest(pds, child))).toMatchObject({ status: 401 })
  })

  test('is seen by subscribers in the order in which it happens', async () => {
    const subscriber = new Subscriber(pds.url)
    await subscriber.opened
    const child = await made()
    await remove(child.did)
    const seen = await subscriber.untilSeen((messages) => messages.some(({ body }) => body['status'] === 'deactivated'))
    const about = seen.filter(({ body }) => body['did'] === child.did || body['repo'] === child.did)
    expect(about.map(({ type, body }) => [type, body['active'] ?? null])).toEqual([
      ['#commit', null],
      ['#sync', null],
      ['#account', true],
      ['#account', false],
    ])
    subscriber.close()
  })
})

describe('deleting a parent', () => {
  test('schedules its children under the same grace, after which nothing of either is left', async () => {
    const bob = await createAccount(pds, newName())
    const [child, other] = [await made(newName(), bob.accessJwt), await made(newName(), bob.accessJwt)]
    await remove(other.did, bob.accessJwt)
    await deleteAccount({ ctx: pds.ctx }, bob.did as Did)
    expect(await statusOf(child.did)).toMatchObject({ active: false, status: 'deactivated' })
    expect((await eventsAbout(child.did)).at(-1)).toBe('account deactivated')
    expect(await exchangeAgent(pds, child.assertion)).toMatchObject({ status: 400, body: { error: 'access_denied' } })
    pds.clock.advance({ secs: GRACE_SECS - 60 })
    await pds.runSweep('account-reaper')
    expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${child.did}`)).status).toBe(200)
    pds.clock.advance({ secs: 120 })
    await pds.runSweep('account-reaper')
    wallet = await walletSession(pds, alice.did)
    for (const { did, registrationId } of [child, other]) {
      expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`)).status).toBe(400)
      const rows = await Promise.all([
        pds.rows('child_account', { did }),
        pds.rows('child_account', { parent_did: bob.did }),
        pds.rows('agent_registration', { did }),
        pds.rows('agent_registration', { parent_did: bob.did }),
        pds.rows('agent_event', { registration_id: registrationId }),
      ])
      expect(rows.flat()).toEqual([])
    }
  })

  test('leaves a child whose own wallet brings it back', async () => {
    const bob = await createAccount(pds, newName())
    const child = await made(newName(), bob.accessJwt)
    await deleteAccount({ ctx: pds.ctx }, bob.did as Did)
    const { body } = await askSession(pds, sessionRequest(pds, child))
    await xrpc(pds, 'com.atproto.server.activateAccount', { method: 'POST', headers: bearer(body.accessJwt) })
    pds.clock.advance({ secs: GRACE_SECS + 60 })
    await pds.runSweep('account-reaper')
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    await deleteAccount({ ctx: pds.ctx }, child.did as Did)
    expect(await pds.rows('child_account', { did: child.did }, ['did'])).toEqual([])
    wallet = await walletSession(pds, alice.did)
  })

  test('a child that deletes itself stays known to its parent', async () => {
    const child = await made()
    await deleteAccount({ ctx: pds.ctx }, child.did as Did)
    expect(await remove(child.did)).toMatchObject({
      status: 200,
      body: { did: child.did, status: 'deletion_scheduled' },
    })
    expect(await make(child.name, child.plcOp)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
  })
})

describe('an account that comes back by itself after it was deleted', () => {
  /** Moves in, signed by the device that holds the identity, which names another server until then. */
  async function comesBack({ did, device }: Pick<Made, 'did' | 'device'>): Promise<TestAccount> {
    const mover = keeper(pds, did as Did, device.key)
    await mover.publish({ verificationMethods: { atproto: device.did } })
    return moveIn(pds, mover, newName())
  }

  async function isDeleted(did: string): Promise<void> {
    pds.clock.advance({ secs: GRACE_SECS + 1 })
    await pds.runSweep('account-reaper')
    expect((await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`)).status).toBe(400)
  }

  test('is no longer a child: the account that once made it can neither delete it nor take it along', async () => {
    const bob = await createAccount(pds, newName())
    const child = await made(newName(), bob.accessJwt)
    const first = await remove(child.did, bob.accessJwt)
    await isDeleted(child.did)
    await comesBack(child)
    const parent = await logIn(pds, bob, bob.password)
    expect(await remove(child.did, parent.accessJwt)).toMatchObject({ status: 200, body: first.body })
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    const events = await pds.rows('account_event', { did: child.did as Did }, ['event'])
    expect(events.map(({ event }) => event)).not.toContain('childDeletionScheduled')
    const lookUp = async (account: string) =>
      (await request(`${pds.url}/v1/admin/accounts/lookup`, { json: { account }, headers: bearer(ADMIN_TOKEN) })).body
    expect(await lookUp(bob.did)).toMatchObject({ children: [] })
    expect(await lookUp(child.did)).toMatchObject({ madeBy: null })
    await deleteAccount({ ctx: pds.ctx }, bob.did as Did)
    expect(await statusOf(child.did)).toMatchObject({ active: true })
    wallet = await walletSession(pds, alice.did)
  })

  test('cannot become a child of its own child: the next request of the family would look for its first parent forever', async () => {
    const brought = await bringAlone(newName())
    const did = genesisDid(brought.plcOp)
    await pds.ctx.plc.submit(did, brought.plcOp)
    const parent = await comesBack({ did, device: brought.device })
    const child = await made(newName(), parent.accessJwt)
    await deleteAccount({ ctx: pds.ctx }, did)
    const { body } = await askSession(pds, sessionRequest(pds, child))
    const own = bearer(body.accessJwt)
    expect((await xrpc(pds, 'com.atproto.server.activateAccount', { method: 'POST', headers: own })).status).toBe(200)
    const name = brought.plcOp.alsoKnownAs[0]!.slice('at://'.length, -'.test'.length)
    expect(await make(name, brought.plcOp, body.accessJwt)).toMatchObject(failed(409, 'DID_ALREADY_EXISTS'))
    expect((await made(newName(), body.accessJwt)).did).toStartWith('did:plc:')
  })
})

test('the signing key of a child is a key of this server, and the identity names no other', async () => {
  const child = await made()
  const [account] = await pds.rows('account', { did: child.did })
  const { signing_key_wrapped: wrapped, signing_key: signingKey } = account!
  expect(signingKey).toBe(child.signingKey)
  expect(wrapped).not.toContain(child.signingKey)
  expect(formatDidKey(parseDidKey(signingKey)!)).toBe(child.signingKey as Did)
  expect(await pds.rows('reserved_signing_key', { signing_key: child.signingKey }, ['did'])).toEqual([])
})
