/**
 * The signed examples that every wallet and every server has to agree on, asked of the real endpoints; and where the
 * keys of an identity are read, with a directory and hosts of did:web that answer as a test says.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signingKey, type Curve } from '../../../src/protocol/keys.ts'
import { bearer } from '../../support/clients/http.ts'
import { xrpc } from '../../support/clients/account.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { sessionToken } from '../../support/clients/session-token.ts'
import { askSession, deviceKey, sessionRequest, type DeviceKey } from '../../support/clients/wallet.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import keys from '../../vectors/keys.json' with { type: 'json' }
import authority from '../../vectors/plc-authority-v1.json' with { type: 'json' }
import journey from '../../vectors/contract/sovereign-e2e-v1.json' with { type: 'json' }
import proofs from '../../vectors/contract/signed-proofs-v1.json' with { type: 'json' }
import { useWorld } from '../../support/world.ts'

type Proof = { signingKey: string; timestamp: number; nonce: string; signature: string }
type Body = Proof & { did: string; custos?: { proof: Proof } }

const NOW_SECS = proofs.timestamp
/** A clock that stands still, at the last millisecond of a second, until a test sets it. */
const clock = { at: NOW_SECS * 1000 + 999, now: () => clock.at, monotonic: () => performance.now() }

/** What the directory answers, by DID. It answers 404 for others. */
const logs = new Map<string, () => Response>()
const asked: string[] = []
const directory = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname } = new URL(request.url)
    asked.push(pathname)
    return (
      logs.get(/^\/(did:plc:\w+)\/log\/audit$/.exec(pathname)?.[1] ?? '')?.() ?? new Response('{}', { status: 404 })
    )
  },
})

const operation = (rotationKeys: readonly string[]) => ({
  type: 'plc_operation',
  rotationKeys,
  verificationMethods: {},
  alsoKnownAs: [],
  services: {},
  prev: null,
  sig: '',
})
const entry = (did: string, of: object, nullified = false) => ({
  did,
  cid: 'bafyreifrgjw4tpjxylzjesl7fxvfvsgymrkastojjb7mgz6pkzx6ymjseq',
  createdAt: '2026-01-01T00:00:00.000Z',
  nullified,
  operation: of,
})

const { pds, web } = useWorld({
  web: ['web.test'],
  config: {
    plcDirectoryUrl: `http://127.0.0.1:${directory.port}`,
    serverDid: proofs.serverDid as Did,
    rateLimit: { enabled: false },
  },
  options: { clock },
})
beforeAll(async () => {
  await seedAccount(pds, 'signer', { did: proofs.accountDid })
  await seedAccount(pds, 'journey', { did: journey.plcAuditLog[0]!.did })
})
beforeEach(() => {
  clock.at = NOW_SECS * 1000 + 999
  asked.length = 0
  logs.set(proofs.accountDid, () => Response.json([entry(proofs.accountDid, operation(proofs.authorisedKeys))]))
  logs.set(journey.plcAuditLog[0]!.did, () => Response.json(journey.plcAuditLog))
})
afterAll(() => directory.stop(true))

/** A wallet whose clock is that of the server. */
const signing = () => ({ ctx: pds.ctx, clock })
const sovereign = proofs.accept.filter(({ kind }) => kind === 'sovereign')
const bodyOf = ({ requestBody }: { requestBody: object }) => requestBody as Body

test.each(proofs.reject.filter(({ of }) => of.startsWith('sovereign')))('$name is refused: $why', async (vector) => {
  const answer = await askSession(pds, bodyOf(vector))
  expect(answer).toMatchObject({ status: 401, body: { error: { code: 'AUTHENTICATION_REQUIRED' } } })
  expect(asked).toHaveLength('failsAt' in vector ? 1 : 0)
})

test.each(sovereign)('$name is accepted, once', async (vector) => {
  expect(await askSession(pds, bodyOf(vector))).toMatchObject({ status: 200, body: { did: proofs.accountDid } })
  expect((await askSession(pds, bodyOf(vector))).status).toBe(401)
})

test.each(journey.cases)('a whole sign-in with the $name', async ({ requestBody }) => {
  expect(await askSession(pds, requestBody)).toMatchObject({
    status: 200,
    body: { did: requestBody.did, handle: 'journey.test' },
  })
  expect(asked).toEqual([`/${requestBody.did}/log/audit`])
})

test('a proof is accepted up to 60 seconds off, on either side, and not a second more', async () => {
  const device = deviceKey()
  const person = await seedAccount(pds, 'punctual', { did: 'did:plc:punctual2222222222222222' })
  logs.set(person.did, () => Response.json([entry(person.did, operation([device.did]))]))
  for (const [millis, offsetSecs, status] of [
    [0, -60, 200],
    [999, -60, 200],
    [0, 60, 200],
    [999, 60, 200],
    [0, -61, 401],
    [999, -61, 401],
    [0, 61, 401],
    [999, 61, 401],
  ] as const) {
    clock.at = NOW_SECS * 1000 + millis
    const answer = await askSession(
      pds,
      sessionRequest(signing(), { did: person.did, device }, { timestamp: NOW_SECS + offsetSecs }),
    )
    expect([millis, offsetSecs, answer.status]).toEqual([millis, offsetSecs, status])
  }
  const early = sessionRequest(signing(), { did: person.did, device }, { timestamp: NOW_SECS + 60 })
  clock.at = NOW_SECS * 1000
  expect((await askSession(pds, early)).status).toBe(200)
  // The first second and the last one in which it is in time are two minutes apart, and its nonce is still known.
  clock.at = (NOW_SECS + 120) * 1000
  await pds.runSweep('proof-nonces')
  expect((await askSession(pds, early)).status).toBe(401)
})

const secrets = new Map(
  keys.keys.map(({ didKey, curve, privateKeyHex }) => [didKey, { curve: curve as Curve, privateKeyHex }]),
)
/** The holder of a key of the examples; of one that the examples derive elsewhere there is none. */
const holdersOf = (dids: readonly string[]): DeviceKey[] =>
  dids.flatMap((did) => {
    const known = secrets.get(did)
    return known ? { key: signingKey(known.curve, Buffer.from(known.privateKeyHex, 'hex')), did: did as Did } : []
  })

test.each(authority.cases)(
  'whoever a log with $name authorises may sign in, and nobody else',
  async ({ log, authorised, notAuthorised }) => {
    const { did } = log[0]!
    logs.set(did, () => Response.json(log))
    const statusFor = async (device: DeviceKey) =>
      (await askSession(pds, sessionRequest(signing(), { did, device }))).status
    for (const device of holdersOf(authorised)) expect([device.did, await statusFor(device)]).toEqual([device.did, 200])
    for (const device of holdersOf(notAuthorised))
      expect([device.did, await statusFor(device)]).toEqual([device.did, 401])
    expect(holdersOf(notAuthorised)).not.toBeEmpty()
  },
)

const OWN = deviceKey()

test('trouble with the directory has a status of its own, and nothing is spent', async () => {
  const { did } = await seedAccount(pds, 'patient', { did: 'did:plc:patient22222222222222222' })
  const log = [entry(did, operation([OWN.did]))]
  const json =
    (value: unknown, status = 200) =>
    () =>
      Response.json(value, { status })
  const tombstone = { type: 'plc_tombstone', prev: log[0]!.cid, sig: '' }
  const legacy = {
    type: 'create',
    signingKey: OWN.did,
    recoveryKey: OWN.did,
    handle: 'patient.test',
    service: 'https://pds.test',
    prev: null,
    sig: '',
  }
  const request = sessionRequest(signing(), { did, device: OWN })
  for (const [answer, outcome] of [
    [json({}, 500), '502 PLC_DIRECTORY_ERROR'],
    [json({}, 429), '502 PLC_DIRECTORY_ERROR'],
    [json({}, 400), '502 PLC_DIRECTORY_ERROR'],
    [
      () => new Response(null, { status: 302, headers: { location: 'http://127.0.0.1:1/' } }),
      '502 PLC_DIRECTORY_ERROR',
    ],
    [() => new Response(' '.repeat(5 * 1024 * 1024)), '502 PLC_DIRECTORY_ERROR'],
    [() => new Response('<html>'), '500 INTERNAL_ERROR'],
    [json({ log }), '500 INTERNAL_ERROR'],
    [json([{ ...log[0], operation: { ...log[0]!.operation, rotationKeys: OWN.did } }]), '500 INTERNAL_ERROR'],
    [json({}, 404), '404 DidNotFound'],
    [json([]), '404 DidNotFound'],
    [json([{ ...log[0], nullified: true }]), '404 DidNotFound'],
    [json([log[0], entry(did, tombstone)]), '401 AUTHENTICATION_REQUIRED'],
    [json([entry(did, operation([]))]), '401 AUTHENTICATION_REQUIRED'],
    [json([entry(did, operation([OWN.did.toUpperCase()]))]), '401 AUTHENTICATION_REQUIRED'],
    [
      json([entry(did, { ...operation([]), verificationMethods: { atproto: OWN.did } })]),
      '401 AUTHENTICATION_REQUIRED',
    ],
  ] as const) {
    logs.set(did, answer)
    const { status, body } = await askSession(pds, request)
    expect(`${status} ${body.error?.code}`).toBe(outcome)
  }
  logs.set(did, json([entry(did, legacy)]))
  expect((await askSession(pds, request)).status).toBe(200)
})

test('the answer names an account without address or handle', async () => {
  const { did } = await seedAccount(pds, 'bare', { did: 'did:plc:bare22222222222222222222', email: null })
  await pds.damage('account', { did }, { handle: null })
  logs.set(did, () => Response.json([entry(did, operation([OWN.did]))]))
  const { status, body } = await askSession(pds, sessionRequest(signing(), { did, device: OWN }))
  expect({ status, body }).toMatchObject({ status: 200, body: { did, handle: 'handle.invalid', email: null } })
})

test('a did:web signs in with the one key named #device of its live document, unless this server serves it', async () => {
  const { did } = await seedAccount(pds, 'webby', { did: 'did:web:web.test' })
  const device = {
    id: `${did}#device`,
    type: 'Multikey',
    controller: did,
    publicKeyMultibase: OWN.did.slice('did:key:'.length),
  }
  const publish = (document: object) => web.publishDidDocument('web.test', document)
  const attempt = async () => {
    const { status, body } = await askSession(pds, sessionRequest(signing(), { did, device: OWN }))
    return status === 200 ? 'signed in' : `${status} ${body.error.code}`
  }
  const document = { id: did, verificationMethod: [device] }
  publish(document)
  expect(await attempt()).toBe('signed in')
  const refused = '401 AUTHENTICATION_REQUIRED'
  for (const verificationMethod of [
    [],
    [device, device],
    [{ ...device, id: `${did}#atproto` }],
    [{ ...device, controller: 'did:web:x.test' }],
  ]) {
    publish({ id: did, verificationMethod })
    expect(await attempt()).toBe(refused)
  }
  publish({ ...document, id: 'did:web:x.test' })
  expect(await attempt()).toBe(refused)
  for (const [status, outcome] of [
    [404, '404 DidNotFound'],
    [410, '410 DidDeactivated'],
    [500, '502 PLC_DIRECTORY_ERROR'],
  ] as const) {
    web.publish('web.test', '/.well-known/did.json', () => new Response(null, { status }))
    expect(await attempt()).toBe(outcome)
  }
  publish(document)
  await pds.plant('web_document', { did, document: '{}' })
  expect(await attempt()).toBe('signed in')
  await pds.damage('web_document', { did }, { hosted_since: clock.now() })
  web.requests.length = 0
  expect(await attempt()).toBe(refused)
  expect(web.requests).toEqual([])
})

test('the example of a deletion deletes the account, with the code by mail', async () => {
  const did = proofs.accountDid as Did
  expect(await pds.count('account', { did })).toBe(1)
  const [{ requestBody }] = proofs.accept.filter(({ kind }) => kind === 'account-delete') as [
    (typeof proofs.accept)[number],
  ]
  const session = bearer(await sessionToken(pds, did))
  await xrpc(pds, 'com.atproto.server.requestAccountDelete', { method: 'POST', headers: session })
  const json = { ...requestBody, token: await lastCode(pds, 'signer@mail.test') }
  const asSession = { did, ...(requestBody as unknown as Body).custos!.proof }
  expect((await askSession(pds, asSession)).status).toBe(401)
  expect((await xrpc(pds, 'com.atproto.server.deleteAccount', { json })).status).toBe(200)
  expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).status).toBe(400)
})
