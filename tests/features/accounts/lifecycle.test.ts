import { AtpAgent } from '@atproto/api'
import { beforeEach, expect, spyOn, test } from 'bun:test'
import { deleteAccount as deleteWithoutAsking } from '../../../src/features/identity/account-changes/account-changes.ts'
import { takeDown } from '../../../src/features/identity/accounts/accounts.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { allNumbered } from '../../support/clients/events.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { Subscriber, type Message } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

let alice: TestAccount
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
beforeEach(async () => {
  alice = await createAccount(pds, `user${++names}`)
})

const deactivate = (json: object = {}) => alice.call('com.atproto.server.deactivateAccount', { json })
const activate = () => alice.call('com.atproto.server.activateAccount', { method: 'POST' })
const status = async () => (await alice.call('com.atproto.server.checkAccountStatus')).body
const requestDelete = () => alice.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
const deleteAccount = (json: object, on: Pick<TestPds, 'url'> = pds) =>
  xrpc(on, 'com.atproto.server.deleteAccount', { json })
const post = (who = alice) =>
  who.call('com.atproto.repo.createRecord', {
    json: {
      repo: who.did,
      collection: 'app.bsky.feed.post',
      record: { $type: 'app.bsky.feed.post', text: 'hello', createdAt: new Date().toISOString() },
    },
  })
const describe = async (did: string) => (await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).body

/** Every event about the account so far. */
async function events(): Promise<Message[]> {
  await allNumbered(pds)
  const subscriber = new Subscriber(pds.url, '?cursor=0')
  const last = await post(await createAccount(pds, `marker${++names}`))
  while (!subscriber.messages.some(({ body }) => body['rev'] === last.body.commit.rev))
    await subscriber.until(subscriber.messages.length + 1)
  subscriber.close()
  return subscriber.messages.filter(({ body }) => body['did'] === alice.did || body['repo'] === alice.did)
}

test('a new account is active, its identity fits and its repository is empty', async () => {
  expect(await status()).toMatchObject({
    activated: true,
    validDid: true,
    repoBlocks: 2,
    indexedRecords: 0,
    privateStateValues: 0,
    expectedBlobs: 0,
    importedBlobs: 0,
  })
  const { body } = await post()
  expect(await status()).toMatchObject({
    repoCommit: body.commit.cid,
    repoRev: body.commit.rev,
    repoBlocks: 3,
    indexedRecords: 1,
  })
})

test('a deactivated account writes nothing and is not seen, but logs in, reads its own, and comes back', async () => {
  await post()
  expect((await deactivate()).status).toBe(200)
  expect(await post()).toMatchObject({
    status: 401,
    body: { error: 'AccountDeactivated', message: 'Account is deactivated' },
  })
  expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${alice.handle}`)).toMatchObject({ status: 400 })
  const session = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: alice.handle, password: PASSWORD },
  })
  expect(session).toMatchObject({ status: 200, body: { active: false, status: 'deactivated' } })
  expect(await status()).toMatchObject({ activated: false, validDid: true, indexedRecords: 1 })

  expect((await activate()).status).toBe(200)
  expect(await status()).toMatchObject({ activated: true })
  expect((await post()).status).toBe(200)
})

test('the network hears of both, and the head it gets with the activation is newly signed', async () => {
  await deactivate()
  const before = (await status()).repoRev
  await activate()
  const told = await events()
  expect(told.map(({ type }) => type)).toEqual([
    '#identity',
    '#account',
    '#commit',
    '#sync',
    '#account',
    '#account',
    '#identity',
    '#sync',
  ])
  expect(told[4]!.body).toMatchObject({ active: false, status: 'deactivated' })
  expect(told[5]!.body).toMatchObject({ active: true })
  expect(told[6]!.body).toMatchObject({ handle: alice.handle })
  expect(told[7]!.body['rev']! > before).toBe(true)
  expect(told[7]!.body['rev']).toBe((await status()).repoRev)
})

test('only the account itself comes and goes', async () => {
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'app', privileged: true } })
  const app = await logIn(pds, alice, body.password)
  for (const [nsid, init] of [
    ['com.atproto.server.deactivateAccount', { json: {} }],
    ['com.atproto.server.activateAccount', { method: 'POST' }],
    ['com.atproto.server.requestAccountDelete', { method: 'POST' }],
  ] as const) {
    expect(await app.call(nsid, init)).toMatchObject({
      status: 400,
      body: { error: 'InvalidToken', message: 'Bad token scope' },
    })
  }
})

test('an account whose identity lives elsewhere is not activated', async () => {
  await deactivate()
  const { ctx } = pds
  const credentials = (await alice.call('com.atproto.identity.getRecommendedDidCredentials')).body
  await alice.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  const token = await lastCode(pds, alice.email)
  const { body } = await alice.call('com.atproto.identity.signPlcOperation', {
    json: {
      ...credentials,
      token,
      services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.example.com' } },
    },
  })
  await ctx.plc.submit(alice.did as never, body.operation)
  expect(await activate()).toMatchObject({
    status: 400,
    body: {
      error: 'InvalidRequest',
      message: 'DID document atproto_pds service endpoint does not match PDS public url',
    },
  })
  expect(await status()).toMatchObject({ activated: false, validDid: false })
})

test('an account that is taken down while the directory is asked does not come back', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  await deactivate()
  const { plc } = pds.ctx
  using asked = spyOn(plc, 'state')
  asked.mockImplementationOnce(async (did) => {
    await pds.ctx.db.transaction((tx) => takeDown(pds.ctx, tx, { did, takedownRef: null }, 'spam'))
    return plc.state(did)
  })
  expect(await activate()).toMatchObject({ status: 400, body: { error: 'AccountNotFound' } })
  expect((await events()).at(-1)).toMatchObject({ type: '#account', body: { active: false, status: 'takendown' } })
})

test('an account that is deleted while the directory learns of its handle is not spoken of again', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const { plc } = pds.ctx
  using told = spyOn(plc, 'submit')
  told.mockImplementationOnce((did, operation) => deleteWithoutAsking(pds, did).then(() => plc.submit(did, operation)))
  expect(
    await alice.call('com.atproto.identity.updateHandle', { json: { handle: `late${names}.test` } }),
  ).toMatchObject({
    status: 400,
    body: { message: 'Account not found' },
  })
  expect((await events()).map(({ type, body }) => [type, body['status']])).toEqual([['#account', 'deleted']])
})

test('whoever has the password and the mailed code deletes the account, and nothing of it stays', async () => {
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: alice.handle, password: PASSWORD })
  await agent.uploadBlob(new Uint8Array([1, 2, 3]), { encoding: 'application/octet-stream' })
  await post()
  expect((await requestDelete()).status).toBe(200)
  const token = await lastCode(pds, alice.email)
  const { did, handle, email } = alice

  await agent.com.atproto.server.deleteAccount({ did, password: PASSWORD, token })
  expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).toMatchObject({ status: 400 })
  expect(await describe(did)).toMatchObject({ error: 'RepoNotFound' })
  expect(await alice.call('com.atproto.server.getSession')).toMatchObject({ status: 400 })
  expect(await post()).toMatchObject({ status: 403, body: { error: 'AccountNotFound' } })
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: handle, password: PASSWORD } }),
  ).toMatchObject({
    status: 401,
  })
  expect((await events()).map(({ type, body }) => [type, body['status']])).toEqual([['#account', 'deleted']])
  alice = await createAccount(pds, handle.replace('.test', ''), { email })
  expect(alice.did).not.toBe(did)
})

test('what is on its way when an account is deleted leaves nothing behind', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const { db } = pds.ctx
  const { transaction, transactionOn } = db
  const requests: [
    nsid: string,
    init: Parameters<TestAccount['call']>[1],
    table: 'preference' | 'app_password' | 'blob',
  ][] = [
    ['app.bsky.actor.putPreferences', { json: { preferences: [] } }, 'preference'],
    ['com.atproto.server.createAppPassword', { json: { name: 'late' } }, 'app_password'],
    [
      'com.atproto.repo.uploadBlob',
      { method: 'POST', body: 'late', headers: { 'content-type': 'text/plain' } },
      'blob',
    ],
  ]
  for (const [nsid, init, table] of requests) {
    const leaving = await createAccount(pds, `leaving${++names}`)
    using transactions = spyOn(db, 'transaction')
    using others = spyOn(db, 'transactionOn')
    const leave = () => {
      transactions.mockRestore()
      others.mockRestore()
      return deleteWithoutAsking(pds, leaving.did as Did)
    }
    transactions.mockImplementationOnce((work) => leave().then(() => transaction(work)))
    others.mockImplementationOnce((lock, work) => leave().then(() => transactionOn(lock, work)))
    expect([nsid, await leaving.call(nsid, init)]).toMatchObject([
      nsid,
      { status: 403, body: { error: 'AccountNotFound' } },
    ])
    expect(await pds.rows(table, { did: leaving.did })).toEqual([])
  }
})

test('an unknown account, a wrong password and a wrong code look alike, and do not use the code up', async () => {
  await requestDelete()
  const token = await lastCode(pds, alice.email)
  const wrong = await deleteAccount({ did: alice.did, password: 'wrong', token })
  const unknown = await deleteAccount({ did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', password: 'wrong', token })
  expect(wrong).toMatchObject({
    status: 401,
    body: { error: 'AuthenticationRequired', message: 'Invalid did, password, proof or token' },
  })
  expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body])
  expect(await deleteAccount({ did: alice.did, password: '', token })).toMatchObject({ status: 400 })
  for (const wrong of [
    { password: PASSWORD, token: 'AAAAA-AAAAA' },
    { password: 'x'.repeat(100_000), token },
  ]) {
    const { status, body } = await deleteAccount({ did: alice.did, ...wrong })
    expect([status, body]).toEqual([unknown.status, unknown.body])
  }
  expect((await deleteAccount({ did: alice.did, password: PASSWORD, token })).status).toBe(200)
})

test('an app password deletes nothing', async () => {
  const { body } = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
  await requestDelete()
  const token = await lastCode(pds, alice.email)
  expect(await deleteAccount({ did: alice.did, password: body.password, token })).toMatchObject({ status: 401 })
})

test('guesses at the password count like those at the login', async () => {
  for (let i = 0; i < 5; i++)
    expect((await deleteAccount({ did: alice.did, password: 'wrong', token: 'x' })).status).toBe(401)
  expect((await deleteAccount({ did: alice.did, password: PASSWORD, token: 'x' })).status).toBe(429)
  expect(
    (await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.did, password: PASSWORD } }))
      .status,
  ).toBe(429)
})

test('the reaper deletes what was set to go, at its time, unless it came back', async () => {
  await using other = await startPds({ rateLimit: { enabled: false } })
  const [stays, goes, returns] = [
    await createAccount(other, 'stays'),
    await createAccount(other, 'goes'),
    await createAccount(other, 'returns'),
  ]
  const deleteAfter = new Date(other.clock.now() + 3600_000).toISOString()
  await stays.call('com.atproto.server.deactivateAccount', { json: {} })
  for (const account of [goes, returns])
    await account.call('com.atproto.server.deactivateAccount', { json: { deleteAfter } })
  expect((await returns.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)

  expect(await other.runSweep('account-reaper')).toEqual({ swept: 0, errors: 0 })
  other.clock.advance({ secs: 3601 })
  expect(await other.runSweep('account-reaper')).toEqual({ swept: 1, errors: 0 })
  for (const account of [stays, returns]) expect((await logIn(other, account, PASSWORD)).did).toBe(account.did)
  expect(await thrownBy(logIn(other, goes, PASSWORD))).toThrow('401')
})

test('one pass deletes all accounts whose deletion is due, however many there are', async () => {
  await using other = await startPds({ rateLimit: { enabled: false } })
  const { did } = await createAccount(other, 'template')
  const [template] = await other.rows('account', { did })
  const past = other.clock.now() - 1000
  await other.plant(
    'account',
    Array.from({ length: 250 }, (_, i) => ({
      ...template,
      did: `did:plc:due${i}`,
      handle: null,
      email: `due${i}@example.com`,
      deactivated_at: past,
      delete_after: past,
    })),
  )
  expect(await other.runSweep('account-reaper')).toEqual({ swept: 250, errors: 0 })
  expect(await other.rows('account', {}, ['did'])).toEqual([{ did: did as Did }])
})
