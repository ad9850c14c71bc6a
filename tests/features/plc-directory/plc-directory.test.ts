import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { P256Keypair } from '@atproto/crypto'
import { Client } from '@did-plc/lib'
import { remotePlcDirectory } from '../../../src/platform/network/directory-client.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey, type SigningKey } from '../../../src/protocol/keys.ts'
import {
  genesisDid,
  genesisOperation,
  nextOperation,
  operationCid,
  signOperation,
  tombstone,
  type LogOperation,
  type PlcState,
} from '../../../src/protocol/plc.ts'
import { fakeDns } from '../../support/servers/dns.ts'
import { request } from '../../support/clients/http.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { errorOf, thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld()
const real = setUp(startPlcServer)

interface TestKey extends SigningKey {
  did: string
}
function makeKey(curve: 'p256' | 'k256'): TestKey {
  const key = signingKey(curve, randomBytes(32))
  return { ...key, did: formatDidKey(key.publicKey) }
}

const [device, recovery, server, stranger] = [makeKey('p256'), makeKey('k256'), makeKey('p256'), makeKey('k256')]
const rotationKeys = [device, recovery, server].map(({ did }) => did)

function makeGenesis(handle: string) {
  return signOperation(
    genesisOperation({
      rotationKeys,
      signingKey: server.did,
      handle: handle as Handle,
      pdsEndpoint: 'https://pds.test',
    }),
    server,
  )
}
const follow = (last: LogOperation, changes: Partial<PlcState>, key: TestKey) =>
  signOperation(nextOperation(last, changes)!, key)

/** Both directories get the same operation; the answers must agree. */
async function submit(did: string, operation: unknown): Promise<number> {
  const [ours, theirs] = await Promise.all([
    request(`${pds.url}/${did}`, { json: operation }),
    request(`${real.url}/${did}`, { json: operation }),
  ])
  expect([operation, ours.status]).toEqual([operation, theirs.status])
  if (ours.status !== 200) expect(typeof ours.body.message).toBe('string')
  return ours.status
}

/** What both directories serve; the instants differ. */
async function view(path: string): Promise<unknown> {
  const [ours, theirs] = await Promise.all([request(`${pds.url}/${path}`), request(`${real.url}/${path}`)])
  expect(ours.status).toBe(theirs.status)
  const timeless = (body: unknown) =>
    JSON.parse(JSON.stringify(body, (key, value) => (key === 'createdAt' ? 'then' : value)))
  if (ours.status === 200) expect(timeless(ours.body)).toEqual(timeless(theirs.body))
  else expect(ours.body).toEqual(theirs.body)
  return ours.body
}

test('a DID is made, changed, recovered and ended as in the public directory', async () => {
  const first = makeGenesis('alice.test')
  const did = genesisDid(first)
  expect(await submit(did, first)).toBe(200)
  const renamed = follow(first, { alsoKnownAs: ['at://bob.test'] }, server)
  expect(await submit(did, renamed)).toBe(200)
  const moved = follow(renamed, { services: {} }, recovery)
  expect(await submit(did, moved)).toBe(200)
  for (const path of ['data', 'log', 'log/audit', 'log/last']) await view(`${did}/${path}`)

  // The device key undoes the move; the key below it cannot.
  expect(await submit(did, follow(renamed, { alsoKnownAs: [] }, server))).toBe(400)
  const rescued = follow(renamed, { alsoKnownAs: ['at://carol.test'] }, device)
  expect(await submit(did, rescued)).toBe(200)
  for (const path of ['data', 'log', 'log/audit', 'log/last']) await view(`${did}/${path}`)

  expect(await submit(did, signOperation(tombstone(rescued), device))).toBe(200)
  expect(await view(did)).toEqual({ message: `DID not available: ${did}` })
  await view(`${did}/data`)
  await view(`${did}/log/last`)
})

test('what the public directory refuses is refused', async () => {
  const first = makeGenesis('mallory.test')
  const did = genesisDid(first)
  const bad: [string, unknown][] = [
    [genesisDid(makeGenesis('other.test')), first],
    [did, signOperation({ ...first, sig: undefined } as never, stranger)],
    [did, { ...first, sig: first.sig.replace(/./, (letter) => (letter === 'A' ? 'B' : 'A')) }],
    [did, { ...first, rotationKeys: [] }],
    [did, { ...first, rotationKeys: 'x' }],
    [did, follow(first, {}, server)],
    [did, signOperation(tombstone(first), server)],
    [did, {}],
    [did, []],
    [did, { type: 'create' }],
    ['did:plc:short', first],
  ]
  for (const [subject, operation] of bad) expect(await submit(subject, operation)).toBe(400)
  expect(await view(did)).toEqual({ message: `DID not registered: ${did}` })
  for (const path of ['data', 'log', 'log/audit', 'log/last']) await view(`${did}/${path}`)

  expect(await submit(did, first)).toBe(200)
  const badNext = [
    first,
    follow(first, {}, stranger),
    follow(first, { rotationKeys: [] }, server),
    follow(first, { rotationKeys: Array<string>(6).fill(server.did) }, server),
    follow(first, { rotationKeys: ['did:key:zNonsense'] }, server),
    follow(first, { verificationMethods: { atproto: 'did:web:x.test' } }, server),
    follow(makeGenesis('another.test'), {}, server),
    { ...follow(first, {}, server), prev: null },
  ]
  for (const operation of badNext) expect(await submit(did, operation)).toBe(400)
})

test('recovery ends after 72 hours', async () => {
  const first = makeGenesis('late.test')
  const did = genesisDid(first)
  const directory = pds.ctx.plc
  await directory.submit(did, first)
  await directory.submit(did, follow(first, { services: {} }, server))
  pds.clock.advance({ secs: 72 * 3600 + 1 })
  expect(await thrownBy(directory.submit(did, follow(first, {}, device)))).toThrow('72 hr recovery window')
})

test('two operations that follow the same one do not both enter', async () => {
  const first = makeGenesis('race.test')
  const did = genesisDid(first)
  await pds.ctx.plc.submit(did, first)
  const rivals = ['a', 'b'].map((name) =>
    pds.ctx.plc.submit(did, follow(first, { alsoKnownAs: [`at://${name}.test`] }, server)),
  )
  const outcomes = await Promise.allSettled(rivals)
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
})

test('the export holds every operation in order', async () => {
  const { body } = await request(`${pds.url}/export?count=2`)
  const lines = String(body).split('\n')
  expect(lines).toHaveLength(2)
  expect(lines.map((line) => Object.keys(JSON.parse(line)).sort())).toEqual(
    Array(2).fill(['cid', 'createdAt', 'did', 'nullified', 'operation']),
  )
  expect((await request(`${pds.url}/export?count=x`)).status).toBe(400)
  const first = makeGenesis('export.test')
  const before = new Date(pds.clock.now()).toISOString()
  pds.clock.advance({ secs: 1 })
  await pds.ctx.plc.submit(genesisDid(first), first)
  const { body: only } = await request(`${pds.url}/export?after=${encodeURIComponent(before)}`)
  expect(only).toMatchObject({ did: genesisDid(first), cid: operationCid(first).toString(), nullified: false })
})

test('the client reads both directories alike', async () => {
  const upstream = createOutbound({ resolver: fakeDns(), reach: 'anywhere' })
  const clients = [remotePlcDirectory(real.url, upstream), remotePlcDirectory(pds.url, upstream), pds.ctx.plc]
  const first = makeGenesis('client.test')
  const did = genesisDid(first)
  for (const client of [clients[0]!, clients[1]!]) {
    expect([
      await client.document(did),
      await client.state(did),
      await client.lastOperation(did),
      await client.auditLog(did),
    ]).toEqual([null, null, null, null])
    await client.submit(did, first)
    expect(await errorOf(client.submit(did, first))).toMatchObject({
      status: 400,
      message: expect.stringContaining('not correctly ordered'),
    })
  }
  for (const client of clients) {
    expect(await client.state(did)).toMatchObject({ rotationKeys, alsoKnownAs: ['at://client.test'] })
    expect(await client.lastOperation(did)).toEqual(first)
    expect(await client.auditLog(did)).toMatchObject([{ did, nullified: false, operation: first }])
    expect(await client.document(did)).toMatchObject({ id: did, alsoKnownAs: ['at://client.test'] })
  }
})

test('a directory that fails, lies or is gone is told apart from an absent DID', async () => {
  const answers = [
    () => new Response('{"message":"down"}', { status: 503 }),
    () => new Response('<html>'),
    () => Response.json({ id: 'did:plc:other' }),
  ]
  const broken = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answers.shift()!() })
  const client = remotePlcDirectory(
    `http://127.0.0.1:${broken.port}`,
    createOutbound({ resolver: fakeDns(), reach: 'anywhere' }),
  )
  const did = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did
  expect(await errorOf(client.document(did))).toMatchObject({ status: 503, message: 'down' })
  expect(await errorOf(client.document(did))).toMatchObject({ status: 200 })
  expect(await errorOf(client.document(did))).toMatchObject({ status: 200 })
  await broken.stop(true)
  expect(await errorOf(client.document(did))).toMatchObject({ status: null, message: 'PLC directory unreachable' })
})

test('the network’s own clients use it as their directory', async () => {
  const key = await P256Keypair.create()
  const client = new Client(pds.url)
  const did = await client.createDid({
    signingKey: server.did,
    handle: 'dave.test',
    pds: 'https://pds.test',
    rotationKeys: [key.did()],
    signer: key,
  })
  await client.updateHandle(did, key, 'david.test')
  expect(await client.getDocumentData(did)).toMatchObject({
    did,
    alsoKnownAs: ['at://david.test'],
    rotationKeys: [key.did()],
  })
  expect(await client.getDocument(did)).toMatchObject({
    id: did,
    service: [{ id: '#atproto_pds', serviceEndpoint: 'https://pds.test' }],
  })
  await client.tombstone(did, key)
  expect(await errorOf(client.getDocument(did))).toMatchObject({ status: 404 })
})

test('other paths are no DIDs', async () => {
  for (const path of ['nothing', 'nothing/data', 'did:', '%E0%A4', 'did%3Aplc%3Aaaaaaaaaaaaaaaaaaaaaaaaa/log/more'])
    expect((await request(`${pds.url}/${path}`)).status).toBe(404)
  expect(await request(`${pds.url}/nothing`, { json: {} })).toMatchObject({ status: 404 })
})
