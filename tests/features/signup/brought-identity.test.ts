/** Sign-up with an identity that the wallet has signed itself: what it has to say, and what an interruption leaves. */
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { genesisDid, nextOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { PASSWORD, xrpc } from '../../support/clients/account.ts'
import { bring, reserveKey, type Bringing } from '../../support/clients/brought.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { askSession, deviceKey, sessionRequest } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

const {
  pds,
  plc: directory,
  line,
} = useWorld({
  eachTest: true,
  line: true,
  config: {
    signingKeyMasterKey: MASTER_KEY,
    accounts: { passwordOptional: true },
    rateLimit: { enabled: false },
  },
})

const signUp = (plcOp: unknown, changes: Record<string, unknown> = {}) =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle: 'alice.test', email: 'alice@example.com', plcOp, ...changes },
  })
const didOf = ({ plcOp }: Bringing): Did => genesisDid(plcOp)
const incompatible = { status: 400, body: { error: 'IncompatibleDidDoc' } }
const writes = () => line.arrived.filter(({ method }) => method === 'POST')
/** The answer to the next operation is lost, and nothing gets through after it. */
const downAfterOperation = () => {
  let isOver = false
  return ({ method }: { method: string }): Fate => {
    if (isOver) return 'question lost'
    isOver = method === 'POST'
    return isOver ? 'answer lost' : 'answered'
  }
}

test('the wallet gets its account: with the identity it signed, the key it reserved, and no password', async () => {
  const events = new Subscriber(pds.url)
  await events.opened
  const alice = await bring(pds, 'alice')
  const { status, body } = await signUp(alice.plcOp)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    did: didOf(alice),
    handle: 'alice.test',
    didDoc: { id: didOf(alice), alsoKnownAs: ['at://alice.test'] },
  })
  const { body: log } = await request(`${directory.url}/${body.did}/log`)
  expect(log).toEqual([alice.plcOp])
  const own = { headers: bearer(body.accessJwt) }
  expect((await xrpc(pds, 'com.atproto.server.getSession', own)).body).toMatchObject({
    handle: 'alice.test',
    active: true,
  })
  expect((await xrpc(pds, 'com.atproto.identity.getRecommendedDidCredentials', own)).body).toMatchObject({
    rotationKeys: [alice.signingKey],
    verificationMethods: { atproto: alice.signingKey },
  })
  expect((await xrpc(pds, 'com.atproto.server.checkAccountStatus', own)).body.validDid).toBe(true)
  expect((await events.until(4)).map(({ type }) => type).toSorted()).toEqual([
    '#account',
    '#commit',
    '#identity',
    '#sync',
  ])
  events.close()
  expect((await askSession(pds, sessionRequest(pds, { did: body.did, device: alice.device }))).status).toBe(200)
  const login = { identifier: 'alice.test', password: '' }
  expect((await xrpc(pds, 'com.atproto.server.createSession', { json: login })).status).toBe(401)
})

test('a password and a recovery key may come along', async () => {
  const recovery = deviceKey('k256').did
  const device = deviceKey()
  const key = await reserveKey(pds)
  const named = { rotationKeys: [device.did, recovery, key], verificationMethods: { atproto: key } }
  const { plcOp } = await bring(pds, 'alice', named, device)
  expect((await signUp(plcOp, { password: PASSWORD, recoveryKey: recovery })).status).toBe(200)
  expect(
    (await xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: 'alice.test', password: PASSWORD } }))
      .status,
  ).toBe(200)
})

test('without a password it depends on the operator, and an empty one is refused always', async () => {
  const { plcOp } = await bring(pds, 'alice')
  expect(await signUp(plcOp, { password: '' })).toMatchObject({ status: 400, body: { error: 'InvalidPassword' } })
  await pds.restart({ accounts: { passwordOptional: false } })
  expect(await signUp(plcOp)).toMatchObject({ status: 400, body: { error: 'InvalidPassword' } })
  expect(await signUp(plcOp, { password: '' })).toMatchObject({ status: 400, body: { error: 'InvalidPassword' } })
  expect(writes()).toHaveLength(0)
  expect((await signUp(plcOp, { password: PASSWORD })).status).toBe(200)
})

test('an operation that does not fit is refused before the directory hears of anything', async () => {
  const device = deviceKey()
  const stranger = deviceKey()
  const { plcOp, signingKey: reserved } = await bring(pds, 'alice', {}, device)
  const signed = (changes: Partial<Operation>, by = device) => {
    const { sig: _, ...unsigned } = { ...plcOp, ...changes }
    return signOperation(unsigned, by.key)
  }
  const service = plcOp.services['atproto_pds']!
  const misfits: [string, unknown][] = [
    ['no object', 'text'],
    ['empty', {}],
    ['signed by another key', signed({}, stranger)],
    ['signed by its second key', signed({ rotationKeys: [stranger.did, device.did] })],
    ['changed after it was signed', { ...plcOp, alsoKnownAs: ['at://alice.test', 'at://bob.test'] }],
    ['an unknown member', { ...plcOp, extra: 1 }],
    ['not the first', signed({ prev: 'bafyreigp6shzy6dlcxuowwoxz7u5nemdrkad2my5zwzpwilcnhih7bw6zm' })],
    ['another handle', signed({ alsoKnownAs: ['at://bob.test', 'at://alice.test'] })],
    ['no handle', signed({ alsoKnownAs: [] })],
    ['another server', signed({ services: { atproto_pds: { ...service, endpoint: 'https://elsewhere.example' } } })],
    ['this server with a slash', signed({ services: { atproto_pds: { ...service, endpoint: `${pds.url}/` } } })],
    ['another service', signed({ services: { atproto_pds: { ...service, type: 'Other' } } })],
    ['no service', signed({ services: {} })],
    ['a key that was not reserved', signed({ verificationMethods: { atproto: stranger.did } })],
    ['no signing key', signed({ verificationMethods: {} })],
    [
      'a key that is reserved for somebody else',
      signed({ verificationMethods: { atproto: await reserveKey(pds, 'did:web:x.example') } }),
    ],
    ['six rotation keys', signed({ rotationKeys: [device.did, ...Array.from({ length: 5 }, () => deviceKey().did)] })],
    ['a rotation key twice', signed({ rotationKeys: [device.did, device.did] })],
    ['no rotation key', signed({ rotationKeys: [] })],
  ]
  for (const [name, operation] of misfits)
    expect([name, await signUp(operation)]).toMatchObject([
      name,
      typeof operation === 'string' ? { status: 400 } : incompatible,
    ])
  const recoveryKey = formatDidKey(signingKey('k256', randomBytes(32)).publicKey)
  expect(await signUp(plcOp, { recoveryKey })).toMatchObject(incompatible)
  expect(await signUp(plcOp, { handle: 'bob.test' })).toMatchObject(incompatible)
  expect(await signUp(plcOp, { did: didOf({ plcOp, device, signingKey: reserved }) })).toMatchObject({ status: 400 })
  expect(writes()).toHaveLength(0)
  expect((await signUp(plcOp)).status).toBe(200)
})

test('without a configured master key nothing of this is offered', async () => {
  const { plcOp } = await bring(pds, 'alice')
  await using plain = await startPds({ accounts: { passwordOptional: true } }, { alone: 'it has no master key' })
  for (const asked of [plcOp, {}])
    expect(
      await xrpc(plain, 'com.atproto.server.createAccount', {
        json: { handle: 'alice.test', email: 'a@example.com', plcOp: asked },
      }),
    ).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
  for (const init of [{ json: {} }, { json: { did: 'nonsense' } }, { method: 'POST', body: '{' }])
    expect(await xrpc(plain, 'com.atproto.server.reserveSigningKey', init)).toMatchObject({
      status: 503,
      body: { error: 'ServiceUnavailable' },
    })
})

test('a lost answer of the directory is looked up, also after the wallet has gone on', async () => {
  const alice = await bring(pds, 'alice')
  line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'answered')
  expect((await signUp(alice.plcOp)).status).toBe(200)

  const bob = await bring(pds, 'bob')
  const asBob = { handle: 'bob.test', email: 'bob@example.com' }
  line.fate = downAfterOperation()
  expect((await signUp(bob.plcOp, asBob)).status).toBe(502)
  line.fate = () => 'answered'
  const next = signOperation(
    nextOperation(bob.plcOp, { alsoKnownAs: ['at://bob.test', 'https://bob.example'] })!,
    bob.device.key,
  )
  expect((await request(`${directory.url}/${didOf(bob)}`, { json: next })).status).toBe(200)
  expect(await signUp(bob.plcOp, asBob)).toMatchObject({ status: 200, body: { did: didOf(bob) } })
})

test('after an interruption the same person goes on, and nobody else does', async () => {
  const alice = await bring(pds, 'alice')
  line.fate = downAfterOperation()
  expect((await signUp(alice.plcOp)).status).toBe(502)
  line.fate = () => 'answered'
  await pds.restart()
  pds.clock.advance({ secs: 120 })
  // Whoever read the operation in the directory.
  expect(await signUp(alice.plcOp, { email: 'mallory@example.com', password: PASSWORD })).toMatchObject(incompatible)
  expect(await signUp(alice.plcOp)).toMatchObject({ status: 200, body: { did: didOf(alice) } })
  expect(await signUp(alice.plcOp)).toMatchObject({ status: 409, body: { error: 'DidAlreadyExists' } })
})

test('a sign-up without the operation does not go on with the identity of a wallet that lists the key of the server', async () => {
  const other = await xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle: 'otto.test', email: 'other@example.com', password: PASSWORD },
  })
  const { rotationKeys } = (await request(`${directory.url}/${other.body.did}/data`)).body
  const device = deviceKey()
  const alice = await bring(pds, 'alice', { rotationKeys: [device.did, ...rotationKeys] }, device)
  line.fate = downAfterOperation()
  expect((await signUp(alice.plcOp)).status).toBe(502)
  line.fate = () => 'answered'
  const mallory = { email: 'mallory@example.com', password: PASSWORD, recoveryKey: device.did }
  expect((await signUp(undefined, mallory)).body.did).not.toBe(didOf(alice))
})

test('the identity that an interrupted wallet left is not ended by the server, whoever gets the handle', async () => {
  const alice = await bring(pds, 'alice')
  line.fate = downAfterOperation()
  expect((await signUp(alice.plcOp)).status).toBe(502)
  line.fate = () => 'answered'
  pds.clock.advance({ secs: 7200 })
  await pds.runSweep('name-claims')
  const { body } = await xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle: 'alice.test', email: 'other@example.com', password: PASSWORD },
  })
  expect(body.did).not.toBe(didOf(alice))
  expect((await request(`${directory.url}/${didOf(alice)}/log/last`)).body).toEqual(alice.plcOp)
})

test('one key serves one identity, and one identity one account, whoever is first', async () => {
  const device = deviceKey()
  const { plcOp, signingKey: reserved } = await bring(pds, 'alice', {}, device)
  const twin = signOperation({ ...withoutSig(plcOp), alsoKnownAs: ['at://alicia.test'] }, device.key)
  const outcomes = await Promise.all([
    signUp(plcOp),
    signUp(twin, { handle: 'alicia.test', email: 'alicia@example.com' }),
  ])
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual([200, 400])
  expect(writes()).toHaveLength(1)
  const winner = outcomes.find(({ status }) => status === 200)!.body.did
  expect([genesisDid(plcOp), genesisDid(twin)]).toContain(winner)
  expect(reserved).toStartWith('did:key:')

  const bob = await bring(pds, 'bob')
  const asBob = { handle: 'bob.test', email: 'bob@example.com' }
  const twice = await Promise.all([signUp(bob.plcOp, asBob), signUp(bob.plcOp, asBob)])
  expect(twice.filter(({ status }) => status === 200)).toHaveLength(1)
  // With an account, its identity makes no second one.
  expect(await signUp(bob.plcOp, { ...asBob, handle: 'bobby.test', email: 'bobby@example.com' })).toMatchObject({
    status: 400,
  })
})

test('an identity that has an account is a conflict, and a taken handle or address is not', async () => {
  const alice = await bring(pds, 'alice')
  const { body } = await signUp(alice.plcOp)
  // The handle is free again, and the operation still names it.
  await xrpc(pds, 'com.atproto.identity.updateHandle', {
    json: { handle: 'alice-moved.test' },
    headers: bearer(body.accessJwt),
  })
  expect(await signUp(alice.plcOp, { email: 'again@example.com' })).toMatchObject({
    status: 409,
    body: { error: 'DidAlreadyExists' },
  })
  const other = await bring(pds, 'alice-moved')
  expect(await signUp(other.plcOp, { handle: 'alice-moved.test', email: 'b@example.com' })).toMatchObject({
    status: 400,
  })
  const another = await bring(pds, 'bob')
  expect(await signUp(another.plcOp, { handle: 'bob.test' })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
})

test('a directory that refuses leaves the handle and the address to the next', async () => {
  const alice = await bring(pds, 'alice')
  line.fate = () => 'question lost'
  expect(await signUp(alice.plcOp)).toMatchObject({ status: 502 })
  line.fate = () => 'answered'
  const again = await bring(pds, 'alice')
  expect(await signUp(again.plcOp)).toMatchObject({ status: 200, body: { did: didOf(again) } })
})

function withoutSig(operation: Operation) {
  const { sig: _, ...unsigned } = operation
  return unsigned
}
