import { beforeAll, expect, spyOn, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { sequenceEvents } from '../../../src/features/data/firehose/firehose.ts'
import { serverRotationKey } from '../../../src/features/identity/identity/identity.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, operationCid, signOperation, tombstone, type PlcState } from '../../../src/protocol/plc.ts'
import { allSeen } from '../../support/clients/events.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { seedAccount, type SeededAccount } from '../../support/clients/seed-account.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { setUp } from '../../support/set-up.ts'

let alice: SeededAccount
let serverKey: string

const owner = signingKey('k256', randomBytes(32))
const ownerKey = formatDidKey(owner.publicKey)

const { pds } = useWorld({ config: { recoveryDidKey: ownerKey } })
beforeAll(async () => {
  serverKey = formatDidKey((await serverRotationKey(pds.ctx)).publicKey)
  alice = await seedAccount(pds, 'alice', { rotationKeys: [ownerKey] })
  // Codes to an address that is not confirmed are limited.
  await pds.damage('account', { did: alice.did }, { email_confirmed_at: 1 })
})
const events = setUp(() => Subscriber.open(pds.url))

const call = async (
  account: SeededAccount,
  method: string,
  json?: object,
  kind: Parameters<SeededAccount['as']>[0] = 'full',
) =>
  request(`${pds.url}/xrpc/com.atproto.identity.${method}`, {
    method: method.startsWith('get') ? 'GET' : 'POST',
    json,
    headers: await account.as(kind),
  })

const submit = (account: SeededAccount, operation: unknown, kind?: Parameters<SeededAccount['as']>[0]) =>
  call(account, 'submitPlcOperation', { operation: operation as object }, kind)

/** The operation that the owner of the account signs next. */
async function ownOperation(changes: Partial<PlcState> = {}) {
  return signOperation(nextOperation((await pds.ctx.plc.lastOperation(alice.did))!, changes)!, owner)
}

test('the service says what an identity needs to live here', async () => {
  expect(await call(alice, 'getRecommendedDidCredentials', undefined, 'app')).toMatchObject({
    status: 200,
    body: {
      rotationKeys: [ownerKey, serverKey],
      alsoKnownAs: ['at://alice.test'],
      verificationMethods: { atproto: alice.signingKey },
      services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: pds.url } },
    },
  })
  expect((await request(`${pds.url}/xrpc/com.atproto.identity.getRecommendedDidCredentials`)).status).toBe(401)
})

test('an operation that fits is passed to the directory and told to the network, without a handle', async () => {
  const operation = await ownOperation({ alsoKnownAs: ['at://alice.test', 'https://alice.example'] })
  expect(await submit(alice, operation)).toMatchObject({ status: 200, body: '' })
  expect(await pds.ctx.plc.lastOperation(alice.did)).toEqual(operation)
  const [event] = await events.until(1)
  expect(event).toMatchObject({ type: '#identity', body: { did: alice.did } })
  expect(event!.body).not.toHaveProperty('handle')
  const { body } = await request(`${pds.url}/xrpc/com.atproto.identity.resolveDid?did=${alice.did}`)
  expect(body.didDoc.alsoKnownAs).toEqual(['at://alice.test', 'https://alice.example'])
})

const misfits: [string, (state: PlcState) => Partial<PlcState>][] = [
  ["Rotation keys do not include server's rotation key", () => ({ rotationKeys: [ownerKey] })],
  [
    'Incorrect type on atproto_pds service',
    ({ services }) => ({ services: { atproto_pds: { ...services['atproto_pds']!, type: 'Other' } } }),
  ],
  ['Incorrect type on atproto_pds service', () => ({ services: {} })],
  [
    'Incorrect endpoint on atproto_pds service',
    ({ services }) => ({ services: { atproto_pds: { ...services['atproto_pds']!, endpoint: `${pds.url}/` } } }),
  ],
  ['Incorrect signing key', () => ({ verificationMethods: { atproto: ownerKey } })],
  ['Incorrect handle in alsoKnownAs', () => ({ alsoKnownAs: ['at://bob.test', 'at://alice.test'] })],
  ['Incorrect handle in alsoKnownAs', () => ({ alsoKnownAs: [] })],
]
for (const [message, changes] of misfits) {
  test(`an operation is not passed on: ${message}`, async () => {
    const before = await pds.ctx.plc.lastOperation(alice.did)
    const operation = await ownOperation(changes((await pds.ctx.plc.state(alice.did))!))
    expect(await submit(alice, operation)).toMatchObject({ status: 400, body: { error: 'InvalidRequest', message } })
    expect(await pds.ctx.plc.lastOperation(alice.did)).toEqual(before)
  })
}

test('what is no operation is refused', async () => {
  const good = await ownOperation()
  const ending = signOperation(tombstone((await pds.ctx.plc.lastOperation(alice.did))!), owner)
  for (const operation of [
    {},
    { ...good, extra: 1 },
    { ...good, sig: undefined },
    ending,
    { ...good, type: 'create' },
  ]) {
    expect(await submit(alice, operation)).toMatchObject({ status: 400, body: { message: 'Invalid operation' } })
  }
})

test('what the directory refuses is told as the caller’s mistake, and its outage as an outage', async () => {
  const stale = await ownOperation()
  expect(await submit(alice, stale)).toMatchObject({ status: 200 })
  // What the directory has already is no mistake: the answer may have been lost.
  expect(await submit(alice, stale)).toMatchObject({ status: 200 })
  expect(await submit(alice, await ownOperation())).toMatchObject({ status: 200 })
  expect(await submit(alice, stale)).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  expect(await submit(alice, { ...(await ownOperation()), sig: stale.sig })).toMatchObject({
    status: 400,
    body: { message: 'Invalid signature on op' },
  })
  await using elsewhere = await startPds({ plcDirectoryUrl: 'http://127.0.0.1:1' }, { plc: undefined })
  const bob = await seedAccount(elsewhere, 'bob', { did: alice.did })
  const answer = await request(`${elsewhere.url}/xrpc/com.atproto.identity.updateHandle`, {
    json: { handle: 'robert.test' },
    headers: await bob.as('full'),
  })
  expect(answer).toMatchObject({
    status: 502,
    body: { error: 'UpstreamFailure', message: 'PLC directory unreachable' },
  })
})

test('a DID of another method has no operations', async () => {
  const carol = await seedAccount(pds, 'carol', { did: 'did:web:carol.example' })
  expect(await submit(carol, await ownOperation())).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
})

test('anybody may ask for a refresh, and the network hears of it when the document has changed', async () => {
  const refresh = () =>
    request(`${pds.url}/xrpc/com.atproto.identity.refreshIdentity`, { json: { identifier: alice.did } })
  await refresh()
  await allSeen(pds, events)
  const heard = events.messages.length
  await refresh()
  // Past us, straight to the directory, as a wallet does.
  await pds.ctx.plc.submit(
    alice.did,
    await ownOperation({ alsoKnownAs: ['at://alice.test', 'https://elsewhere.example'] }),
  )
  expect(await refresh()).toMatchObject({
    status: 200,
    body: { handle: 'alice.test', didDoc: { alsoKnownAs: ['at://alice.test', 'https://elsewhere.example'] } },
  })
  await refresh()
  await pds.ctx.plc.submit(alice.did, await ownOperation({ alsoKnownAs: ['at://stolen.test'] }))
  expect(await refresh()).toMatchObject({ status: 200, body: { handle: 'handle.invalid' } })
  const told = (await events.until(heard + 2)).slice(heard).map(({ type, body }) => [type, body['did'], body['handle']])
  expect(told).toEqual([
    ['#identity', alice.did, 'alice.test'],
    ['#identity', alice.did, undefined],
  ])
})

/** The code in the mail that was sent last. */
const codeMail = () => pds.mails.findLast(({ text }) => /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.test(text))!
const mailedCode = () => /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.exec(codeMail().text)![0]
const requestCode = async () => {
  pds.clock.advance({ secs: 3601 }) // past the limit on mails
  expect(await call(alice, 'requestPlcOperationSignature', undefined, 'full')).toMatchObject({ status: 200, body: '' })
  return mailedCode()
}
const sign = (input: object, kind?: Parameters<SeededAccount['as']>[0]) => call(alice, 'signPlcOperation', input, kind)

test('a code from the mail signs one operation, which keeps what it does not change and is not submitted', async () => {
  const before = (await pds.ctx.plc.lastOperation(alice.did))!
  const token = await requestCode()
  expect(codeMail()).toMatchObject({
    to: 'alice@mail.test',
    subject: expect.stringContaining('Identity change requested'),
  })
  const { status, body } = await sign({ token: token.toLowerCase(), alsoKnownAs: ['at://alice.test'] })
  expect(status).toBe(200)
  const { sig, prev, ...rest } = body.operation
  const { sig: _, prev: __, ...last } = before as typeof body.operation
  expect(rest).toEqual({ ...last, alsoKnownAs: ['at://alice.test'] })
  expect([typeof sig, prev]).toEqual(['string', operationCid(before).toString()])
  expect(await pds.ctx.plc.lastOperation(alice.did)).toEqual(before)
  expect(await submit(alice, body.operation)).toMatchObject({ status: 200 })
  expect(await sign({ token })).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken', message: 'Token is invalid' },
  })
})

test('entries for permissioned data outlive a signed operation and a new handle', async () => {
  const space = formatDidKey(signingKey('k256', randomBytes(32)).publicKey)
  const host = { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' }
  const last = (await pds.ctx.plc.lastOperation(alice.did)) as unknown as PlcState
  await submit(
    alice,
    await ownOperation({
      verificationMethods: { ...last.verificationMethods, atproto_space: space },
      services: { ...last.services, atproto_space_host: host },
    }),
  )
  const entries = async () => {
    const { verificationMethods, services } = (await pds.ctx.plc.state(alice.did))!
    return [verificationMethods['atproto_space'], services['atproto_space_host']]
  }
  // As a client does that moves an account: with what the new server recommends, and nothing else.
  const { verificationMethods, services } = last
  const { body } = await sign({
    token: await requestCode(),
    verificationMethods: { atproto: verificationMethods['atproto'] },
    services: { atproto_pds: services['atproto_pds'] },
  })
  expect(await submit(alice, body.operation)).toMatchObject({ status: 200 })
  expect(await entries()).toEqual([space, host])
  expect(await call(alice, 'updateHandle', { handle: 'alice-spaces.test' })).toMatchObject({ status: 200 })
  expect(await entries()).toEqual([space, host])
  // A server that an account leaves may sign just what it is told that the identity needs.
  expect(await call(alice, 'getRecommendedDidCredentials')).toMatchObject({
    body: {
      verificationMethods: { atproto: alice.signingKey, atproto_space: space },
      services: { atproto_pds: { endpoint: pds.url }, atproto_space_host: host },
    },
  })
  for (const [name, change] of [
    ['atproto_space', { verificationMethods: { atproto: alice.signingKey } }],
    ['atproto_space_host', { services: { atproto_pds: services['atproto_pds']! } }],
  ] as const) {
    const { sig: _, ...whole } = await ownOperation()
    expect(await submit(alice, signOperation({ ...whole, ...change }, owner))).toMatchObject({
      status: 400,
      body: { error: 'InvalidRequest', message: `The operation lacks ${name}, which the identity names` },
    })
  }
  expect(await entries()).toEqual([space, host])
  // Who names them says what they are to be.
  const elsewhere = { ...host, endpoint: 'https://elsewhere.example.com' }
  const moved = await sign({ token: await requestCode(), services: { ...services, atproto_space_host: elsewhere } })
  expect(await submit(alice, moved.body.operation)).toMatchObject({ status: 200 })
  expect(await entries()).toEqual([space, elsewhere])
  expect(await call(alice, 'updateHandle', { handle: 'alice.test' })).toMatchObject({ status: 200 })
})

test('only the last code counts, for fifteen minutes, and for its own account', async () => {
  const first = await requestCode()
  await call(alice, 'requestPlcOperationSignature')
  const second = mailedCode()
  for (const token of [first, 'AAAAA-AAAAA', 'x', ' '])
    expect(await sign({ token })).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
  const mallory = await seedAccount(pds, 'mallory')
  expect(await call(mallory, 'signPlcOperation', { token: second })).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken' },
  })
  pds.clock.advance({ secs: 15 * 60 + 1 })
  expect(await sign({ token: second })).toMatchObject({
    status: 400,
    body: { error: 'ExpiredToken', message: 'Token is expired' },
  })
  expect(await sign({})).toMatchObject({
    status: 400,
    body: { message: 'email confirmation token required to sign PLC operations' },
  })
})

test('a code that was guessed at too often is dead', async () => {
  const token = await requestCode()
  for (const letter of 'ABCDEF') expect((await sign({ token: `AAAAA-AAAA${letter}` })).status).toBe(400)
  expect(await sign({ token })).toMatchObject({ status: 400, body: { error: 'InvalidToken' } })
})

test('a refused or failed signature does not use up the code', async () => {
  const token = await requestCode()
  for (const wrong of [{ services: { atproto_pds: 'x' } }, { verificationMethods: { atproto: 1 } }, { services: [] }]) {
    expect(await sign({ token, ...wrong })).toMatchObject({ status: 400, body: { error: 'InvalidRequest' } })
  }
  expect(await sign({ token, prev: null, sig: 'x', type: 'plc_tombstone' })).toMatchObject({
    status: 200,
    body: { operation: { type: 'plc_operation', prev: expect.stringContaining('bafy') } },
  })
})

test('two signatures at once do not share a code', async () => {
  const token = await requestCode()
  const outcomes = await Promise.all([sign({ token }), sign({ token }), sign({ token })])
  expect(outcomes.map(({ status }) => status).sort()).toEqual([200, 400, 400])
})

test('app passwords ask for no signature, and a taken-down account still leaves', async () => {
  for (const kind of ['app', 'privileged'] as const)
    expect(await sign({ token: 'x' }, kind)).toMatchObject({
      status: 400,
      body: { error: 'InvalidToken', message: 'Bad token scope' },
    })
  expect(await call(alice, 'requestPlcOperationSignature', undefined, 'takendown')).toMatchObject({ status: 200 })
  expect(await sign({ token: mailedCode() }, 'takendown')).toMatchObject({ status: 200 })
})

test('who has no address gets no code', async () => {
  const silent = await seedAccount(pds, 'silent', { email: null })
  expect(await call(silent, 'requestPlcOperationSignature', undefined)).toMatchObject({
    status: 400,
    body: { message: 'account does not have an email address' },
  })
  const carol = await seedAccount(pds, 'carol.other', { did: 'did:web:other.example' })
  expect(await call(carol, 'requestPlcOperationSignature')).toMatchObject({
    status: 400,
    body: { message: 'Not a did:plc' },
  })
})

test('where the service holds no rotation key it signs nothing', async () => {
  const dave = await seedAccount(pds, 'dave', { owner })
  await call(dave, 'requestPlcOperationSignature')
  expect(await call(dave, 'signPlcOperation', { token: mailedCode() })).toMatchObject({
    status: 403,
    body: { error: 'Forbidden' },
  })
})

test('an account that is deleted while the directory takes its operation is not spoken of again', async () => {
  using _ = atOneNode(pds, 'the directory of that node is replaced')
  const leaving = await seedAccount(pds, 'leaving')
  const { plc } = pds.ctx
  const last = (await plc.lastOperation(leaving.did))!
  const operation = signOperation(nextOperation(last, {})!, await serverRotationKey(pds.ctx))
  using told = spyOn(plc, 'submit')
  told.mockImplementationOnce((did, given) => deleteAccount(pds, did).then(() => plc.submit(did, given)))
  await allSeen(pds, events)
  const seen = events.messages.length
  expect(await submit(leaving, operation)).toMatchObject({ status: 403, body: { error: 'AccountNotFound' } })
  await pds.ctx.db.transaction((tx) => sequenceEvents(pds.ctx, tx, [{ type: 'identity', did: alice.did }]))
  const spoken = (await events.until(seen + 2)).slice(seen).map(({ type, body }) => [type, body['did']])
  expect(spoken).toEqual([
    ['#account', leaving.did],
    ['#identity', alice.did],
  ])
})
