/**
 * did:plc operations: makes, signs and checks them, singly and as the log of a DID.
 *
 * A DID is the hash of its signed genesis operation. Every later operation names the CID of the signed operation it
 * follows (`prev`) and is signed by a rotation key of that operation. Rotation keys are ranked by their order: for 72
 * hours, a higher key may fork before an operation of a lower key, which nullifies that operation and all after it.
 *
 * Checks return outcomes and never throw on bad input. Unknown members are refused, because they would be signed
 * without being understood.
 *
 * Source: did:plc method specification; the public directory, whose library is the oracle in the tests.
 */
import { HOUR_MILLIS } from '../base/durations.ts'
import { hasMembers } from '../base/members.ts'
import { base64url, parseBase64url } from './base64url.ts'
import { base32, cidOfCbor, type Cid } from './cid.ts'
import { encode, type DataObject } from './cbor.ts'
import type { Did, Handle, Millis } from './identifiers.ts'
import { parseDidKey, type SigningKey } from './keys.ts'
import { SPACE_HOST_NAME, SPACE_KEY_NAME } from './space-wire.ts'

export interface PlcService {
  type: string
  endpoint: string
}

/** What an operation says about its DID. Keys are did:keys; rotation keys in order of rank, highest first. */
export interface PlcState {
  rotationKeys: string[]
  verificationMethods: Record<string, string>
  alsoKnownAs: string[]
  services: Record<string, PlcService>
}

export interface UnsignedOperation extends PlcState {
  type: 'plc_operation'
  /** CID of the previous signed operation; null in a genesis operation. */
  prev: string | null
}
export interface UnsignedTombstone {
  type: 'plc_tombstone'
  prev: string
}
/** The legacy form of genesis operations. Logs may begin with it; it is no longer made. */
interface LegacyGenesis {
  type: 'create'
  signingKey: string
  recoveryKey: string
  handle: string
  service: string
  prev: null
  sig: string
}

export type Signed<Unsigned> = Unsigned & { sig: string }
export type Operation = Signed<UnsignedOperation>
export type Tombstone = Signed<UnsignedTombstone>
export type LogOperation = Operation | Tombstone | LegacyGenesis

/** An entry of the audit log, as the directory serves it. `createdAt` is RFC 3339. */
export interface AuditEntry {
  did: string
  cid: string
  createdAt: string
  nullified: boolean
  operation: LogOperation
}

export const MAX_ROTATION_KEYS = 5
const MAX_VERIFICATION_METHODS = 10
const MAX_METHOD_NAME_CHARS = 32
const MAX_DID_KEY_CHARS = 256
/** Most bytes of a signed operation in DAG-CBOR that a directory takes. */
export const MAX_OPERATION_BYTES = 7500
export const RECOVERY_WINDOW_MILLIS = 72 * HOUR_MILLIS
/** Length of an ECDSA signature as raw `r || s`. Only canonical base64url is accepted, which leaves one spelling. */
const SIGNATURE_BYTES = 64

// Reading

/** Longest text, and most items of a list. Directories allow 10 keys, names and services; parsing a key takes long. */
const MAX_TEXT_CHARS = 2048
const MAX_ITEMS = 64

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_TEXT_CHARS
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length <= MAX_ITEMS && value.every(isText)
function isRecordOf(value: unknown, holds: (entry: unknown) => boolean): boolean {
  if (!hasMembers(value)) return false
  const entries = Object.entries(value)
  return entries.length <= MAX_ITEMS && entries.every(([name, entry]) => isText(name) && holds(entry))
}
const isTextOrNull = (value: unknown) => value === null || isText(value)
const isService = (value: unknown) => hasShape(value, { type: isText, endpoint: isText })

type Shape = Record<string, (value: unknown) => boolean>

const stateShape: Shape = {
  rotationKeys: isTexts,
  verificationMethods: (value) => isRecordOf(value, isText),
  alsoKnownAs: isTexts,
  services: (value) => isRecordOf(value, isService),
}

const shapes: Record<LogOperation['type'], Shape> = {
  plc_operation: { ...stateShape, type: isText, prev: isTextOrNull, sig: isText },
  plc_tombstone: { type: isText, prev: isText, sig: isText },
  create: {
    type: isText,
    signingKey: isText,
    recoveryKey: isText,
    handle: isText,
    service: isText,
    prev: (value) => value === null,
    sig: isText,
  },
}

/** Whether a value has exactly these members, each valid. */
function hasShape(value: unknown, shape: Shape): boolean {
  if (typeof value !== 'object' || value === null) return false
  const members = Object.entries(value)
  return (
    members.length === Object.keys(shape).length &&
    members.every(([name, member]) => Object.hasOwn(shape, name) && shape[name]!(member))
  )
}

/** Parses a signed operation from JSON; null if it is not one. Does not check its signature or its place in a log. */
export function parseOperation(value: unknown): LogOperation | null {
  const type = (value as { type?: unknown } | null)?.type
  if (!isText(type) || !Object.hasOwn(shapes, type)) return null
  return hasShape(value, shapes[type as LogOperation['type']]) ? (value as LogOperation) : null
}

/** Parses the directory's audit log from JSON; null if it is not one. */
export function parseAuditLog(value: unknown): AuditEntry[] | null {
  const entryShape: Shape = {
    did: isText,
    cid: isText,
    createdAt: (instant) => isText(instant) && !Number.isNaN(Date.parse(instant)),
    nullified: (flag) => typeof flag === 'boolean',
    operation: (operation) => parseOperation(operation) !== null,
  }
  return Array.isArray(value) && value.every((entry) => hasShape(entry, entryShape)) ? (value as AuditEntry[]) : null
}

/** Parses the response of the directory's `/data` (a state with its DID) from JSON; null if it is not one. */
export function parseState(value: unknown): PlcState | null {
  const { did: _, ...state } = (value ?? {}) as Record<string, unknown>
  return hasShape(state, stateShape) ? (state as unknown as PlcState) : null
}

/** The state that an operation sets, in today's form; null for a tombstone. */
export function stateOf(operation: LogOperation): PlcState | null {
  switch (operation.type) {
    case 'plc_tombstone':
      return null
    case 'create':
      return {
        rotationKeys: [operation.recoveryKey, operation.signingKey],
        verificationMethods: { atproto: operation.signingKey },
        alsoKnownAs: [`at://${operation.handle.replace(/^(at|https?):\/\//, '')}`],
        services: { [PDS_SERVICE_NAME]: pdsService(withScheme(operation.service)) },
      }
    case 'plc_operation': {
      const { rotationKeys, verificationMethods, alsoKnownAs, services } = operation
      return { rotationKeys, verificationMethods, alsoKnownAs, services }
    }
  }
}

const withScheme = (host: string) => (/^https?:\/\//.test(host) ? host : `https://${host}`)

// Bytes

/** The bytes that are signed: canonical CBOR of the operation without `sig`. */
export function unsignedBytes(operation: UnsignedOperation | UnsignedTombstone | LogOperation): Uint8Array {
  const { sig: _, ...unsigned } = operation as LogOperation
  return encode(unsigned as unknown as DataObject)
}

/**
 * Identifies everything that an unsigned operation says: a holder who was shown the operation agrees to exactly that.
 */
export const agreementOn = (operation: UnsignedOperation): string => cidOfCbor(unsignedBytes(operation)).toString()

export const operationBytes = (operation: LogOperation): Uint8Array => encode(operation as unknown as DataObject)
export const operationCid = (operation: LogOperation): Cid => cidOfCbor(operationBytes(operation))
export const isSameOperation = (one: LogOperation, other: LogOperation): boolean =>
  operationCid(one).equals(operationCid(other))

const DID_SUFFIX_CHARS = 24

/** The DID that a signed genesis operation creates. */
export const genesisDid = (genesis: LogOperation): Did =>
  `did:plc:${base32(operationCid(genesis).digest).slice(0, DID_SUFFIX_CHARS)}` as Did

export const isPlcDid = (did: string): boolean => /^did:plc:[a-z2-7]{24}$/.test(did)

// Making

export const PDS_SERVICE_NAME = 'atproto_pds'
export const SIGNING_KEY_NAME = 'atproto'
export const pdsService = (endpoint: string): PlcService => ({ type: 'AtprotoPersonalDataServer', endpoint })

/** The genesis operation of an account. `rotationKeys` are in order of rank. */
export function genesisOperation(account: {
  rotationKeys: string[]
  signingKey: string
  handle: Handle
  pdsEndpoint: string
}): UnsignedOperation {
  return {
    type: 'plc_operation',
    rotationKeys: account.rotationKeys,
    verificationMethods: { [SIGNING_KEY_NAME]: account.signingKey },
    alsoKnownAs: [`at://${account.handle}`],
    services: { [PDS_SERVICE_NAME]: pdsService(account.pdsEndpoint) },
    prev: null,
  }
}

/**
 * Keys and services of permissioned data. The operations of this server leave them unchanged: a request that does not
 * name them does not mean to remove what the account uses elsewhere.
 */
const spaceNames = { verificationMethods: SPACE_KEY_NAME, services: SPACE_HOST_NAME } as const

type SpaceEntries = Pick<PlcState, keyof typeof spaceNames>

const only = <Entry>(entries: Record<string, Entry>, name: string): Record<string, Entry> =>
  Object.hasOwn(entries, name) ? { [name]: entries[name]! } : {}

/** What a state names for permissioned data. */
export const spaceEntries = ({ verificationMethods, services }: SpaceEntries): SpaceEntries => ({
  verificationMethods: only(verificationMethods, spaceNames.verificationMethods),
  services: only(services, spaceNames.services),
})

/** Names of entries for permissioned data that `before` has and `after` lacks. */
export const droppedSpaceEntries = (before: SpaceEntries, after: SpaceEntries): string[] =>
  (Object.entries(spaceNames) as [keyof SpaceEntries, string][]).flatMap(([member, name]) =>
    Object.hasOwn(before[member], name) && !Object.hasOwn(after[member], name) ? [name] : [],
  )

/** The operation after `last`, with the given parts changed; null if `last` is a tombstone. */
export function nextOperation(last: LogOperation, changes: Partial<PlcState>): UnsignedOperation | null {
  const state = stateOf(last)
  if (!state) return null
  const next = { ...state, ...changes }
  const kept = spaceEntries(state)
  return {
    type: 'plc_operation',
    ...next,
    verificationMethods: { ...kept.verificationMethods, ...next.verificationMethods },
    services: { ...kept.services, ...next.services },
    prev: operationCid(last).toString(),
  }
}

export const tombstone = (last: LogOperation): UnsignedTombstone => ({
  type: 'plc_tombstone',
  prev: operationCid(last).toString(),
})

/** Replaces the first at:// alias by the handle, or inserts it first if there is none. Other aliases stay. */
export function withHandle(alsoKnownAs: readonly string[], handle: Handle): string[] {
  const place = alsoKnownAs.findIndex((name) => name.startsWith('at://'))
  return place < 0 ? [`at://${handle}`, ...alsoKnownAs] : alsoKnownAs.with(place, `at://${handle}`)
}

export function signOperation<Unsigned extends UnsignedOperation | UnsignedTombstone>(
  operation: Unsigned,
  key: Pick<SigningKey, 'sign'>,
): Signed<Unsigned> {
  return { ...operation, sig: base64url(key.sign(unsignedBytes(operation))) }
}

/** Signs an operation if it says what its holder was shown; null if `agreement` identifies another operation. */
export const signAgreed = (
  operation: UnsignedOperation,
  agreement: string | null,
  key: Pick<SigningKey, 'sign'>,
): Operation | null => (agreementOn(operation) === agreement ? signOperation(operation, key) : null)

// Checking

export type PlcFault =
  | 'malformed'
  | 'unsupported-key'
  | 'rotation-keys'
  | 'verification-methods'
  | 'misordered'
  | 'bad-signature'
  | 'wrong-did'
  | 'too-late'

/** The first of `keys` that signed the operation; null if none did. */
export function signerOf(operation: LogOperation, keys: readonly string[]): string | null {
  const signature = parseBase64url(operation.sig)
  if (signature?.length !== SIGNATURE_BYTES) return null
  const signed = unsignedBytes(operation)
  return keys.find((key) => parseDidKey(key)?.verify(signed, signature)) ?? null
}

/** Syntax of a did:key of any type. */
const didKeyForm = /^did:key:z[1-9A-HJ-NP-Za-km-z]+$/
const isDidKey = (text: string): boolean => text.length <= MAX_DID_KEY_CHARS && didKeyForm.test(text)

/**
 * Checks that do not depend on the place in a log: 1 to 5 rotation keys on the two curves, and at most 10
 * verification methods of any key type. Null if there is no fault.
 *
 * Source: did:plc method specification 0.3, "Operation Serialization, Signing, and Validation".
 */
function contentFault(operation: LogOperation): PlcFault | null {
  const state = stateOf(operation)
  if (!state) return null
  const { rotationKeys, verificationMethods } = state
  const methods = Object.entries(verificationMethods)
  if (methods.length > MAX_VERIFICATION_METHODS || methods.some(([name]) => name.length > MAX_METHOD_NAME_CHARS))
    return 'verification-methods'
  if (!rotationKeys.every(parseDidKey) || !methods.every(([, key]) => isDidKey(key))) return 'unsupported-key'
  return rotationKeys.length >= 1 && rotationKeys.length <= MAX_ROTATION_KEYS ? null : 'rotation-keys'
}

/**
 * Whether a directory takes an operation of this size. Says nothing about operations in a log: the bound is the
 * directory's own, against abuse, and the directory may raise it.
 */
export const fitsDirectory = (operation: LogOperation | UnsignedOperation): boolean =>
  operationBytes('sig' in operation ? operation : { ...operation, sig: anySignature }).length <= MAX_OPERATION_BYTES

/** A placeholder with the length of every signature. */
const anySignature = base64url(new Uint8Array(SIGNATURE_BYTES))

export function genesisFault(did: string, operation: LogOperation): PlcFault | null {
  const state = stateOf(operation)
  if (!state || operation.prev !== null) return 'misordered'
  const fault = contentFault(operation)
  if (fault) return fault
  if (signerOf(operation, state.rotationKeys) === null) return 'bad-signature'
  return genesisDid(operation) === did ? null : 'wrong-did'
}

/** An operation of a log that is not nullified, with the instant at which the directory accepted it. */
export interface ValidOperation {
  cid: string
  createdAt: Millis
  operation: LogOperation
}

export type NextOutcome = { ok: true; nullified: string[] } | { ok: false; fault: PlcFault }

/**
 * Check whether `operation` may follow the log at the instant `now`. Returns the CIDs that it nullifies, or the fault.
 *
 * `valid` holds the operations of the DID that are not nullified, oldest first; it is empty for a genesis operation.
 *
 * Source: did:plc method specification, "Key Rotation & Account Recovery".
 */
export function checkNext(
  did: string,
  valid: readonly ValidOperation[],
  operation: LogOperation,
  now: Millis,
): NextOutcome {
  const refuse = (fault: PlcFault): NextOutcome => ({ ok: false, fault })
  if (valid.length === 0) {
    const fault = genesisFault(did, operation)
    return fault ? refuse(fault) : { ok: true, nullified: [] }
  }
  const fault = contentFault(operation)
  if (fault) return refuse(fault)
  const place = valid.findLastIndex(({ cid }) => cid === operation.prev)
  const state = place < 0 ? null : stateOf(valid[place]!.operation)
  if (!state) return refuse('misordered')
  const [disputed, ...later] = valid.slice(place + 1)
  const rank = disputed
    ? state.rotationKeys.indexOf(signerOf(disputed.operation, state.rotationKeys) ?? '')
    : state.rotationKeys.length
  if (signerOf(operation, state.rotationKeys.slice(0, Math.max(rank, 0))) === null) return refuse('bad-signature')
  if (!disputed) return { ok: true, nullified: [] }
  if (now - disputed.createdAt > RECOVERY_WINDOW_MILLIS) return refuse('too-late')
  return { ok: true, nullified: [disputed, ...later].map(({ cid }) => cid) }
}

export type LogOutcome = { ok: true; head: AuditEntry; state: PlcState | null } | { ok: false; fault: PlcFault }

/**
 * Replay a whole audit log: every entry was allowed when it arrived, and exactly the entries that later ones nullified
 * are marked as nullified. Returns the head and its state (null if tombstoned), or the first fault.
 */
export function checkAuditLog(did: string, log: readonly AuditEntry[]): LogOutcome {
  const valid: ValidOperation[] = []
  for (const { cid, createdAt, operation, did: subject } of log) {
    if (subject !== did || operationCid(operation).toString() !== cid) return { ok: false, fault: 'malformed' }
    const outcome = checkNext(did, valid, operation, Date.parse(createdAt))
    if (!outcome.ok) return outcome
    // What an entry nullifies is always the end of the list.
    valid.length -= outcome.nullified.length
    valid.push({ cid, createdAt: Date.parse(createdAt), operation })
  }
  const stands = new Set(valid.map(({ cid }) => cid))
  const head = headOf(log)
  if (!head || log.some((entry) => entry.nullified === stands.has(entry.cid))) return { ok: false, fault: 'malformed' }
  return { ok: true, head, state: stateOf(head.operation) }
}

/** The last entry that is not nullified, which sets the current state of the DID; null if there is none. */
export const headOf = (log: readonly AuditEntry[]): AuditEntry | null =>
  log.findLast((entry) => !entry.nullified) ?? null
