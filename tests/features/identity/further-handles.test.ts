/** Several handles for one account: who gets one, where it counts, and what becomes of it. */
import { beforeAll, expect, test } from 'bun:test'
import { passOnReservations, reserveName } from '../../../src/features/identity/handles/handles.ts'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import { leaveNamesOfGone } from '../../../src/features/identity/handles/name-claims.ts'
import { holderOf } from '../../../src/platform/database/row-holders.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { nextOperation, signOperation } from '../../../src/protocol/plc.ts'
import { createAccount, logIn, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

/** Authorization headers of wallets. */
let ofAlice: Record<string, string>
let ofBob: Record<string, string>

const { pds } = useWorld({ config: { reservedHandles: ['admin'], rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
beforeAll(async () => {
  ofAlice = bearer(await walletSession(pds, alice.did))
  ofBob = bearer(await walletSession(pds, bob.did))
})
const events = setUp(() => Subscriber.open(pds.url))

const add = (account: { did: string }, handle: string, headers = account.did === alice.did ? ofAlice : ofBob) =>
  request(`${pds.url}/v1/handles`, { json: { accountId: account.did, handle }, headers })
const remove = (handle: string, headers = ofAlice) =>
  request(`${pds.url}/v1/handles/${handle}`, { method: 'DELETE', headers })

const resolved = async (handle: string) =>
  (await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).body.did
const sessionHandle = async (account: TestAccount) => (await account.call('com.atproto.server.getSession')).body.handle
const cachedNames = async (did: string) =>
  (await xrpc(pds, `com.atproto.identity.resolveDid?did=${did}`)).body.didDoc.alsoKnownAs
const identityEvents = (did: string) =>
  events.messages
    .filter(({ type, body }) => type === '#identity' && body['did'] === did)
    .map(({ body }) => body['handle'])
const available = async (handle: string) =>
  (await xrpc(pds, `com.atproto.temp.checkHandleAvailability?handle=${handle}`)).body.result.$type.endsWith(
    '#resultAvailable',
  )

test('an added handle counts everywhere, and sessions go on with the oldest', async () => {
  await cachedNames(alice.did)
  expect(await add(alice, 'Alice-Two.test')).toMatchObject({
    status: 200,
    body: { handle: 'alice-two.test', dns_status: 'not_configured', did: alice.did },
  })
  pds.clock.advance({ secs: 1 })
  expect((await add(alice, 'alice-three.test')).status).toBe(200)
  expect([await resolved('alice.test'), await resolved('alice-two.test'), await resolved('ALICE-three.test')]).toEqual(
    Array(3).fill(alice.did),
  )
  expect(await sessionHandle(alice)).toBe('alice.test')
  expect(await cachedNames(alice.did)).toEqual(['at://alice.test', 'at://alice-two.test', 'at://alice-three.test'])
  await events.untilSeen(() => identityEvents(alice.did).length === 2)
  expect(identityEvents(alice.did)).toEqual(['alice-two.test', 'alice-three.test'])

  const two = { ...alice, handle: 'alice-two.test' }
  expect(await logIn(pds, two, PASSWORD)).toMatchObject({ did: alice.did, handle: 'alice.test' })
  const wellKnown = await request(`${pds.url}/.well-known/atproto-did`, { headers: { host: 'alice-two.test' } })
  expect([wellKnown.status, wellKnown.body]).toEqual([200, alice.did])
  expect((await request(`${pds.url}/tls-check?domain=alice-two.test`)).status).toBe(200)
  const record = {
    repo: 'alice-two.test',
    collection: 'app.bsky.feed.post',
    record: { text: 'hello', createdAt: new Date().toISOString() },
  }
  expect((await alice.call('com.atproto.repo.createRecord', { json: record })).status).toBe(200)
  expect(
    (await xrpc(pds, 'com.atproto.repo.listRecords?repo=alice-two.test&collection=app.bsky.feed.post')).body.records,
  ).toHaveLength(1)
  expect((await xrpc(pds, 'com.atproto.repo.describeRepo?repo=alice-two.test')).body).toMatchObject({
    handle: 'alice.test',
    handleIsCorrect: true,
  })
  expect((await xrpc(pds, 'com.atproto.identity.resolveIdentity?identifier=alice-two.test')).body).toMatchObject({
    did: alice.did,
  })
})

test('the handle that the identity names is the one that is shown, whichever of them it is', async () => {
  const greta = await createAccount(pds, 'greta')
  await add(greta, 'greta-two.test', bearer(await walletSession(pds, greta.did)))
  const last = await pds.ctx.plc.lastOperation(greta.did as Did)
  const operation = signOperation(
    nextOperation(last!, { alsoKnownAs: ['at://greta-two.test'] })!,
    await serverRotationKey(pds.ctx),
  )
  await pds.ctx.plc.submit(greta.did as Did, operation)
  await xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier: greta.did } })
  const shown = { handle: 'greta-two.test', handleIsCorrect: true }
  expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${greta.did}`)).body).toMatchObject(shown)
  expect((await xrpc(pds, `com.atproto.identity.resolveIdentity?identifier=${greta.did}`)).body.handle).toBe(
    'greta-two.test',
  )
  expect(await sessionHandle(greta)).toBe('greta.test')
})

test('an attempt that was cut off keeps a handle from its own account never, and from others for a minute', async () => {
  const ida = await createAccount(pds, 'ida')
  const interrupted = (handle: string) =>
    pds.plant('name_claim', {
      handle,
      did: ida.did,
      attempt: 'one',
      held_until: pds.clock.now() + 300_000,
      attempt_by: holderOf(pds.ctx.db),
    })
  await interrupted('ida-two.test')
  await interrupted('ida-three.test')
  const wallet = bearer(await walletSession(pds, ida.did))
  expect((await add(ida, 'ida-two.test', wallet)).status).toBe(409)
  await pds.damage('name_claim', {}, { attempt_by: null })
  await leaveNamesOfGone(pds.ctx) // as the server does when it starts
  expect((await add(ida, 'ida-two.test', wallet)).status).toBe(200)
  expect((await add(bob, 'ida-three.test')).status).toBe(409)
  pds.clock.advance({ secs: 61 })
  expect((await add(bob, 'ida-three.test')).status).toBe(200)
  await remove('ida-three.test', ofBob)
})

test('the directory is not told', async () => {
  expect((await pds.ctx.plc.auditLog(alice.did as Did))!.length).toBe(1)
})

test('nobody takes a handle that an account has, however they try', async () => {
  for (const account of [alice, bob]) {
    for (const handle of ['alice.test', 'alice-two.test', 'ALICE-two.TEST'])
      expect(await add(account, handle)).toMatchObject({ status: 409, body: { error: { code: 'HANDLE_TAKEN' } } })
  }
  expect(await bob.call('com.atproto.identity.updateHandle', { json: { handle: 'alice-two.test' } })).toMatchObject({
    status: 400,
    body: { error: 'HandleNotAvailable' },
  })
  const signUp = { handle: 'alice-two.test', email: 'mallory@example.com', password: PASSWORD }
  expect((await xrpc(pds, 'com.atproto.server.createAccount', { json: signUp })).status).toBe(400)
  expect(await available('alice-two.test')).toBe(false)
  const asOperator = { json: { did: bob.did, handle: 'alice-two.test' }, headers: bearer(ADMIN_TOKEN) }
  expect((await xrpc(pds, 'com.atproto.admin.updateAccountHandle', asOperator)).status).toBe(400)
  expect(await resolved('alice-two.test')).toBe(alice.did)
})

test.each([
  ['admin.test', 'reserved'],
  ['a.b.test', 'two labels'],
  ['alice.example.com', 'another domain'],
  ['test', 'the domain itself'],
  ['-x-.test', 'hyphens outside'],
  [`${'a'.repeat(64)}.test`, 'a label of 64 characters'],
  ['', 'nothing'],
])('%s is refused: %s', async (handle) => {
  expect(await add(alice, handle)).toMatchObject({ status: 400, body: { error: { code: 'INVALID_HANDLE' } } })
})

test('only the wallet of the account adds and removes its handles', async () => {
  const unauthorized = { status: 401, body: { error: { code: 'UNAUTHORIZED' } } }
  expect(await add(alice, 'stolen.test', ofBob)).toMatchObject(unauthorized)
  expect(await add(alice, 'stolen.test', {})).toMatchObject(unauthorized)
  expect(await add(alice, 'stolen.test', bearer(alice.accessJwt))).toMatchObject(unauthorized)
  expect(await add({ did: 'stolen' }, 'stolen.test', ofBob)).toMatchObject(unauthorized)
  expect(await remove('alice.test', ofBob)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } })
  expect(await remove('alice-two.test', ofBob)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } })
  expect(await remove('alice-two.test', {})).toMatchObject(unauthorized)
  for (const unknown of ['nobody.test', 'nobody', '%20'])
    expect(await remove(unknown)).toMatchObject({ status: 404, body: { error: { code: 'HANDLE_NOT_FOUND' } } })
  expect(await resolved('alice-two.test')).toBe(alice.did)
})

test('a body that is not one is refused by what is wrong with it', async () => {
  const url = `${pds.url}/v1/handles`
  expect((await request(url, { method: 'POST', headers: ofAlice, body: 'x' })).status).toBe(415)
  const json = { ...ofAlice, 'content-type': 'application/json' }
  expect((await request(url, { method: 'POST', headers: json, body: '{' })).status).toBe(400)
  for (const body of [{}, { accountId: alice.did }, { handle: 'x.test' }, { accountId: 1, handle: 'x.test' }])
    expect((await request(url, { json: body, headers: ofAlice })).status).toBe(422)
})

test('of two that add a handle at once, one gets it; a sign-up and a change take part', async () => {
  const outcomes = await Promise.all([add(alice, 'wanted.test'), add(bob, 'wanted.test')])
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual([200, 409])
  const three = await Promise.all([
    add(alice, 'wanted-too.test'),
    bob.call('com.atproto.identity.updateHandle', { json: { handle: 'wanted-too.test' } }),
    xrpc(pds, 'com.atproto.server.createAccount', {
      json: { handle: 'wanted-too.test', email: 'e@example.com', password: PASSWORD },
    }),
  ])
  expect(three.filter(({ status }) => status === 200)).toHaveLength(1)
  expect([400, 409]).toContain(three.find(({ status }) => status !== 200)!.status)
  // Free again for the tests below.
  for (const handle of ['wanted.test', 'wanted-too.test']) {
    await remove(handle)
    await remove(handle, ofBob)
  }
})

test('changes are counted for each account, whatever address they come from', async () => {
  await using limited = await startPds({ rateLimit: { updateHandlePer5min: 2 } })
  using _ = atOneNode(limited, 'the last request of a limit is counted, and each node may let one more through')
  const erin = await createAccount(limited, 'erin')
  const frank = await createAccount(limited, 'frank')
  const wallets = await Promise.all([erin, frank].map(async ({ did }) => bearer(await walletSession(limited, did))))
  const change = (init: object) => request(`${limited.url}/v1/handles`, init)
  const statuses = []
  for (const handle of ['e-one.test', 'e-two.test', 'e-three.test'])
    statuses.push((await change({ json: { accountId: erin.did, handle }, headers: wallets[0] })).status)
  statuses.push((await change({ json: { accountId: frank.did, handle: 'f-one.test' }, headers: wallets[1] })).status)
  expect(statuses).toEqual([200, 200, 429, 200])
})

test('a removed first handle is followed by the next, a removed last one by none', async () => {
  const seen = identityEvents(alice.did).length
  expect(await remove('alice.test')).toMatchObject({ status: 204, body: '' })
  expect(await sessionHandle(alice)).toBe('alice-two.test')
  expect(await cachedNames(alice.did)).toEqual(['at://alice-two.test', 'at://alice-three.test'])
  expect(await resolved('alice.test')).toBeUndefined()
  expect(await remove('alice.test')).toMatchObject({ status: 404 })
  expect((await remove('Alice-Three.test')).status).toBe(204)
  expect((await remove('alice-two.test')).status).toBe(204)
  expect(await sessionHandle(alice)).toBe('handle.invalid')
  await events.untilSeen(() => identityEvents(alice.did).length === seen + 3)
  expect(identityEvents(alice.did).slice(seen)).toEqual([undefined, undefined, undefined])
  // Whoever has none gets a first one.
  expect((await add(alice, 'alice.test')).status).toBe(200)
  expect(await sessionHandle(alice)).toBe('alice.test')
})

test('the holder is told by mail that a handle was removed', async () => {
  await add(alice, 'short-lived.test')
  await pds.runSteps()
  pds.mails.length = 0
  await remove('short-lived.test')
  await pds.runSteps()
  expect(pds.mails.map(({ to, text }) => [to, text.includes('short-lived.test')])).toEqual([[alice.email, true]])
})

test('a change of the handle replaces all of them', async () => {
  await add(bob, 'bob-two.test')
  expect((await bob.call('com.atproto.identity.updateHandle', { json: { handle: 'robert.test' } })).status).toBe(200)
  expect([await resolved('robert.test'), await resolved('bob-two.test'), await resolved('bob.test')]).toEqual([
    bob.did,
    undefined,
    undefined,
  ])
  // The handle that an account has beside its first may become its first.
  await add(bob, 'bob.test')
  expect((await bob.call('com.atproto.identity.updateHandle', { json: { handle: 'bob.test' } })).status).toBe(200)
  expect([await sessionHandle(bob), await resolved('bob.test'), await resolved('robert.test')]).toEqual([
    'bob.test',
    bob.did,
    undefined,
  ])
  expect((await remove('bob.test', ofBob)).status).toBe(204)
  expect(await resolved('bob.test')).toBeUndefined()
  await add(bob, 'bob.test')
})

test('an account has at most ten handles', async () => {
  const carol = await createAccount(pds, 'carol')
  const wallet = bearer(await walletSession(pds, carol.did))
  for (let i = 0; i < 9; i++) expect((await add(carol, `carol-${i}.test`, wallet)).status).toBe(200)
  expect(await add(carol, 'carol-ten.test', wallet)).toMatchObject({
    status: 409,
    body: { error: { code: 'CONFLICT' } },
  })
  expect(await available('carol-ten.test')).toBe(true)
})

test('a deleted account leaves its handles to others', async () => {
  const dora = await createAccount(pds, 'dora')
  await add(dora, 'dora-two.test', bearer(await walletSession(pds, dora.did)))
  await reserve('dora-three.test', dora.did)
  const asOperator = { json: { did: dora.did }, headers: bearer(ADMIN_TOKEN) }
  expect((await xrpc(pds, 'com.atproto.admin.deleteAccount', asOperator)).status).toBe(200)
  for (const handle of ['dora.test', 'dora-two.test', 'dora-three.test']) expect(await available(handle)).toBe(true)
})

/** Keeps a handle for a day. */
const reserve = (handle: string, owner: string, email: string | null = null) =>
  pds.ctx.db.transaction((tx) =>
    reserveName(pds.ctx, tx, { handle: handle as Handle, owner, email, until: pds.clock.now() + 86_400_000 }),
  )

test('a handle that is kept for an account goes to that account alone, until its time is over', async () => {
  expect(await reserve('kept.test', 'account in the making', 'kept@example.com')).toBeNull()
  expect(await reserve('kept.test', 'somebody else')).toBe('handle')
  expect(await reserve('other.test', 'somebody else', 'kept@example.com')).toBe('email')
  expect(await reserve('other.test', 'somebody else', alice.email)).toBe('email')
  expect(await reserve('alice.test', 'somebody else')).toBe('handle')
  const signUp = (handle: string, email: string) =>
    xrpc(pds, 'com.atproto.server.createAccount', { json: { handle, email, password: PASSWORD } })
  expect((await signUp('kept.test', 'x@example.com')).status).toBe(400)
  expect((await signUp('free-name.test', 'kept@example.com')).status).toBe(400)

  await pds.ctx.db.transaction((tx) =>
    passOnReservations(tx, 'account in the making', { owner: alice.did, until: pds.clock.now() + 86_400_000 }),
  )
  expect(await available('kept.test')).toBe(false)
  expect((await add(bob, 'kept.test')).status).toBe(409)
  expect((await bob.call('com.atproto.identity.updateHandle', { json: { handle: 'kept.test' } })).status).toBe(400)
  expect((await signUp('kept.test', 'x@example.com')).status).toBe(400)
  expect((await add(alice, 'kept.test')).status).toBe(200)
  await remove('kept.test')
  expect(await available('kept.test')).toBe(true)

  await reserve('kept-too.test', alice.did)
  pds.clock.advance({ secs: 86_400 })
  expect(await available('kept-too.test')).toBe(true)
  expect((await add(bob, 'kept-too.test')).status).toBe(200)
  await reserve('kept-three.test', alice.did)
  pds.clock.advance({ secs: 90_000 })
  expect(await reserve('kept-three.test', bob.did)).toBeNull()
  pds.clock.advance({ secs: 90_000 })
  expect((await pds.runSweep('name-claims'))['released']).toBe(1)
})

test('the account page adds further handles and removes them, and says what is wrong with one', async () => {
  const rosa = await createAccount(pds, 'rosa')
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: rosa.handle, password: PASSWORD })
  const token = /name="form_token" value="([^"]+)"/.exec(String((await browser.open('/account')).body))![1]!
  const send = (path: string, handle: string, form_token = token) =>
    browser.send(`/account/${path}`, { account: rosa.did, form_token, handle })
  expect((await send('handles', 'rosa-two')).headers.get('location')).toContain('done=handle-added#handles')
  expect(await resolved('rosa-two.test')).toBe(rosa.did)
  expect(String((await browser.open('/account')).body)).toContain('@rosa-two.test')
  const taken = String((await send('handles', 'alice')).body)
  expect(/role="alert" id="fault">([^<]+)</.exec(taken)?.[1]).toStartWith('This handle is already taken.')
  expect((await send('handles/remove', 'alice.test')).headers.get('location')).toBeNull()
  expect(await resolved('alice.test')).toBe(alice.did)
  expect((await send('handles/remove', 'rosa-two.test', 'wrong')).status).toBe(403)
  expect((await send('handles/remove', 'rosa-two.test')).headers.get('location')).toContain('done=handle-removed')
  expect(await resolved('rosa-two.test')).toBeUndefined()
})
