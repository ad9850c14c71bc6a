import { expect, spyOn, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { changeHandle } from '../../../src/features/identity/handles/handle-change.ts'
import { parseDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { request } from '../../support/clients/http.ts'
import { MASTER_KEY } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { seedAccount, type SeededAccount } from '../../support/clients/seed-account.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds, dns, web } = useWorld({
  web: [],
  config: {
    availableUserDomains: ['pds.test'],
    signingKeyMasterKey: MASTER_KEY,
    reservedHandles: ['admin'],
    blockedHandleWords: ['badword'],
    rateLimit: { updateHandlePer5min: 0 },
  },
})
const alice = setUp(() => seedAccount(pds, 'alice.pds'))
const bob = setUp(() => seedAccount(pds, 'bob.pds'))
const events = setUp(() => Subscriber.open(pds.url))

const updateHandle = async (
  account: SeededAccount,
  handle: string,
  kind: Parameters<SeededAccount['as']>[0] = 'full',
) => request(`${pds.url}/xrpc/com.atproto.identity.updateHandle`, { json: { handle }, headers: await account.as(kind) })

const handleInDirectory = async (account: SeededAccount) => (await pds.ctx.plc.state(account.did))!.alsoKnownAs
const identityEvents = (account: SeededAccount) =>
  events.messages
    .filter(({ type, body }) => type === '#identity' && body['did'] === account.did)
    .map(({ body }) => body['handle'])
const resolves = async (handle: string) =>
  (await request(`${pds.url}/xrpc/com.atproto.identity.resolveHandle?handle=${handle}`)).body.did

test('a new handle is told to the directory, to the network and to whoever asks', async () => {
  expect(await updateHandle(alice, 'Alicia.PDS.test')).toMatchObject({ status: 200, body: '' })
  expect(await handleInDirectory(alice)).toEqual(['at://alicia.pds.test'])
  await events.until(1)
  expect(identityEvents(alice)).toEqual(['alicia.pds.test'])
  expect([await resolves('alicia.pds.test'), await resolves('alice.pds.test')]).toEqual([alice.did, undefined])
  const { body } = await request(`${pds.url}/xrpc/com.atproto.identity.resolveIdentity?identifier=${alice.did}`)
  expect(body).toMatchObject({ handle: 'alicia.pds.test' })
})

test('the same handle again changes nothing in the directory and tells the network', async () => {
  await updateHandle(alice, 'alice.pds.test')
  const log = (await pds.ctx.plc.auditLog(alice.did))!.length
  expect((await updateHandle(alice, 'alice.pds.test')).status).toBe(200)
  expect((await pds.ctx.plc.auditLog(alice.did))!.length).toBe(log)
  await events.until(3)
  expect(identityEvents(alice)).toEqual(['alicia.pds.test', 'alice.pds.test', 'alice.pds.test'])
})

const refused: [string, string, string][] = [
  ['bob.pds.test', 'HandleNotAvailable', 'Handle already taken: bob.pds.test'],
  ['BOB.pds.test', 'HandleNotAvailable', 'Handle already taken: bob.pds.test'],
  ['admin.pds.test', 'HandleNotAvailable', 'Reserved handle'],
  ['b4d-word.pds.test', 'InvalidHandle', 'Inappropriate language in handle'],
  ['al.pds.test', 'InvalidHandle', 'Handle too short'],
  ['a.b.pds.test', 'InvalidHandle', 'Invalid characters in handle'],
  ['alice.local', 'InvalidHandle', 'Handle TLD is invalid or disallowed'],
  ['alice', 'InvalidRequest', 'Invalid handle (got "alice") at $.handle'],
  ['alice.elsewhere.test', 'InvalidRequest', 'External handle did not resolve to DID'],
]
for (const [handle, error, message] of refused) {
  test(`${handle} is refused: ${message}`, async () => {
    expect(await updateHandle(alice, handle)).toMatchObject({ status: 400, body: { error, message } })
    expect(events.messages).toHaveLength(3)
    expect(await handleInDirectory(alice)).toEqual(['at://alice.pds.test'])
  })
}

test('a handle elsewhere is taken once it points at the account, and not when it points at another', async () => {
  dns.setHandle('alice.example.com', bob.did)
  expect(await updateHandle(alice, 'alice.example.com')).toMatchObject({ status: 400 })
  dns.setHandle('alice.example.com', alice.did)
  expect(await updateHandle(alice, 'alice.example.com')).toMatchObject({ status: 200 })
  expect(await updateHandle(alice, 'alice.pds.test')).toMatchObject({ status: 200 })
})

test('only a session of the account itself changes its handle', async () => {
  for (const kind of ['app', 'privileged', 'takendown'] as const) {
    expect(await updateHandle(alice, 'other.pds.test', kind)).toMatchObject({
      status: 400,
      body: { error: 'InvalidToken' },
    })
  }
  expect(
    await request(`${pds.url}/xrpc/com.atproto.identity.updateHandle`, { json: { handle: 'other.pds.test' } }),
  ).toMatchObject({
    status: 401,
  })
})

test('two accounts that want one handle at once do not both get it', async () => {
  const outcomes = await Promise.all([updateHandle(alice, 'wanted.pds.test'), updateHandle(bob, 'wanted.pds.test')])
  expect(outcomes.map(({ status }) => status).sort()).toEqual([200, 400])
  await updateHandle(alice, 'alice.pds.test')
  await updateHandle(bob, 'bob.pds.test')
})

test('where the service holds no rotation key, the owner publishes the handle', async () => {
  const owner = signingKey('k256', randomBytes(32))
  const carol = await seedAccount(pds, 'carol.pds', { owner })
  expect(await updateHandle(carol, 'caroline.pds.test')).toMatchObject({ status: 200 })
  expect(await handleInDirectory(carol)).toEqual(['at://carol.pds.test'])
  expect(await resolves('caroline.pds.test')).toBe(carol.did)
})

test('an account that brought a did:web shows the handle there first', async () => {
  const did = 'did:web:dave.web.test'
  dns.setAddresses('dave.web.test', '127.0.0.1')
  const dave = await seedAccount(pds, 'dave.pds', { did })
  web.publishDidDocument('dave.web.test', { id: did, alsoKnownAs: ['at://dave.pds.test'] })
  expect(await updateHandle(dave, 'david.pds.test')).toMatchObject({
    status: 400,
    body: { message: 'DID is not properly configured for handle' },
  })
  web.publishDidDocument('dave.web.test', { id: did, alsoKnownAs: ['at://david.pds.test'] })
  expect(await updateHandle(dave, 'david.pds.test')).toMatchObject({ status: 200 })
})

test('an operator may give away a reserved name', async () => {
  await changeHandle(pds, bob.did, 'admin.pds.test', { allowReserved: true })
  expect(await resolves('admin.pds.test')).toBe(bob.did)
  await changeHandle(pds, bob.did, 'bob.pds.test')
})

test('a directory that is down leaves the account as it was', async () => {
  const broken = { ...pds.ctx, plc: { ...pds.ctx.plc, lastOperation: () => Promise.reject(new Error('down')) } }
  expect(await thrownBy(changeHandle({ ctx: broken }, alice.did, 'unlucky.pds.test'))).toThrow('down')
  expect(await resolves('unlucky.pds.test')).toBeUndefined()
})

test('availability is answered for anything that is asked', async () => {
  const available = async (handle: string) => {
    const { status, body } = await request(
      `${pds.url}/xrpc/com.atproto.temp.checkHandleAvailability?${new URLSearchParams({ handle })}`,
    )
    return [status, body.handle, body.result.$type.split('#')[1], body.result.suggestions]
  }
  expect(await available('free.pds.test')).toEqual([200, 'free.pds.test', 'resultAvailable', undefined])
  await pds.plant('name_claim', {
    handle: 'coming.pds.test',
    did: 'did:plc:x',
    attempt: 'one',
    held_until: pds.clock.now() + 1000,
  })
  for (const handle of [
    'alice.pds.test',
    'ALICE.pds.test',
    'coming.pds.test',
    'admin.pds.test',
    'a.b.pds.test',
    'free.example.com',
    'no handle',
  ]) {
    expect(await available(handle)).toEqual([200, handle, 'resultUnavailable', []])
  }
})

const asHost = (host: string, path: string) => request(pds.url + path, { headers: { host } })

test('a handle host proves its handle and serves nothing else', async () => {
  for (const host of ['alice.pds.test', 'ALICE.pds.test', 'alice.pds.test:8443']) {
    const { status, body, headers } = await asHost(host, '/.well-known/atproto-did')
    expect([status, body, headers.get('content-type')]).toEqual([200, alice.did, 'text/plain'])
  }
  for (const host of ['nobody.pds.test', 'pds.test', 'localhost', '127.0.0.1'])
    expect((await asHost(host, '/.well-known/atproto-did')).status).toBe(404)
  for (const path of [
    '/',
    '/xrpc/_health',
    `/xrpc/com.atproto.identity.resolveHandle?handle=alice.pds.test`,
    '/tls-check?domain=alice.pds.test',
    '/oauth/authorize',
  ]) {
    expect((await asHost('alice.pds.test', path)).status).toBe(404)
  }
})

test('the host that a proxy was asked for counts', async () => {
  const { body } = await request(`${pds.url}/.well-known/atproto-did`, {
    headers: { 'x-forwarded-host': 'alice.pds.test, inner' },
  })
  expect(body).toBe(alice.did)
})

test('the service has a DID document, on its own host alone', async () => {
  const { status, body, headers } = await request(`${pds.url}/.well-known/did.json`)
  expect([status, headers.get('content-type'), headers.get('access-control-allow-origin')]).toEqual([
    200,
    'application/did+json',
    '*',
  ])
  expect(body).toEqual({
    '@context': ['https://www.w3.org/ns/did/v1'],
    id: pds.ctx.config.serverDid,
    service: [{ id: '#atproto_pds', type: 'AtprotoPersonalDataServer', serviceEndpoint: pds.url }],
  })
  const head = await request(`${pds.url}/.well-known/did.json`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type'), head.body]).toEqual([200, 'application/did+json', ''])
  for (const host of ['alice.pds.test', 'elsewhere.test'])
    expect(await asHost(host, '/.well-known/did.json')).toMatchObject({ status: 404, body: '' })
})

const tlsChecks: [string, number, string?][] = [
  ['?domain=alice.pds.test', 200],
  ['?domain=localhost', 200],
  ['?domain=nobody.pds.test', 404, 'handle not found for this domain'],
  ['?domain=elsewhere.com', 400, 'handles are not provided on this domain'],
  ['?domain=pds.test', 400, 'handles are not provided on this domain'],
  ['?domain=', 400, 'bad or missing domain query param'],
  ['', 400, 'bad or missing domain query param'],
]
for (const [query, status, message] of tlsChecks) {
  test(`a certificate question${query} is answered with ${status}`, async () => {
    expect(await request(`${pds.url}/tls-check${query}`)).toMatchObject({
      status,
      body: message ? { message } : { success: true },
    })
  })
}

test('no certificate is ordered for an account that is not active', async () => {
  await pds.damage('account', { did: bob.did }, { deactivated_at: 1 })
  expect((await request(`${pds.url}/tls-check?domain=bob.pds.test`)).status).toBe(404)
  await pds.damage('account', { did: bob.did }, { deactivated_at: null })
})

test('a key is promised to a DID once, and to nobody in particular every time', async () => {
  const reserve = (input: object) => request(`${pds.url}/xrpc/com.atproto.server.reserveSigningKey`, { json: input })
  const did = 'did:plc:ewvi7nxzyoun6zhxrhs64oiz'
  const keys = [await reserve({ did }), await reserve({ did }), await reserve({}), await reserve({})].map(
    ({ body }) => body.signingKey,
  )
  expect(keys[0]).toBe(keys[1])
  expect(new Set(keys).size).toBe(3)
  for (const key of keys) expect(parseDidKey(key)).toMatchObject({ curve: 'p256' })
  expect((await reserve({ did: 'nonsense' })).status).toBe(400)

  const answers = []
  for (let i = 0; i < 40; i++) answers.push((await reserve({})).status)
  expect(answers.filter((status) => status === 429).length).toBeGreaterThan(0)
  expect((await reserve({ did })).status).toBe(200)
  pds.clock.advance({ days: 31 })
  expect((await pds.runSweep('reserved-keys'))['deleted']).toBeGreaterThan(2)
})

test('of two changes at once, the one that the directory took last stands', async () => {
  const nora = await seedAccount(pds, 'nora.pds')
  const { plc } = pds.ctx
  let second: Promise<unknown> | undefined
  using told = spyOn(plc, 'submit')
  told.mockImplementationOnce(async (did, operation) => {
    await plc.submit(did, operation)
    second = updateHandle(nora, 'nora2.pds.test')
    await Promise.race([second, eventLoopTurns(100)])
  })
  expect((await updateHandle(nora, 'nora1.pds.test')).status).toBe(200)
  expect(await second).toMatchObject({ status: 200 })
  expect(await handleInDirectory(nora)).toEqual(['at://nora2.pds.test'])
  expect(await resolves('nora2.pds.test')).toBe(nora.did)
})

test('a document that was asked for before the change is not kept after it', async () => {
  using _ = atOneNode(pds, 'a part of the server is replaced')
  const nick = await seedAccount(pds, 'nick.pds')
  const { plc } = pds.ctx
  const gate = Promise.withResolvers<void>()
  using asked = spyOn(plc, 'document')
  asked.mockImplementationOnce(async (did) => {
    const document = await plc.document(did)
    await gate.promise
    return document
  })
  const identity = () => request(`${pds.url}/xrpc/com.atproto.identity.resolveIdentity?identifier=${nick.did}`)
  const before = identity()
  await until(() => asked.mock.calls.length > 0)
  const changed = updateHandle(nick, 'nicholas.pds.test')
  await until(async () => (await handleInDirectory(nick))[0] === 'at://nicholas.pds.test')
  gate.resolve()
  await Promise.all([before, changed])
  expect((await identity()).body).toMatchObject({
    handle: 'nicholas.pds.test',
    didDoc: { alsoKnownAs: ['at://nicholas.pds.test'] },
  })
})
