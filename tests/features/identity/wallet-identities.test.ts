/** Identities that wallets made: who changes them, what the server asks of them, and what it signs for them. */
import { beforeAll, expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey } from '../../../src/protocol/keys.ts'
import {
  nextOperation,
  operationCid,
  signOperation,
  signerOf,
  type Operation,
  type PlcState,
} from '../../../src/protocol/plc.ts'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import { holder, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bear, forCeremonies, type BornAccount } from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { askSession, sessionRequest, sovereignAccount } from '../../support/clients/wallet.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

type Sovereign = BornAccount & { session: string; as: TestAccount; signingKey: string }

let alice: Sovereign

const {
  pds,
  plc: directory,
  line,
} = useWorld({ line: true, config: { ...forCeremonies, accounts: { passwordOptional: true } } })
const events = setUp(() => Subscriber.open(pds.url))
beforeAll(async () => {
  alice = await born('alice')
})

/** An account of the ceremony, without a password, with its handle and a session by its device. */
async function born(name: string): Promise<Sovereign> {
  const account = await bear(pds, name, { password: null })
  const json = { accountId: account.did, handle: account.handle }
  const added = await request(`${pds.url}/v1/handles`, { json, headers: bearer(account.session) })
  if (added.status !== 200) throw new Error(`the handle was answered ${added.status} ${JSON.stringify(added.body)}`)
  const [, , signingKey] = (await stateIn(account.did)).rotationKeys
  return { ...account, as: await signIn(account), signingKey: signingKey! }
}

async function signIn(account: BornAccount): Promise<TestAccount> {
  const { status, body } = await askSession(pds, sessionRequest(pds, account))
  if (status !== 200) throw new Error(`the session was answered ${status} ${JSON.stringify(body)}`)
  return holder(pds, { email: account.email, password: '', ...body })
}

const logOf = async (did: string): Promise<Operation[]> => (await request(`${directory.url}/${did}/log`)).body
const lastOf = async (did: string): Promise<Operation> => (await logOf(did)).at(-1)!
const stateIn = async (did: string): Promise<PlcState> => (await request(`${directory.url}/${did}/data`)).body
/** The wallet changes its identity, without this server. */
async function publish({ did, device }: BornAccount, changes: Partial<PlcState>): Promise<void> {
  const operation = signOperation(nextOperation(await lastOf(did), changes)!, device.key)
  const { status, body } = await request(`${directory.url}/${did}`, { json: operation })
  if (status !== 200) throw new Error(`the directory answered ${status} ${JSON.stringify(body)}`)
}
const identity = (account: { as: TestAccount }, method: string, json?: object) =>
  account.as.call(
    `com.atproto.identity.${method}`,
    json === undefined ? { method: method.startsWith('get') ? 'GET' : 'POST' } : { json },
  )
const updateHandle = (account: { as: TestAccount }, handle: string) => identity(account, 'updateHandle', { handle })
const codePattern = /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m
async function mailedCode(account: Sovereign): Promise<string> {
  pds.clock.advance({ secs: 3601 }) // past the limit on mails
  account.as = await signIn(account)
  expect((await identity(account, 'requestPlcOperationSignature')).status).toBe(200)
  return codePattern.exec(pds.mails.findLast(({ text }) => codePattern.test(text))!.text)![0]
}
const handlesHeard = (did: string) =>
  events.messages
    .filter(({ type, body }) => type === '#identity' && body['did'] === did)
    .map(({ body }) => body['handle'])

test('the handle of a ceremony is kept for its account for a day, and for nobody afterwards', async () => {
  const available = async (handle: string) =>
    (await xrpc(pds, `com.atproto.temp.checkHandleAvailability?handle=${handle}`)).body.result.$type.endsWith(
      '#resultAvailable',
    )
  const take = ({ did, session }: BornAccount, handle: string) =>
    request(`${pds.url}/v1/handles`, { json: { accountId: did, handle }, headers: bearer(session) })
  const [uma, vera] = [await bear(pds, 'uma', { password: null }), await bear(pds, 'vera', { password: null })]
  const session = await signIn(uma)
  expect((await session.call('com.atproto.server.getSession')).body.handle).toBe('handle.invalid')
  expect(await available('uma.test')).toBe(false)
  expect(await take(alice, 'uma.test')).toMatchObject({ status: 409, body: { error: { code: 'HANDLE_TAKEN' } } })
  expect((await updateHandle(alice, 'uma.test')).status).toBe(400)
  const signUp = { handle: 'uma.test', email: 'other@example.com', password: 'long enough' }
  expect((await xrpc(pds, 'com.atproto.server.createAccount', { json: signUp })).status).toBe(400)
  expect((await take(uma, 'uma.test')).status).toBe(200)
  expect((await session.call('com.atproto.server.getSession')).body.handle).toBe('uma.test')
  expect((await xrpc(pds, `com.atproto.identity.resolveIdentity?identifier=${uma.did}`)).body.handle).toBe('uma.test')

  pds.clock.advance({ secs: 86_400 })
  expect(await available('vera.test')).toBe(true)
  expect((await take(alice, 'vera.test')).status).toBe(200)
  expect((await take(vera, 'vera.test')).status).toBe(409)
  await request(`${pds.url}/v1/handles/vera.test`, { method: 'DELETE', headers: bearer(alice.session) })
  alice.as = await signIn(alice)
})

test('the server asks for its own key of the account, and for nothing that would let it do more', async () => {
  expect((await identity(alice, 'getRecommendedDidCredentials')).body).toEqual({
    rotationKeys: [alice.signingKey],
    alsoKnownAs: ['at://alice.test'],
    verificationMethods: { atproto: alice.signingKey },
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: pds.url } },
  })
  // An identity that the server made for a wallet lists the server's rotation key.
  const made = await sovereignAccount(pds, 'made', { password: undefined })
  expect((await made.call('com.atproto.identity.getRecommendedDidCredentials')).body.rotationKeys).toEqual([
    formatDidKey((await serverRotationKey(pds.ctx)).publicKey),
  ])
})

test('while the directory is down, the server recommends nothing rather than the wrong keys', async () => {
  line.fate = () => 'question lost'
  expect(await identity(alice, 'getRecommendedDidCredentials')).toMatchObject({ status: 502 })
  expect(await request(`${pds.url}/v1/dids/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa`)).toMatchObject({
    status: 502,
    body: { error: { code: 'PLC_DIRECTORY_ERROR' } },
  })
})

test('an operation that the server signs carries the key of the account, and is not submitted', async () => {
  const before = await lastOf(alice.did)
  const token = await mailedCode(alice)
  const { status, body } = await identity(alice, 'signPlcOperation', {
    token,
    alsoKnownAs: ['at://alice.test', 'https://a.example'],
  })
  expect(status).toBe(200)
  expect(body.operation).toMatchObject({ prev: operationCid(before).toString(), rotationKeys: before.rotationKeys })
  expect(signerOf(body.operation, [alice.signingKey])).toBe(alice.signingKey)
  expect(await lastOf(alice.did)).toEqual(before)
  expect(await identity(alice, 'signPlcOperation', { token })).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken' },
  })
  expect((await identity(alice, 'submitPlcOperation', { operation: body.operation })).status).toBe(200)
  expect(await lastOf(alice.did)).toEqual(body.operation)
})

test('neither an outage nor a refusal costs the code', async () => {
  const rita = await born('rita')
  const token = await mailedCode(rita)
  line.fate = () => 'question lost'
  expect(await identity(rita, 'signPlcOperation', { token })).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  const { rotationKeys } = await stateIn(rita.did)
  // The wallet takes the account's key away: what counts is the current set, not the one that is asked for.
  await publish(rita, { rotationKeys: rotationKeys.slice(0, 2) })
  expect(await identity(rita, 'signPlcOperation', { token, rotationKeys })).toMatchObject({
    status: 403,
    body: { error: 'Forbidden' },
  })
  await publish(rita, { rotationKeys })
  expect(await identity(rita, 'signPlcOperation', { token, rotationKeys: 'none' })).toMatchObject({ status: 400 })
  expect(await identity(rita, 'signPlcOperation', { token, services: { atproto_pds: { type: 'x' } } })).toMatchObject({
    status: 400,
  })
  expect((await identity(rita, 'signPlcOperation', { token })).status).toBe(200)
})

test('the wallet submits its own operations, through the server or past it', async () => {
  const own = signOperation(
    nextOperation(await lastOf(alice.did), { alsoKnownAs: ['at://alice.test'] })!,
    alice.device.key,
  )
  expect((await identity(alice, 'submitPlcOperation', { operation: own })).status).toBe(200)
  const stale = signOperation(
    nextOperation((await logOf(alice.did))[0]!, { alsoKnownAs: ['at://alice.test'] })!,
    alice.device.key,
  )
  const stranger = signOperation(nextOperation(await lastOf(alice.did), {})!, alice.recovery.key)
  const forged = { ...stranger, sig: own.sig }
  expect((await identity(alice, 'submitPlcOperation', { operation: forged })).status).toBe(400)
  expect((await identity(alice, 'submitPlcOperation', { operation: { ...stale, sig: own.sig } })).status).toBe(400)
  expect(await lastOf(alice.did)).toEqual(own)
})

test('a new handle is the account’s at once, and the wallet is told to put it into the identity', async () => {
  const olga = await born('olga')
  await pds.runSteps()
  pds.mails.length = 0
  const log = await logOf(olga.did)
  expect(await updateHandle(olga, 'olga-new.test')).toMatchObject({ status: 200, body: '' })
  expect(await logOf(olga.did)).toEqual(log)
  expect((await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=olga-new.test')).body.did).toBe(olga.did)
  expect((await xrpc(pds, `com.atproto.identity.resolveIdentity?identifier=${olga.did}`)).body.handle).toBe(
    'handle.invalid',
  )
  await events.untilSeen(() => handlesHeard(olga.did).includes('olga-new.test'))
  await pds.runSteps()
  expect(
    pds.mails.map(({ subject, text }) => [
      subject.startsWith('Your handle was changed'),
      text.includes('Your wallet has to add it'),
    ]),
  ).toEqual([[true, true]])

  await publish(olga, { alsoKnownAs: ['at://olga-new.test'] })
  const refreshed = await xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier: olga.did } })
  expect(refreshed.body.handle).toBe('olga-new.test')
  await events.untilSeen(() => handlesHeard(olga.did).filter((handle) => handle === 'olga-new.test').length === 2)
})

test('a wallet that publishes the handle first has nothing left to do', async () => {
  const pia = await born('pia')
  await publish(pia, { alsoKnownAs: ['at://pia-new.test'] })
  await pds.runSteps()
  pds.mails.length = 0
  expect((await updateHandle(pia, 'pia-new.test')).status).toBe(200)
  expect((await xrpc(pds, `com.atproto.identity.resolveIdentity?identifier=${pia.did}`)).body.handle).toBe(
    'pia-new.test',
  )
  await pds.runSteps()
  expect(pds.mails.map(({ text }) => text.includes('Your wallet has to add it'))).toEqual([false])
})

test('if the account’s key ranks first, the server publishes the handle', async () => {
  const quin = await born('quin')
  const { rotationKeys } = await stateIn(quin.did)
  await publish(quin, { rotationKeys: rotationKeys.toReversed() })
  expect((await updateHandle(quin, 'quin-new.test')).status).toBe(200)
  expect((await stateIn(quin.did)).alsoKnownAs).toEqual(['at://quin-new.test'])
  expect(signerOf(await lastOf(quin.did), [quin.signingKey])).toBe(quin.signingKey)
})

test('a handle that is taken, or is elsewhere and names somebody else, is refused by name', async () => {
  expect(await updateHandle(alice, 'olga-new.test')).toMatchObject({
    status: 400,
    body: { error: 'HandleNotAvailable' },
  })
  pds.dns.setHandle('alice.example.com', 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa')
  expect((await updateHandle(alice, 'alice.example.com')).status).toBe(400)
  pds.dns.setHandle('alice.example.com', alice.did)
  expect((await updateHandle(alice, 'alice.example.com')).status).toBe(200)
  expect((await updateHandle(alice, 'alice.test')).status).toBe(200)
})

test('it leaves with a token of the server, deactivated or not, and no token changes the account', async () => {
  const sven = await born('sven')
  const move = { aud: 'did:web:elsewhere.example', lxm: 'com.atproto.server.createAccount' }
  const token = (params: Record<string, string>) =>
    sven.as.call(`com.atproto.server.getServiceAuth?${new URLSearchParams(params)}`)
  expect((await token(move)).status).toBe(200)
  expect((await sven.as.call('com.atproto.server.deactivateAccount', { json: {} })).status).toBe(200)
  expect((await token(move)).status).toBe(200)
  for (const lxm of [
    'com.atproto.identity.signPlcOperation',
    'com.atproto.identity.updateHandle',
    'com.atproto.server.createAppPassword',
  ])
    expect([lxm, (await token({ ...move, lxm })).status]).toEqual([lxm, 400])
  expect((await sven.as.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
})

test('an identity without any key of the server lives here all the same', async () => {
  const tom = await born('tom')
  const { rotationKeys } = await stateIn(tom.did)
  await publish(tom, { rotationKeys: rotationKeys.slice(0, 2) })
  expect((await updateHandle(tom, 'tom-new.test')).status).toBe(200)
  expect((await stateIn(tom.did)).alsoKnownAs).toEqual(['at://tom.test'])
  const record = { repo: tom.did as Did, collection: 'org.example.note', record: { text: 'still here' } }
  expect((await tom.as.call('com.atproto.repo.createRecord', { json: record })).status).toBe(200)
})

test('a handle that was being added when the server was killed costs the account none of its others', async () => {
  const gert = await born('gert')
  const more = bearer(gert.session)
  const add = (handle: string) =>
    request(`${pds.url}/v1/handles`, { json: { accountId: gert.did, handle }, headers: more })
  expect((await add('gert-two.test')).status).toBe(200)
  await publish(gert, { alsoKnownAs: ['at://gert-three.test'] })
  await pds.plant('name_claim', { handle: 'gert-three.test', did: gert.did, held_until: pds.clock.now() - 1 })
  expect(await pds.runSweep('name-claims')).toMatchObject({ reconciled: 1, failed: 0 })
  for (const handle of [gert.handle, 'gert-two.test', 'gert-three.test'])
    expect((await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).body.did).toBe(gert.did)
  // One that it has already is not given once more.
  await pds.plant('name_claim', { handle: 'gert-three.test', did: gert.did, held_until: pds.clock.now() - 1 })
  await pds.runSweep('name-claims')
  expect(await pds.rows('further_handle', { did: gert.did })).toHaveLength(2)
  expect(await pds.rows('name_claim', { did: gert.did })).toEqual([])
})
