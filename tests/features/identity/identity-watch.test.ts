/** Operations on the identities of accounts that did not come from this server. */
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import { formatDidKey, signingKey, type SigningKey } from '../../../src/protocol/keys.ts'
import {
  nextOperation,
  operationCid,
  signOperation,
  tombstone,
  type LogOperation,
  type PlcState,
} from '../../../src/protocol/plc.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { allSeen } from '../../support/clients/events.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { queuedPushes, registerDevices, RELAY } from '../../support/clients/queued.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const owner = signingKey('k256', randomBytes(32))
const ownerKey = formatDidKey(owner.publicKey)

const INTERVAL_SECS = 600

const { pds, line } = useWorld({
  line: true,
  eachTest: true,
  config: ({ line }) => ({
    plcDirectoryUrl: line.url,
    recoveryDidKey: ownerKey,
    identityWatch: { intervalSecs: INTERVAL_SECS },
    notifications: { relay: RELAY },
    signingKeyMasterKey: MASTER_KEY,
    alerts: { mailTo: ['operator@example.org'], diskFreeBytes: 0 },
  }),
})

/** All passes of the next round. Returns what they counted. */
async function round() {
  pds.clock.advance({ secs: INTERVAL_SECS })
  const counted = { seen: 0, changed: 0, failed: 0 }
  let report: Record<string, number>
  do {
    report = await pds.runSweep('identity-watch')
    for (const name of Object.keys(counted) as (keyof typeof counted)[]) counted[name] += report[name]!
  } while (report.seen !== 0)
  return counted
}

/** Someone signs the next operation with a key of the identity, and sends it to the directory. */
async function send(did: string, changes: Partial<PlcState> | null, key: Pick<SigningKey, 'sign'> = owner) {
  const last = (await pds.ctx.plc.lastOperation(did as Did))!
  const operation: LogOperation =
    changes === null ? signOperation(tombstone(last), key) : signOperation(nextOperation(last, changes)!, key)
  await pds.ctx.plc.submit(did as Did, operation)
  return last
}

const report = async () =>
  (await request(`${pds.url}/v1/admin/identities`, { headers: bearer(ADMIN_TOKEN) })).body as {
    changed: Record<string, unknown>[]
    misfits: unknown[]
  }

const mailsTo = async ({ email }: TestAccount) => {
  await pds.runSteps()
  return pds.mails.filter(({ subject, to }) => subject.includes('changed elsewhere') && to === email)
}

test('what comes from here is no news, whichever way it goes', async () => {
  const alice = await createAccount(pds, 'alice')
  expect(await round()).toEqual({ seen: 1, changed: 0, failed: 0 })
  expect((await alice.call('com.atproto.identity.updateHandle', { json: { handle: 'renamed.test' } })).status).toBe(200)
  expect(await round()).toEqual({ seen: 1, changed: 0, failed: 0 })
  await alice.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  const code = await lastCode(pds, alice.email)
  const { body } = await alice.call('com.atproto.identity.signPlcOperation', {
    json: {
      token: code,
      rotationKeys: [ownerKey, formatDidKey((await serverRotationKey(pds.ctx)).publicKey)].reverse(),
    },
  })
  // As another server does to which the account moves.
  await pds.ctx.plc.submit(alice.did as Did, body.operation)
  expect(await round()).toEqual({ seen: 1, changed: 0, failed: 0 })
  expect(await mailsTo(alice)).toEqual([])
  expect(await report()).toMatchObject({ changed: [], misfits: [] })
})

test('an operation that the directory refused when it came from here is news when it comes from elsewhere', async () => {
  const alice = await createAccount(pds, 'alice')
  const did = alice.did as Did
  await round()
  const submit = (operation: LogOperation) =>
    alice.call('com.atproto.identity.submitPlcOperation', { json: { operation: { ...operation } } })
  const thief = formatDidKey(signingKey('k256', randomBytes(32)).publicKey)
  const last = (await pds.ctx.plc.lastOperation(did))!
  const names = [`at://${alice.handle}`, 'https://alice.example']
  const first = signOperation(nextOperation(last, { alsoKnownAs: names })!, owner)
  const kept = formatDidKey((await serverRotationKey(pds.ctx)).publicKey)
  const second = signOperation(nextOperation(first, { rotationKeys: [thief, ownerKey, kept] })!, owner)
  // The one before it is not in the directory yet.
  expect((await submit(second)).status).toBe(400)
  expect((await submit(first)).status).toBe(200)
  await pds.ctx.plc.submit(did, second)
  expect(await round()).toEqual({ seen: 1, changed: 1, failed: 0 })
  expect(await mailsTo(alice)).toHaveLength(1)
})

test('the holder, the operator and the network are told of an operation of someone else, once', async () => {
  const [alice, bob] = [await createAccount(pds, 'alice'), await createAccount(pds, 'bob')]
  await round()
  const stolen = { sign: (bytes: Uint8Array) => serverKey.sign(bytes) }
  const serverKey = await serverRotationKey(pds.ctx)
  const thief = formatDidKey(signingKey('k256', randomBytes(32)).publicKey)
  await using events = await Subscriber.open(pds.url)
  const before = await send(alice.did, { rotationKeys: [ownerKey, thief], alsoKnownAs: ['at://thief.test'] }, stolen)
  expect(await round()).toEqual({ seen: 2, changed: 1, failed: 0 })
  expect(await round()).toEqual({ seen: 2, changed: 0, failed: 0 })
  const [mail, ...others] = await mailsTo(alice)
  expect(others).toEqual([])
  expect(mail!.text).toContain('It changed: the handle and the keys that may change the identity.')
  expect(mail!.text).toMatch(new RegExp(`Until .+, a higher key of the identity can undo it: ${ownerKey}\\.`))
  expect(await mailsTo(bob)).toEqual([])
  expect(await report()).toMatchObject({
    changed: [
      {
        did: alice.did,
        handle: alice.handle,
        operations: 1,
        parts: ['handle', 'rotation-keys'],
        undoableBy: [ownerKey],
      },
    ],
    misfits: [{ did: alice.did, misfit: 'handle' }],
  })
  await allSeen(pds, events)
  const seen = events.messages.filter(({ type, body }) => type === '#identity' && body.did === alice.did)
  expect(seen).toHaveLength(1)
  await pds.runSweep('alerts')
  await pds.runSteps()
  expect(pds.mails.find(({ to }) => to === 'operator@example.org')!.text).toContain(
    `an identity was changed elsewhere (${alice.handle})`,
  )

  const network = await request(`${pds.url}/v1/admin/network?account=${alice.did}`, { headers: bearer(ADMIN_TOKEN) })
  expect(network.body.account.links).toContainEqual(
    expect.objectContaining({ name: 'changes of the identity', text: expect.stringContaining('the handle') }),
  )

  // The holder undoes it with the higher key.
  const undoing = signOperation(nextOperation(before, {})!, owner)
  await pds.ctx.plc.submit(alice.did as Did, undoing)
  await round()
  expect((await report()).misfits).toEqual([])
  expect((await report()).changed).toMatchObject([{ did: alice.did, parts: [] }])
})

test('the page of the identity says what was changed elsewhere, how to undo it, and what does not fit', async () => {
  const alice = await createAccount(pds, 'alice')
  await round()
  const serverKey = await serverRotationKey(pds.ctx)
  const before = await send(alice.did, { alsoKnownAs: ['at://thief.test'] }, serverKey)
  await round()
  const page = await identityPage(alice)
  expect(page).toContain('It changed: the handle.')
  expect(page).toContain(ownerKey)
  expect(page).toContain(operationCid(before).toString())
  expect(page).toContain('Your identity names another handle')
  await pds.ctx.plc.submit(alice.did as Did, signOperation(nextOperation(before, {})!, owner))
  await round()
  const after = await identityPage(alice)
  expect(after).not.toContain('names another handle')
  pds.clock.advance({ secs: 72 * 3600 })
  expect(await identityPage(alice)).not.toContain('Changed elsewhere')
})

async function identityPage({ did }: TestAccount): Promise<string> {
  const signedIn = await request(`${pds.url}/account/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ identifier: did, password: PASSWORD }).toString(),
  })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  return (
    await request(`${pds.url}/account/identity?${new URLSearchParams({ account: did })}`, { headers: { cookie } })
  ).body
}

test('an account that has left is told of, and is not said to be unfit', async () => {
  const alice = await createAccount(pds, 'alice')
  await round()
  await alice.call('com.atproto.server.deactivateAccount', { json: {} })
  await send(alice.did, {
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.test' } },
  })
  expect(await round()).toMatchObject({ changed: 1 })
  const [mail] = await mailsTo(alice)
  expect(mail!.text).toContain('the server of the account')
  expect(mail!.text).toContain('no other key can undo it')
  expect((await report()).misfits).toEqual([])
})

test('an identity that was ended is told of', async () => {
  const alice = await createAccount(pds, 'alice')
  await round()
  await send(alice.did, null)
  expect(await round()).toMatchObject({ changed: 1 })
  expect(await report()).toMatchObject({
    changed: [{ did: alice.did, parts: ['ended'] }],
    misfits: [{ did: alice.did, misfit: 'ended' }],
  })
})

test('a round goes on where the directory went away, and no identity is left out', async () => {
  const accounts = []
  for (let index = 0; index < 25; index++) accounts.push(await createAccount(pds, `user${index}`))
  await round()
  for (const { did } of accounts) await send(did, { alsoKnownAs: ['at://moved.test'] })
  pds.clock.advance({ secs: INTERVAL_SECS })
  let requests = 0
  line.fate = () => (++requests > 20 ? 503 : 'answered')
  expect((await pds.runSweep('identity-watch')).changed).toBeGreaterThan(0)
  line.fate = () => 'answered'
  for (let pass = 0; pass < 4; pass++) await pds.runSweep('identity-watch')
  for (const account of accounts) expect(await mailsTo(account)).toHaveLength(1)
})

test('the round after the next is due after the interval, and not before', async () => {
  await createAccount(pds, 'alice')
  await round()
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 0 })
  pds.clock.advance({ secs: INTERVAL_SECS - 60 })
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 0 })
  pds.clock.advance({ secs: 60 })
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 1 })
})

test('an identity whose log is too long to read keeps no other from being looked at', async () => {
  const [alice, bob] = [await createAccount(pds, 'alice'), await createAccount(pds, 'bob')]
  await round()
  for (const { did } of [alice, bob]) await send(did, { alsoKnownAs: ['at://moved.test'] })
  const long = { body: `[${' '.repeat(5 * 1024 * 1024)}]` }
  line.fate = ({ path }) => (path === `/${alice.did}/log/audit` ? long : 'answered')
  expect(await round()).toMatchObject({ changed: 1, failed: 1 })
  expect(await mailsTo(bob)).toHaveLength(1)
})

test('an identity about which the directory fails keeps no other from being looked at', async () => {
  const [alice, bob] = [await createAccount(pds, 'alice'), await createAccount(pds, 'bob')]
  await round()
  for (const { did } of [alice, bob]) await send(did, { alsoKnownAs: ['at://moved.test'] })
  line.fate = ({ path }) => (path.startsWith(`/${alice.did}/`) ? 500 : 'answered')
  pds.clock.advance({ secs: INTERVAL_SECS })
  for (let pass = 0; pass < 4; pass++) await pds.runSweep('identity-watch')
  expect(await mailsTo(bob)).toHaveLength(1)
  line.fate = () => 'answered'
  await round()
  expect(await mailsTo(alice)).toHaveLength(1)
})

test('old answers of the directory, or none, make nothing news twice, and hide nothing', async () => {
  const alice = await createAccount(pds, 'alice')
  const first = JSON.stringify(await pds.ctx.plc.lastOperation(alice.did as Did))
  await round()
  await send(alice.did, { alsoKnownAs: ['at://moved.test'] })
  expect(await round()).toMatchObject({ changed: 1 })
  const isLast = (path: string) => path.endsWith('/log/last')
  line.fate = ({ path }) => (isLast(path) ? { body: first } : 'answered')
  expect(await round()).toMatchObject({ changed: 0 })
  line.fate = () => 'answered'
  expect(await round()).toMatchObject({ changed: 0 })
  expect(await mailsTo(alice)).toHaveLength(1)
  line.fate = ({ path }) => (isLast(path) ? 404 : 'answered')
  expect(await round()).toMatchObject({ changed: 0 })
  expect((await report()).misfits).toEqual([{ did: alice.did, handle: alice.handle, misfit: 'ended' }])
  line.fate = () => 'answered'
  await send(alice.did, { alsoKnownAs: ['at://again.test'] })
  expect(await round()).toMatchObject({ changed: 1 })
})

test('a handle behind another name, or in capitals, fits', async () => {
  const alice = await createAccount(pds, 'alice')
  await round()
  await send(alice.did, { alsoKnownAs: ['https://example.org', `at://${alice.handle.toUpperCase()}`] })
  await round()
  expect((await report()).misfits).toEqual([])
})

test('what came from here while nobody watched is no news when watching begins again', async () => {
  const alice = await createAccount(pds, 'alice')
  await round()
  await pds.restart({ identityWatch: { intervalSecs: 0 } })
  expect((await alice.call('com.atproto.identity.updateHandle', { json: { handle: 'renamed.test' } })).status).toBe(200)
  await pds.restart({ identityWatch: { intervalSecs: INTERVAL_SECS } })
  expect(await round()).toEqual({ seen: 1, changed: 0, failed: 0 })
})

test('the devices of the holder are told of an operation of someone else, once each', async () => {
  const [alice, bob] = [await createAccount(pds, 'alice'), await createAccount(pds, 'bob')]
  await round()
  await send(alice.did, { alsoKnownAs: ['at://moved.test'] })
  pds.clock.advance({ secs: INTERVAL_SECS })
  await registerDevices(pds, alice, ['phone', 'tablet'])
  await registerDevices(pds, bob, ['bobphone'])
  expect(await pds.runSweep('identity-watch')).toMatchObject({ changed: 1 })
  expect(await pds.runSweep('identity-watch')).toMatchObject({ changed: 0 })
  const pushes = (await queuedPushes(pds)).filter(({ message }) => message.type === 'identity_changed')
  expect(pushes.map(({ device }) => device)).toEqual([
    { owner: alice.did, deviceId: 'phone' },
    { owner: alice.did, deviceId: 'tablet' },
  ])
  for (const { message } of pushes) expect(message.body).toContain('the handle')
})

test('an identity that names another server or another signing key is shown as one that does not fit', async () => {
  const [alice, bob, carol] = [
    await createAccount(pds, 'alice'),
    await createAccount(pds, 'bob'),
    await createAccount(pds, 'carol'),
  ]
  await round()
  await send(alice.did, {
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.test' } },
  })
  const otherKey = formatDidKey(signingKey('k256', randomBytes(32)).publicKey)
  await send(bob.did, { verificationMethods: { atproto: otherKey } })
  await round()
  const { misfits } = await report()
  expect(misfits).toHaveLength(2)
  expect(misfits).toContainEqual({ did: alice.did, handle: alice.handle, misfit: 'server' })
  expect(misfits).toContainEqual({ did: bob.did, handle: bob.handle, misfit: 'signing-key' })
  expect(await identityPage(bob)).toContain('Your identity names another signing key')
  expect(await identityPage(carol)).not.toContain('Your identity names')
})

test('a round continues after a restart, and asks the directory for one identity at a time', async () => {
  const accounts = []
  for (let index = 0; index < 25; index++) accounts.push(await createAccount(pds, `user${index}`))
  await round()
  for (const { did } of accounts) await send(did, { alsoKnownAs: ['at://moved.test'] })
  pds.clock.advance({ secs: INTERVAL_SECS })
  const asked: string[] = []
  let [open, most] = [0, 0]
  line.fate = async ({ path }) => {
    if (path.endsWith('/log/last')) asked.push(path)
    most = Math.max(most, ++open)
    // Others that are under way arrive meanwhile.
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    open--
    return 'answered' as const
  }
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 20 })
  await pds.restart()
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 5 })
  expect(new Set(asked).size).toBe(25)
  expect(asked).toHaveLength(25)
  expect(most).toBe(1)
  for (const account of accounts) expect(await mailsTo(account)).toHaveLength(1)
})

test('a round asks the directory over one connection, also after a restart, and whatever it answers', async () => {
  const accounts = []
  for (let index = 0; index < 25; index++) accounts.push(await createAccount(pds, `user${index}`))
  await round()
  for (const { did } of accounts) await send(did, { alsoKnownAs: ['at://moved.test'] })
  const before = { connections: line.connections, requests: line.arrived.length }
  expect(before.connections).toBeGreaterThan(0)
  pds.clock.advance({ secs: INTERVAL_SECS })
  const statuses = [404, 410, 400]
  const asked = new Set<string>()
  line.fate = ({ path }) => {
    if (!path.endsWith('/log/last')) return 'answered'
    asked.add(path)
    return statuses[asked.size % 8] ?? 'answered'
  }
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 20 })
  await pds.restart()
  expect(await pds.runSweep('identity-watch')).toMatchObject({ seen: 5 })
  expect(asked.size).toBe(25)
  expect(line.arrived.length - before.requests).toBeGreaterThan(25)
  expect(line.connections - before.connections).toBeLessThanOrEqual(1)
})
