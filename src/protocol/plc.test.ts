import { expect, test } from 'bun:test'
import { P256Keypair, Secp256k1Keypair, type Keypair } from '@atproto/crypto'
import * as oracle from '@did-plc/lib'
import { CID } from 'multiformats/cid'
import authority from '../../tests/vectors/plc-authority-v1.json'
import genesis from '../../tests/vectors/plc-genesis-v1.json'
import rotation from '../../tests/vectors/plc-repo-key-rotation-v1.json'
import { renderDidDocument } from './did-document.ts'
import type { Did, Handle } from './identifiers.ts'
import {
  checkAuditLog,
  checkNext,
  fitsDirectory,
  genesisDid,
  genesisFault,
  genesisOperation,
  headOf,
  nextOperation,
  operationBytes,
  operationCid,
  parseAuditLog,
  parseOperation,
  RECOVERY_WINDOW_MILLIS,
  signerOf,
  stateOf,
  tombstone,
  unsignedBytes,
  withHandle,
  type LogOperation,
  type Operation,
  type Signed,
  type ValidOperation,
  type UnsignedOperation,
  type UnsignedTombstone,
} from './plc.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const operationOf = (json: unknown) => parseOperation(json)!

async function signed<Unsigned extends UnsignedOperation | UnsignedTombstone>(
  operation: Unsigned,
  key: Keypair,
): Promise<Signed<Unsigned>> {
  return { ...operation, sig: Buffer.from(await key.sign(unsignedBytes(operation))).toString('base64url') }
}

test('a genesis gives the bytes, the CID, the DID and the document of the vector', () => {
  const operation = operationOf(genesis.request.signedCreationOp) as Operation
  expect(hex(unsignedBytes(operation))).toBe(genesis.expect.unsignedCborHex)
  expect(hex(operationBytes(operation))).toBe(genesis.expect.signedCborHex)
  expect(operationCid(operation).toString()).toBe(genesis.expect.cid)
  expect(genesisDid(operation)).toBe(genesis.expect.did as Did)
  expect(genesisFault(genesis.expect.did, operation)).toBeNull()
  expect(renderDidDocument(genesis.expect.did as Did, stateOf(operation)!)).toEqual(genesis.expect.didDocument as never)
})

test('a genesis is refused when it is not exactly one', () => {
  const faults = Object.fromEntries(
    genesis.reject.map(({ name, rotationKeyPublic, signedCreationOp }) => {
      const operation = parseOperation(signedCreationOp)
      if (!operation) return [name, 'no operation']
      const fault = genesisFault(genesisDid(operation), operation)
      return [
        name,
        fault ?? (signerOf(operation, [rotationKeyPublic]) ? 'for the caller to judge' : 'signed by another key'),
      ]
    }),
  )
  expect(faults).toMatchObject({
    'signed-by-repo-key': 'signed by another key',
    'prev-not-null': 'misordered',
    'wrong-type': 'no operation',
    'unknown-member': 'no operation',
    'high-s': 'bad-signature',
  })
})

test('a key rotation follows its log, and the wrong ones do not', () => {
  const log = parseAuditLog(rotation.auditLogBefore)!
  const valid = log.map(({ cid, createdAt, operation }) => ({ cid, createdAt: Date.parse(createdAt), operation }))
  const accept = operationOf(rotation.accept.operation) as Operation
  expect(hex(unsignedBytes(accept))).toBe(rotation.accept.unsignedCborHex)
  expect(checkNext(rotation.did, valid, accept, Date.now())).toEqual({ ok: true, nullified: [] })
  expect(checkAuditLog(rotation.did, parseAuditLog(rotation.auditLogAfter)!)).toMatchObject({
    ok: true,
    head: { cid: rotation.accept.cid },
  })
  const refused = rotation.reject.filter(({ name }) => name === 'signer-not-current' || name === 'stale-prev')
  expect(refused.map(({ operation }) => checkNext(rotation.did, valid, operationOf(operation), Date.now()))).toEqual([
    { ok: false, fault: 'bad-signature' },
    { ok: false, fault: 'misordered' },
  ])
})

test('the head of a log is its last entry that stands', () => {
  for (const { name, log, authorised } of authority.cases) {
    const head = headOf(parseAuditLog(log)!)
    expect([name, stateOf(head!.operation)?.rotationKeys ?? []]).toEqual([name, authorised])
  }
})

test('only exact operations are read', () => {
  const good = genesis.request.signedCreationOp
  expect(parseOperation(good)).not.toBeNull()
  const spoilt: unknown[] = [
    null,
    [],
    'x',
    {},
    { type: 'constructor' },
    { type: 'plc_tombstone', sig: 'x' },
    { ...good, rotationKeys: 'x' },
    { ...good, services: { a: { type: 'x' } } },
    { ...good, alsoKnownAs: ['x'.repeat(2049)] },
    { ...good, rotationKeys: Array(65).fill(good.rotationKeys[0]) },
    {
      ...good,
      verificationMethods: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`key${i}`, good.rotationKeys[0]])),
    },
    { ...good, verificationMethods: { ['x'.repeat(2049)]: good.rotationKeys[0] } },
  ]
  for (const member of Object.keys(good)) {
    const { [member as keyof typeof good]: _, ...rest } = good
    spoilt.push(rest, { ...good, [member]: 7 })
  }
  expect(spoilt.filter((value) => parseOperation(value) !== null)).toEqual([])
  expect(parseAuditLog([{ did: 'x' }])).toBeNull()
  expect(parseAuditLog({})).toBeNull()
})

test('a verification method may be of any key type, and a rotation key of two curves only', async () => {
  const key = await P256Keypair.create()
  const other = 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'
  const made = genesisOperation({
    rotationKeys: [key.did()],
    signingKey: key.did(),
    handle: 'a.test' as Handle,
    pdsEndpoint: 'https://pds.test',
  })
  const faultOf = async (change: Partial<UnsignedOperation>) => {
    const operation = await signed({ ...made, ...change }, key)
    return genesisFault(genesisDid(operation), operation)
  }
  const methods = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`key${i}`, other] as const))
  expect(await faultOf({ verificationMethods: methods(10) })).toBeNull()
  expect(await faultOf({ verificationMethods: methods(11) })).toBe('verification-methods')
  expect(await faultOf({ verificationMethods: { ['x'.repeat(33)]: other } })).toBe('verification-methods')
  for (const text of ['did:key:', 'did:key:z', 'did:key:z0OIl', 'key:z6Mk', `did:key:z${'1'.repeat(256)}`])
    expect(await faultOf({ verificationMethods: { text } })).toBe('unsupported-key')
  expect(await faultOf({ rotationKeys: [key.did(), other] })).toBe('unsupported-key')
})

test('what a directory takes has 7,500 bytes at most, with its signature', async () => {
  const key = await P256Keypair.create()
  const made = (chars: number) => ({
    ...genesisOperation({
      rotationKeys: [key.did()],
      signingKey: key.did(),
      handle: 'a.test' as Handle,
      pdsEndpoint: 'https://pds.test',
    }),
    alsoKnownAs: [...Array(4)].map((_, i) => `https://${'x'.repeat(i < 3 ? 2000 : chars)}`),
  })
  const room = 7500 - operationBytes(await signed(made(300), key)).length + 300
  for (const [chars, fits] of [
    [room, true],
    [room + 1, false],
  ] as const) {
    expect(fitsDirectory(made(chars))).toBe(fits)
    expect(fitsDirectory(await signed(made(chars), key))).toBe(fits)
  }
})

test('a signature has one spelling', () => {
  const operation = operationOf(genesis.request.signedCreationOp) as Operation
  const keys = operation.rotationKeys
  expect(signerOf(operation, keys)).toBe(keys[0]!)
  for (const sig of [
    operation.sig + '=',
    operation.sig + '==',
    operation.sig.replaceAll('-', '+').replaceAll('_', '/'),
    ` ${operation.sig}`,
    operation.sig.slice(0, -1) + 'B',
    '',
  ]) {
    expect(signerOf({ ...operation, sig }, keys)).toBeNull()
  }
})

test('what follows an operation keeps what it does not change', async () => {
  const key = await P256Keypair.create()
  const first = await signed(
    genesisOperation({
      rotationKeys: [key.did()],
      signingKey: key.did(),
      handle: 'a.test' as Handle,
      pdsEndpoint: 'https://pds.test',
    }),
    key,
  )
  const next = nextOperation(first, {
    alsoKnownAs: withHandle(['https://x.test', 'at://a.test', 'at://b.test'], 'c.test' as Handle),
  })
  const { sig: _, ...unsigned } = first
  expect(next).toEqual({
    ...unsigned,
    alsoKnownAs: ['https://x.test', 'at://c.test', 'at://b.test'],
    prev: operationCid(first).toString(),
  })
  expect(withHandle(['https://x.test'], 'c.test' as Handle)).toEqual(['at://c.test', 'https://x.test'])
  expect(nextOperation(await signed(tombstone(first), key), {})).toBeNull()
})

test('a genesis of the first kind still starts a log', async () => {
  const [signing, recovery] = [await Secp256k1Keypair.create(), await Secp256k1Keypair.create()]
  const unsigned = {
    type: 'create' as const,
    signingKey: signing.did(),
    recoveryKey: recovery.did(),
    handle: 'old.test',
    service: 'pds.test',
    prev: null,
  }
  const create = { ...(await oracle.deprecatedSignCreate(unsigned, signing)) }
  const operation = operationOf(create)
  const did = genesisDid(operation)
  expect(did).toBe((await oracle.didForCreateOp(create)) as Did)
  expect(genesisFault(did, operation)).toBeNull()
  const { sig: _, prev: __, type: ___, ...state } = oracle.normalizeOp(create)
  expect(stateOf(operation)).toEqual(state)
})

/** Random logs with forks, tombstones, foreign signers and long waits: the same verdicts as the directory's library. */
test('an operation is allowed exactly when the directory allows it', async () => {
  const keys = [
    await P256Keypair.create(),
    await Secp256k1Keypair.create(),
    await P256Keypair.create(),
    await Secp256k1Keypair.create(),
  ]
  const random = generator(7)
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
  const verdicts = { ok: 0, nullifying: 0, refused: 0 }

  for (let round = 0; round < 25; round++) {
    const trusted = keys.slice(0, 3)
    const first = await signed(
      genesisOperation({
        rotationKeys: trusted.map((key) => key.did()),
        signingKey: keys[0]!.did(),
        handle: 'a.test' as Handle,
        pdsEndpoint: 'https://pds.test',
      }),
      pick(trusted),
    )
    const did = genesisDid(first)
    let valid: ValidOperation[] = [{ cid: operationCid(first).toString(), createdAt: Date.now(), operation: first }]
    for (let step = 0; step < 8; step++) {
      const waitMillis = pick([1000, 30, 71 * 3_600_000, 73 * 3_600_000])
      valid = valid.map((entry) => ({ ...entry, createdAt: entry.createdAt - waitMillis }))
      const previous = random() < 0.6 ? valid.at(-1)! : pick(valid)
      const operation = await randomOperation(previous, previous !== valid.at(-1))
      const expected = await verdictOfOracle(did, valid, operation)
      const outcome = checkNext(did, valid, operation, Date.now())
      expect({ ok: outcome.ok, nullified: outcome.ok ? outcome.nullified : [] }).toEqual(expected)
      if (!outcome.ok) {
        verdicts.refused++
        continue
      }
      verdicts[outcome.nullified.length > 0 ? 'nullifying' : 'ok']++
      valid = [
        ...valid.filter(({ cid }) => !outcome.nullified.includes(cid)),
        { cid: operationCid(operation).toString(), createdAt: Date.now(), operation },
      ]
    }
  }
  expect(Math.min(verdicts.ok, verdicts.nullifying, verdicts.refused)).toBeGreaterThan(10)

  async function randomOperation(previous: ValidOperation, isFork: boolean): Promise<LogOperation> {
    if (random() < 0.05 || previous.operation.type !== 'plc_operation')
      return signed({ type: 'plc_tombstone', prev: previous.cid } as const, pick(keys))
    const rotationKeys = keys.filter(() => random() < 0.7).map((key) => key.did())
    const changes = pick([
      {},
      {},
      {},
      {},
      {},
      {},
      { rotationKeys },
      { alsoKnownAs: [] },
      { verificationMethods: { atproto: 'did:key:Nope' } },
      { rotationKeys: Array(6).fill(keys[0]!.did()) },
    ])
    const next = nextOperation(previous.operation, changes)!
    const ranked = (previous.operation as Operation).rotationKeys
    const signerDid = random() < 0.7 ? ranked[isFork ? 0 : ranked.length - 1] : pick(ranked)
    const signer = random() < 0.9 ? keys.find((key) => key.did() === signerDid) : pick(keys)
    return signed(random() < 0.05 ? { ...next, prev: null } : next, signer ?? keys[0]!)
  }
})

async function verdictOfOracle(did: string, valid: ValidOperation[], operation: LogOperation) {
  const indexed = valid.map((entry) => ({
    did,
    cid: CID.parse(entry.cid),
    nullified: false,
    createdAt: new Date(entry.createdAt),
    operation: entry.operation,
  }))
  try {
    const { nullified } = await oracle.assureValidNextOp(did, indexed as never, operation as never)
    return { ok: true, nullified: nullified.map(String) }
  } catch {
    return { ok: false, nullified: [] }
  }
}

/** A small generator with a seed, so that a failure comes back. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

test('the recovery window ends after exactly 72 hours', async () => {
  const [high, low] = [await P256Keypair.create(), await P256Keypair.create()]
  const first = await signed(
    genesisOperation({
      rotationKeys: [high.did(), low.did()],
      signingKey: low.did(),
      handle: 'a.test' as Handle,
      pdsEndpoint: 'https://pds.test',
    }),
    high,
  )
  const stolen = await signed(nextOperation(first, { rotationKeys: [low.did()] })!, low)
  const rescue = await signed(nextOperation(first, { alsoKnownAs: [] })!, high)
  const did = genesisDid(first)
  const entry = (operation: LogOperation, createdAt: number) => ({
    cid: operationCid(operation).toString(),
    createdAt,
    operation,
  })
  const valid = [entry(first, 0), entry(stolen, 1000)]
  expect(checkNext(did, valid, rescue, 1000 + RECOVERY_WINDOW_MILLIS)).toEqual({
    ok: true,
    nullified: [operationCid(stolen).toString()],
  })
  expect(checkNext(did, valid, rescue, 1001 + RECOVERY_WINDOW_MILLIS)).toEqual({ ok: false, fault: 'too-late' })
  expect(checkNext(did, valid, await signed(nextOperation(first, {})!, low), 1000)).toEqual({
    ok: false,
    fault: 'bad-signature',
  })

  const audit = (nullified: boolean) =>
    [first, stolen, rescue].map((operation, index) => ({
      did,
      cid: operationCid(operation).toString(),
      createdAt: new Date(index * 1000).toISOString(),
      nullified: nullified && index === 1,
      operation,
    }))
  expect(checkAuditLog(did, audit(true))).toMatchObject({ ok: true, state: { alsoKnownAs: [] } })
  expect(checkAuditLog(did, audit(false))).toEqual({ ok: false, fault: 'malformed' })
  expect(checkAuditLog(did, audit(true).slice(0, 2))).toEqual({ ok: false, fault: 'malformed' })
  expect(checkAuditLog(did, [])).toEqual({ ok: false, fault: 'malformed' })
})
