/**
 * Who gets a name when several want it, the directory fails, or the server is killed: against a real directory on a bad
 * line.
 */
import { expect, test } from 'bun:test'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation, type LogOperation } from '../../../src/protocol/plc.ts'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { type Fate, type PassingRequest, holdPosts } from '../../support/faults/faulty-line.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const RECOVERY_KEY = 'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme'

const {
  pds,
  plc: directory,
  line,
} = useWorld({
  eachTest: true,
  line: true,
  config: { rateLimit: { enabled: false } },
})

const alice = { handle: 'alice.test', email: 'alice@example.com', password: PASSWORD }
const mallory = { handle: 'alice.test', email: 'mallory@example.com', password: 'another good password' }
const taken = { status: 400, body: { error: 'InvalidRequest', message: 'Handle already taken: alice.test' } }

const signUp = (json: object) => xrpc(pds, 'com.atproto.server.createAccount', { json })
const updateHandle = (account: TestAccount, handle: string) =>
  account.call('com.atproto.identity.updateHandle', { json: { handle } })
const writes = () => line.arrived.filter(({ method }) => method === 'POST')
const resolves = async (handle: string) =>
  (await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).body.did
/** Names of a DID in the directory; null when it has ended, undefined when it was never there. */
async function namesInDirectory(did: string): Promise<string[] | null | undefined> {
  const { status, body } = await request(`${directory.url}/${did}/log/last`)
  return status === 200 ? (body.alsoKnownAs ?? null) : undefined
}

/** What becomes of operations; everything else is answered. */
const operations =
  (fate: Fate) =>
  ({ method }: PassingRequest) =>
    method === 'POST' ? fate : 'answered'
const isDown = () => 'question lost' as const
/** The answer to the next operation is lost, and nothing gets through after it. */
const downAfterOperation = () => {
  let isOver = false
  return ({ method }: PassingRequest): Fate => {
    if (isOver) return 'question lost'
    isOver = method === 'POST'
    return isOver ? 'answer lost' : 'answered'
  }
}
/** Loses the next operations, the first of which arrives when the test says so. */
function lostOperation() {
  let lost: PassingRequest | undefined
  line.fate = (passing) => {
    if (passing.method !== 'POST') return 'answered'
    lost ??= passing
    return 'question lost'
  }
  return {
    async arrives(): Promise<PassingRequest> {
      expect(await request(directory.url + lost!.path, { json: JSON.parse(lost!.body) })).toMatchObject({ status: 200 })
      return lost!
    },
  }
}

test('a sign-up whose operation arrived, and whose answer was lost, is a sign-up', async () => {
  line.fate = operations('answer lost')
  const { status, body } = await signUp(alice)
  expect(status).toBe(200)
  expect(writes()).toHaveLength(1)
  expect(await namesInDirectory(body.did)).toEqual(['at://alice.test'])
})

test('when the directory is down, whoever tries next signs up, the same person or another', async () => {
  for (const next of [alice, mallory]) {
    line.fate = isDown
    expect(
      await signUp({ ...alice, handle: `for-${next.email.split('@')[0]}.test`, email: `old-${next.email}` }),
    ).toMatchObject({
      status: 502,
    })
    line.fate = () => 'answered'
    expect(await signUp({ ...next, handle: `for-${next.email.split('@')[0]}.test` })).toMatchObject({ status: 200 })
  }
})

test('a sign-up that the directory knows already goes on with the same identity, under the password of whoever goes on', async () => {
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  const [operation] = writes()
  expect(await resolves('alice.test')).toBeUndefined()
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.email, password: PASSWORD } }),
  ).toMatchObject({
    status: 401,
  })

  line.fate = () => 'answered'
  const { status, body } = await signUp({ ...alice, password: 'changed my mind about it' })
  expect(status).toBe(200)
  expect(operation!.path).toBe(`/${body.did}`)
  expect(new Set(writes().map((each) => each.body)).size).toBe(1)
  expect(
    await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.email, password: PASSWORD } }),
  ).toMatchObject({
    status: 401,
  })
  const { body: session } = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: alice.email, password: 'changed my mind about it' },
  })
  // The key that was made by the first attempt signs for the account of the second.
  const post = {
    repo: body.did,
    collection: 'app.bsky.feed.post',
    record: { $type: 'app.bsky.feed.post', text: 'here', createdAt: '2026-01-01T00:00:00Z' },
  }
  expect(
    await xrpc(pds, 'com.atproto.repo.createRecord', {
      json: post,
      headers: { authorization: `Bearer ${session.accessJwt}` },
    }),
  ).toMatchObject({ status: 200 })
  expect(
    await xrpc(pds, 'com.atproto.server.checkAccountStatus', {
      headers: { authorization: `Bearer ${session.accessJwt}` },
    }),
  ).toMatchObject({ body: { validDid: true } })
})

test('an address is held with its handle, and is free as soon as the attempt has failed', async () => {
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await signUp({ ...alice, handle: 'alicia.test' })).toMatchObject({ status: 200 })
  expect(await signUp(mallory)).toMatchObject({ status: 200 })
})

test('while an attempt is under way, others get neither its handle nor its address', async () => {
  const bob = await createAccount(pds, 'bob')
  const held = holdPosts(line)
  const first = signUp(alice)
  await held.reached
  expect(await signUp(mallory)).toMatchObject(taken)
  expect(await signUp({ ...alice, handle: 'alicia.test' })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 400, body: { error: 'HandleNotAvailable' } })
  expect(await bob.call('com.atproto.server.updateEmail', { json: { email: alice.email } })).toMatchObject({
    status: 400,
  })
  expect((await xrpc(pds, 'com.atproto.temp.checkHandleAvailability?handle=alice.test')).body.result.$type).toEndWith(
    '#resultUnavailable',
  )
  held.open()
  expect(await first).toMatchObject({ status: 200 })
  expect(writes()).toHaveLength(2)
})

test('whoever tries again while the first attempt still hangs goes on at once, and ends up with one account', async () => {
  const silence = Promise.withResolvers<Fate>()
  const reached = Promise.withResolvers<void>()
  let operationsSeen = 0
  line.fate = ({ method }) => {
    if (method !== 'POST' || ++operationsSeen > 1) return 'answered'
    reached.resolve()
    return silence.promise
  }
  const first = signUp(alice)
  await reached.promise
  expect(await signUp({ ...alice, email: 'other@example.com' })).toMatchObject(taken)
  const second = await signUp(alice)
  expect(second).toMatchObject({ status: 200 })
  silence.resolve('answered')
  expect(await first).toMatchObject({ status: 503 })
  expect(new Set(writes().map(({ body }) => body)).size).toBe(1)
  expect(await resolves('alice.test')).toBe(second.body.did)
  expect(await namesInDirectory(second.body.did)).toEqual(['at://alice.test'])
  expect(await signUp(alice)).toMatchObject(taken)
})

test('a directory that has too much to do does not make a second identity of one that may still arrive', async () => {
  const lost = lostOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  line.fate = operations(429)
  expect((await signUp(alice)).status).not.toBe(200)
  line.fate = () => 'answered'
  const { path, body } = await lost.arrives()
  expect(await signUp(alice)).toMatchObject({ status: 200, body: { did: path.slice(1) } })
  expect(writes().map((each) => each.body)).toEqual([body])
})

test('an identity with other rotation keys is ended before another is made for its handle', async () => {
  line.fate = downAfterOperation()
  expect(await signUp({ ...alice, recoveryKey: RECOVERY_KEY })).toMatchObject({ status: 502 })
  const [{ path } = { path: '' }] = writes()
  line.fate = () => 'answered'
  // The operation may still be on its way: only an attempt that continues with it is admitted.
  expect(await signUp(mallory)).toMatchObject(taken)
  pds.clock.advance({ secs: 61 })
  const { status, body } = await signUp(mallory)
  expect(status).toBe(200)
  expect(`/${body.did}`).not.toBe(path)
  expect(await namesInDirectory(path.slice(1))).toBeNull()
})

test('whoever has the recovery key goes on at once', async () => {
  line.fate = downAfterOperation()
  expect(await signUp({ ...alice, recoveryKey: RECOVERY_KEY })).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await signUp({ ...alice, recoveryKey: RECOVERY_KEY })).toMatchObject({ status: 200 })
  expect(new Set(writes().map(({ body }) => body)).size).toBe(1)
})

test('an identity that was ended meanwhile gives way to a fresh one', async () => {
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  const [{ path } = { path: '' }] = writes()
  pds.clock.advance({ secs: 7200 })
  // The sweep ends the identity, and is killed before it has forgotten it.
  line.fate = ({ method }) =>
    method === 'POST' ? 'answer lost' : path === '' || writes().length > 1 ? 'question lost' : 'answered'
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 1, reconciled: 0, failed: 1, released: 0 })
  expect(await namesInDirectory(path.slice(1))).toBeNull()
  line.fate = () => 'answered'
  const { status, body } = await signUp(alice)
  expect(status).toBe(200)
  expect(`/${body.did}`).not.toBe(path)
})

test('an identity that its owner has used since is left alone', async () => {
  const owner = signingKey('k256', crypto.getRandomValues(new Uint8Array(32)))
  line.fate = downAfterOperation()
  expect(await signUp({ ...alice, recoveryKey: formatDidKey(owner.publicKey) })).toMatchObject({ status: 502 })
  const did = writes()[0]!.path.slice(1) as Did
  const genesis = JSON.parse(writes()[0]!.body) as LogOperation
  line.fate = () => 'answered'
  await pds.ctx.plc.submit(
    did,
    signOperation(nextOperation(genesis, { alsoKnownAs: ['at://elsewhere.example.com'] })!, owner),
  )
  pds.clock.advance({ secs: 7200 })
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 1, reconciled: 1, failed: 0, released: 0 })
  expect(await namesInDirectory(did)).toEqual(['at://elsewhere.example.com'])
})

test('a sign-up that nobody comes back to leaves no identity in the directory, and no name', async () => {
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  const [{ path } = { path: '' }] = writes()
  line.fate = () => 'answered'
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 0, reconciled: 0, failed: 0, released: 0 })
  pds.clock.advance({ secs: 7200 })
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 1, reconciled: 1, failed: 0, released: 0 })
  expect(await namesInDirectory(path.slice(1))).toBeNull()
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 0, reconciled: 0, failed: 0, released: 0 })
  expect(await signUp(alice)).toMatchObject({ status: 200 })
})

test('an invite is held while its sign-up is under way, and free again when it failed', async () => {
  await pds.restart({ inviteCodeRequired: true })
  const admin = { authorization: `Basic ${btoa('admin:test-admin-token-of-more-than-32-characters')}` }
  const { body } = await xrpc(pds, 'com.atproto.server.createInviteCode', { json: { useCount: 1 }, headers: admin })
  const inviteCode = body.code
  const held = holdPosts(line)
  const first = signUp({ ...alice, inviteCode })
  await held.reached
  const other = { handle: 'bob.test', email: 'bob@example.com', password: PASSWORD, inviteCode }
  expect(await signUp(other)).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
  line.fate = isDown
  held.open('answer lost')
  expect(await first).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await signUp(other)).toMatchObject({ status: 200 })
  expect(await signUp({ ...alice, inviteCode })).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
})

// Changing a handle

test('of three accounts that race for one handle, one tells the directory', async () => {
  const racers = [await createAccount(pds, 'one'), await createAccount(pds, 'two'), await createAccount(pds, 'three')]
  const before = writes().length
  const held = holdPosts(line)
  const answers = Promise.all(racers.map((racer) => updateHandle(racer, 'alice.test')))
  await held.reached
  held.open()
  const statuses = (await answers).map(({ status, body }) => [status, body.error ?? null])
  expect(statuses.toSorted()).toEqual([
    [200, null],
    [400, 'HandleNotAvailable'],
    [400, 'HandleNotAvailable'],
  ])
  expect(writes()).toHaveLength(before + 1)
  const named = await Promise.all(
    racers.map(async ({ did }) => (await namesInDirectory(did))!.includes('at://alice.test')),
  )
  expect(named.filter(Boolean)).toHaveLength(1)
  expect(await resolves('alice.test')).toBe(racers[named.indexOf(true)]!.did)
})

test('an account and a sign-up that race for one handle do not both get it', async () => {
  const bob = await createAccount(pds, 'bob')
  const held = holdPosts(line)
  const change = updateHandle(bob, 'alice.test')
  await held.reached
  expect(await signUp(alice)).toMatchObject(taken)
  held.open()
  expect(await change).toMatchObject({ status: 200 })
  expect(writes()).toHaveLength(2)
})

test('a change that the directory took, though it did not say so, is a change', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = operations('answer lost')
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 200 })
  expect(await resolves('alice.test')).toBe(bob.did)
})

test('a change of unknown outcome is finished by the next try, with no second operation', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = downAfterOperation()
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 502 })
  expect(await resolves('alice.test')).toBeUndefined()
  line.fate = () => 'answered'
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 200 })
  expect(writes()).toHaveLength(2)
  expect(await resolves('alice.test')).toBe(bob.did)
})

test('a change of unknown outcome is decided by the directory when others ask for the handle', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = downAfterOperation()
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await signUp(alice)).toMatchObject(taken)
  pds.clock.advance({ secs: 61 })
  expect(await signUp(alice)).toMatchObject(taken)
  expect(await resolves('alice.test')).toBe(bob.did)
  expect(writes()).toHaveLength(2)
})

test('a second try that the directory cannot hear, or refuses, does not free a handle that the first may still get', async () => {
  const bob = await createAccount(pds, 'bob')
  for (const [handle, second] of [
    ['bobby.test', isDown],
    ['robert.test', operations(400)],
  ] as const) {
    const lost = lostOperation()
    expect(await updateHandle(bob, handle)).toMatchObject({ status: 502 })
    line.fate = second
    expect((await updateHandle(bob, handle)).status).not.toBe(200)
    line.fate = () => 'answered'
    await lost.arrives()
    expect(await signUp({ ...alice, handle })).toMatchObject({ status: 400 })
    expect(await updateHandle(bob, handle)).toMatchObject({ status: 200 })
    expect(await resolves(handle)).toBe(bob.did)
  }
})

test('a change that a killed server left is reconciled by the sweep', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = downAfterOperation()
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  await pds.restart()
  pds.clock.advance({ secs: 61 })
  expect(await pds.runSweep('name-claims')).toEqual({ seen: 1, reconciled: 1, failed: 0, released: 0 })
  expect(await resolves('alice.test')).toBe(bob.did)
})

test('a change that was left while the clock was ahead is reconciled once the clock is right', async () => {
  pds.clock.jump({ days: 365 })
  const bob = await createAccount(pds, 'bob')
  line.fate = downAfterOperation()
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  pds.clock.jump({ days: -365 })
  // A sweep that deletes skips one pass once the clock was set.
  await pds.runSweep('name-claims')
  await pds.runSweep('name-claims')
  expect(await resolves('alice.test')).toBe(bob.did)
})

test('an operator’s change that the sweep completes is in the audit log', async () => {
  const bob = await createAccount(pds, 'bob')
  const carol = await createAccount(pds, 'carol')
  const audited = async ({ did }: TestAccount) =>
    (await request(`${pds.url}/v1/admin/audit?subject=${did}`, { headers: bearer(ADMIN_TOKEN) })).body.events.map(
      ({ action, reason }: { action: string; reason?: string }) => [action, reason],
    )
  const change = ({ did }: TestAccount, handle: string) =>
    xrpc(pds, 'com.atproto.admin.updateAccountHandle', {
      json: { did, handle },
      headers: { ...bearer(ADMIN_TOKEN), 'x-admin-reason': 'asked' },
    })
  line.fate = downAfterOperation()
  expect(await change(bob, 'alice.test')).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await audited(bob)).toEqual([['handle_updated', 'asked']])
  // What is refused, because another has the handle or is getting it, is not recorded.
  for (const handle of ['bob.test', 'alice.test']) expect(await change(carol, handle)).toMatchObject({ status: 400 })
  expect(await audited(carol)).toEqual([])
  await pds.restart()
  pds.clock.advance({ secs: 61 })
  expect(await pds.runSweep('name-claims')).toMatchObject({ reconciled: 1 })
  expect(await resolves('alice.test')).toBe(bob.did)
  expect(await audited(bob)).toEqual([['handle_updated', 'asked']])
})

test('a change that never reached the directory holds up nobody', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = isDown
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  expect(await signUp(alice)).toMatchObject({ status: 200 })
  expect(await namesInDirectory(bob.did)).toEqual(['at://bob.test'])
})

test('an account that takes the handle of a sign-up that was cut off has it alone, in the directory too', async () => {
  const bob = await createAccount(pds, 'bob')
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  const path = writes()[1]!.path
  line.fate = () => 'answered'
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 400, body: { error: 'HandleNotAvailable' } })
  pds.clock.advance({ secs: 61 })
  expect(await updateHandle(bob, 'alice.test')).toMatchObject({ status: 200 })
  expect(await namesInDirectory(path.slice(1))).toBeNull()
  expect(await namesInDirectory(bob.did)).toEqual(['at://alice.test'])
})

test('a wallet that adds the handle of an abandoned sign-up waits out the doubt, and ends the identity that was left', async () => {
  const bob = await createAccount(pds, 'bob')
  const wallet = bearer(await walletSession(pds, bob.did))
  const add = () =>
    request(`${pds.url}/v1/handles`, { json: { accountId: bob.did, handle: 'alice.test' }, headers: wallet })
  line.fate = downAfterOperation()
  expect(await signUp(alice)).toMatchObject({ status: 502 })
  const left = writes().at(-1)!.path.slice(1)
  line.fate = () => 'answered'
  expect(await add()).toMatchObject({ status: 409 })
  pds.clock.advance({ secs: 61 })
  line.fate = isDown
  expect(await add()).toMatchObject({ status: 502, body: { error: { code: 'PLC_DIRECTORY_ERROR' } } })
  line.fate = () => 'answered'
  expect(await add()).toMatchObject({ status: 200 })
  expect(await namesInDirectory(left)).toBeNull()
  expect(await namesInDirectory(bob.did)).toEqual(['at://bob.test'])
  expect(await resolves('alice.test')).toBe(bob.did)
})

test('a handle that was being added when the server was killed takes no others from the account', async () => {
  const bob = await createAccount(pds, 'bob')
  const did = bob.did as Did
  const headers = bearer(await walletSession(pds, did))
  const add = (handle: string) => request(`${pds.url}/v1/handles`, { json: { accountId: did, handle }, headers })
  expect((await add('bob-two.test')).status).toBe(200)
  // The holder had it published with a code from the mail.
  const last = (await pds.ctx.plc.lastOperation(did))!
  const operation = nextOperation(last, { alsoKnownAs: ['at://bob-three.test'] })!
  await pds.ctx.plc.submit(did, signOperation(operation, await serverRotationKey(pds.ctx)))
  const left = { handle: 'bob-three.test', did, held_until: pds.clock.now() - 1, is_further: 1 }
  await pds.plant('name_claim', left)
  expect(await pds.runSweep('name-claims')).toMatchObject({ reconciled: 1, failed: 0 })
  for (const handle of ['bob.test', 'bob-two.test', 'bob-three.test']) expect(await resolves(handle)).toBe(did)
  expect(await pds.count('name_claim')).toBe(0)
})
