/**
 * Finds the operations in the log of a did:plc that someone else made, and what they changed.
 *
 * Source: did:plc method specification, "Key Rotation & Account Recovery".
 */
import type { Millis } from './identifiers.ts'
import { parseDidKey } from './keys.ts'
import {
  headOf,
  PDS_SERVICE_NAME,
  RECOVERY_WINDOW_MILLIS,
  SIGNING_KEY_NAME,
  signerOf,
  stateOf,
  type AuditEntry,
  type PlcState,
} from './plc.ts'

/** Parts of an identity. `ended`: it was tombstoned. `other`: further keys, services or names. */
export type IdentityPart = 'ended' | 'server' | 'handle' | 'signing-key' | 'rotation-keys' | 'other'

/** A change of an identity by operations that someone else made. */
export interface ForeignChange {
  /** CID of the first of them. */
  cid: string
  /** When the directory took the first of them. */
  at: Millis
  /**
   * CID of the operation before the first of them: an operation that undoes the change has to follow it. Missing in
   * older rows.
   */
  follows?: string
  /** How many operations there are. */
  operations: number
  /**
   * Parts that differ between the state before these operations and the current state, in the order of `IdentityPart`;
   * may be empty.
   */
  parts: IdentityPart[]
  /** The keys that may undo them until `undoableUntil`, as did:keys, highest first: those above the key that signed. */
  undoableBy: string[]
  undoableUntil: Millis
}

/**
 * Returns the change by operations that came after the operation `seen` and are not `own`; null if there are none, or
 * if all of them have been undone. `log` holds `seen`.
 */
export function foreignChange(
  log: readonly AuditEntry[],
  seen: string,
  own: ReadonlySet<string>,
): ForeignChange | null {
  const place = log.findIndex(({ cid }) => cid === seen)
  const foreign = log.slice(place + 1).filter(({ cid, nullified }) => !nullified && !own.has(cid))
  const [first] = foreign
  if (first === undefined) return null
  const before = log.find(({ cid }) => cid === first.operation.prev)
  const state = before === undefined ? null : stateOf(before.operation)
  const keys = state?.rotationKeys ?? []
  const at = Date.parse(first.createdAt)
  return {
    cid: first.cid,
    at,
    ...(before !== undefined && { follows: before.cid }),
    operations: foreign.length,
    parts: changedParts(state, stateOf(headOf(log)!.operation)),
    undoableBy: keys.slice(0, Math.max(keys.indexOf(signerOf(first.operation, keys) ?? ''), 0)).filter(parseDidKey),
    undoableUntil: at + RECOVERY_WINDOW_MILLIS,
  }
}

/** The value of each part, for comparison as JSON. */
const partsOf: Readonly<Record<Exclude<IdentityPart, 'ended'>, (state: PlcState) => unknown>> = {
  server: ({ services }) => services[PDS_SERVICE_NAME]?.endpoint,
  handle: ({ alsoKnownAs }) => alsoKnownAs.find((name) => name.startsWith('at://')),
  'signing-key': ({ verificationMethods }) => verificationMethods[SIGNING_KEY_NAME],
  'rotation-keys': ({ rotationKeys }) => rotationKeys,
  other: ({ alsoKnownAs, verificationMethods, services }) => [
    alsoKnownAs.filter((name) => !name.startsWith('at://')),
    sorted(verificationMethods, SIGNING_KEY_NAME),
    sorted(services, PDS_SERVICE_NAME),
  ],
}

const sorted = (entries: Record<string, unknown>, without: string) =>
  Object.entries(entries)
    .filter(([name]) => name !== without)
    .sort(([one], [other]) => (one < other ? -1 : 1))

function changedParts(before: PlcState | null, after: PlcState | null): IdentityPart[] {
  if (after === null) return ['ended']
  if (before === null) return []
  return (Object.keys(partsOf) as (keyof typeof partsOf)[]).filter(
    (part) => JSON.stringify(partsOf[part](before)) !== JSON.stringify(partsOf[part](after)),
  )
}
