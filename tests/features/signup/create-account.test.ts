import { AtpAgent } from '@atproto/api'
import { expect, spyOn, test } from 'bun:test'
import { PlcDirectoryError, type PlcDirectory } from '../../../src/platform/network/directory-client.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signerOf, stateOf } from '../../../src/protocol/plc.ts'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds } = useWorld()

let names = 0
const fresh = () => {
  const name = `user${++names}`
  return { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD }
}
const signUp = (json: object, on: Pick<TestPds, 'url'> = pds) => xrpc(on, 'com.atproto.server.createAccount', { json })

/** The directory of another server, with one thing changed. */
const withPlc = (change: (plc: PlcDirectory) => Partial<PlcDirectory>) => {
  let real: PlcDirectory | null = null
  const plc = new Proxy({} as PlcDirectory, {
    get: (_, name: keyof PlcDirectory) => (change(real!) as PlcDirectory)[name] ?? real![name],
  })
  return { plc, use: (directory: PlcDirectory) => void (real = directory) }
}

test('a real client signs up, and is logged in', async () => {
  const agent = new AtpAgent({ service: pds.url })
  const { data } = await agent.createAccount({ ...fresh(), handle: 'Alice.test' })
  expect(data.did).toStartWith('did:plc:')
  expect(data.handle).toBe('alice.test')
  expect(data.didDoc).toMatchObject({ id: data.did, alsoKnownAs: ['at://alice.test'] })
  const { data: session } = await agent.com.atproto.server.getSession()
  expect(session).toMatchObject({ did: data.did, handle: 'alice.test', active: true, emailConfirmed: false })
})

test('the identity names the handle, this server and the key of the account, and the service may change it', async () => {
  const { did, handle } = await createAccount(pds, 'plc-alice')
  const operation = await pds.ctx.plc.lastOperation(did as Did)
  const state = stateOf(operation!)!
  expect(state).toMatchObject({
    alsoKnownAs: [`at://${handle}`],
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: pds.url } },
  })
  expect(state.rotationKeys).toHaveLength(1)
  expect(signerOf(operation!, state.rotationKeys)).toBe(state.rotationKeys[0]!)
  expect(state.verificationMethods['atproto']).toStartWith('did:key:zDn')
})

test('keys for recovery stand before the key of the service', async () => {
  const recoveryKey = 'did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme'
  const { did } = await createAccount(pds, 'recoverable', { recoveryKey })
  expect(stateOf((await pds.ctx.plc.lastOperation(did as Did))!)!.rotationKeys[0]).toBe(recoveryKey)
  expect(await signUp({ ...fresh(), recoveryKey: 'did:key:zNotAKey' })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
})

test('the network hears of the identity and of the account', async () => {
  await using quiet = await startPds()
  const { did } = await createAccount(quiet, 'heard')
  const subscriber = new Subscriber(quiet.url, '?cursor=0')
  const [identity, account] = await subscriber.until(2)
  expect(identity).toMatchObject({ type: '#identity', body: { seq: 1, did, handle: 'heard.test' } })
  expect(account).toMatchObject({ type: '#account', body: { seq: 2, did, active: true } })
  subscriber.close()
})

test('what is not allowed is refused, each with its name', async () => {
  const cases: [object, string, string | RegExp][] = [
    [{ password: 'x'.repeat(257) }, 'InvalidRequest', 'Password too long. Maximum length is 256 characters.'],
    [{ password: 'seven c' }, 'InvalidPassword', 'Password too short. Minimum length is 8 characters.'],
    [{ handle: 'postmaster.test' }, 'HandleNotAvailable', 'Reserved handle'],
    [{ password: '' }, 'InvalidPassword', /./],
    [{ password: undefined }, 'InvalidPassword', /./],
    [{ email: undefined }, 'InvalidRequest', 'Email is required'],
    [{ email: 'no address' }, 'InvalidRequest', 'This email address is not supported, please use a different email.'],
    [
      { email: 'somebody@mailinator.com' },
      'InvalidRequest',
      'This email address is not supported, please use a different email.',
    ],
    [
      { email: 'a@b\r\nBcc: c@d.example' },
      'InvalidRequest',
      'This email address is not supported, please use a different email.',
    ],
    [{ handle: 'not a handle' }, 'InvalidRequest', /handle/],
    [{ handle: 'ab.test' }, 'InvalidHandle', 'Handle too short'],
    [{ handle: 'a.b.test' }, 'InvalidHandle', 'Invalid characters in handle'],
    [{ handle: 'admin.test' }, 'HandleNotAvailable', 'Reserved handle'],
    [{ handle: 'alice.example.com' }, 'UnsupportedDomain', 'Not a supported handle domain'],
    [{ handle: 'alice.local' }, 'InvalidHandle', 'Handle TLD is invalid or disallowed'],
  ]
  for (const [change, error, message] of cases) {
    const answer = await signUp({ ...fresh(), ...change })
    expect({ change, status: answer.status, ...answer.body }).toMatchObject({ change, status: 400, error })
    if (typeof message === 'string') expect(answer.body.message).toBe(message)
  }
})

test('a label may be as long as DNS lets it be', async () => {
  const handle = `${'l'.repeat(63)}.test`
  const { status, body } = await signUp({ ...fresh(), handle })
  expect([status, body.handle]).toEqual([200, handle])
  expect(await xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`)).toMatchObject({
    body: { did: body.did },
  })
  expect(await signUp({ ...fresh(), handle: `l${handle}` })).toMatchObject({ status: 400 })
})

test('handle and address belong to one account, whatever their case', async () => {
  const alice = await createAccount(pds, 'taken')
  expect(await signUp({ ...fresh(), handle: 'TAKEN.test' })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'Handle already taken: taken.test' },
  })
  expect((await signUp({ ...fresh(), email: alice.email.toUpperCase() })).status).toBe(400)
})

test('of many who want one handle at once, one gets it and the others learn so before the directory does', async () => {
  await using directory = await startPds()
  let submitted = 0
  const { plc, use } = withPlc((real) => ({
    submit(did, operation) {
      submitted++
      return real.submit(did, operation)
    },
  }))
  use(directory.ctx.plc)
  await using racing = await startPds({}, { plc })
  const wanted = Array.from({ length: 8 }, (_, i) => ({
    handle: 'racer.test',
    email: `racer${i}@example.com`,
    password: PASSWORD,
  }))
  const answers = await Promise.all(wanted.map((json) => signUp(json, racing)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
    expect({ status, error: body.error, message: body.message }).toEqual({
      status: 400,
      error: 'InvalidRequest',
      message: 'Handle already taken: racer.test',
    })
  }
  expect(submitted).toBe(1)
})

test('a disposable address is accepted if the operator allows it', async () => {
  await using open = await startPds({ accounts: { refuseThrowAwayEmail: false } })
  expect(await signUp({ ...fresh(), email: 'somebody@mailinator.com' }, open)).toMatchObject({ status: 200 })
})

test('an account without a password is possible where the operator allows it', async () => {
  await using open = await startPds({ accounts: { passwordOptional: true } })
  const alice = await createAccount(open, 'alice', { password: undefined })
  expect(
    await xrpc(open, 'com.atproto.server.createSession', { json: { identifier: alice.handle, password: '' } }),
  ).toMatchObject({
    status: 401,
  })
  expect(await signUp({ ...fresh(), password: '' }, open)).toMatchObject({
    status: 400,
    body: { error: 'InvalidPassword' },
  })
})

test('a directory that refuses leaves nothing behind', async () => {
  await using directory = await startPds()
  let refuses = true
  const { plc, use } = withPlc((real) => ({
    submit: (did, operation) =>
      refuses ? Promise.reject(new PlcDirectoryError(500, 'out of order')) : real.submit(did, operation),
  }))
  use(directory.ctx.plc)
  await using flaky = await startPds({}, { plc })
  const wanted = fresh()
  expect(await signUp(wanted, flaky)).toMatchObject({ status: 502, body: { error: 'UpstreamFailure' } })
  expect(await xrpc(flaky, `com.atproto.identity.resolveHandle?handle=${wanted.handle}`)).toMatchObject({ status: 400 })
  refuses = false
  expect(await signUp(wanted, flaky)).toMatchObject({ status: 200 })
})

test('a sign-up whose account was made, though the disk did not say so, keeps its identity', async () => {
  await using directory = await startPds()
  using _ = atOneNode(directory, 'a part of the server is replaced')
  await using unsure = await startPds({}, { plc: directory.ctx.plc })
  using _own = atOneNode(unsure, 'a part of the server is replaced')
  await createAccount(unsure, 'freda')
  const { db } = unsure.ctx
  const transaction = db.transaction.bind(db)
  const transactions = spyOn(db, 'transaction')
  // The first one reserves the names.
  transactions.mockImplementationOnce(transaction)
  transactions.mockImplementationOnce(async (work) => {
    await transaction(work)
    throw new Error('the disk does not answer')
  })
  const wanted = fresh()
  expect((await signUp(wanted, unsure)).status).toBe(500)
  const { body } = await xrpc(unsure, 'com.atproto.server.createSession', {
    json: { identifier: wanted.email, password: PASSWORD },
  })
  expect((await directory.ctx.plc.lastOperation(body.did))?.type).toBe('plc_operation')
})
