/**
 * Computes what the identity of an account that moves here will say, and checks that a signed operation says exactly
 * that. Every byte is compared, because the old server may have built and signed the operation.
 */
import { Type } from '@sinclair/typebox'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { parseDidKey } from '../../../protocol/keys.ts'
import {
  agreementOn,
  MAX_ROTATION_KEYS,
  nextOperation,
  parseOperation,
  signAgreed,
  signerOf,
  unsignedBytes,
  type LogOperation,
  type Operation,
  type PlcState,
  type UnsignedOperation,
} from '../../../protocol/plc.ts'
import { parseSecretMultikey } from '../../../protocol/secret-multikey.ts'
import { recommendedCredentials } from '../account-changes/account-changes.ts'
import { presentIdentity } from '../identity/identity.ts'
import { keyChanges, requireFewKeys, type KeyChanges, type KeyNotes } from './key-changes.ts'
import { OldHostRefusal, type OldHost } from './old-host.ts'

const credentialsShape = Type.Object({ rotationKeys: Type.Optional(Type.Array(Type.String(), { maxItems: 64 })) })

/** Returns the rotation keys that the old server names as its own; null if it does not say. */
export async function claimedKeys(host: OldHost): Promise<readonly string[] | null> {
  try {
    const { rotationKeys } = await host.query('com.atproto.identity.getRecommendedDidCredentials', {}, credentialsShape)
    return rotationKeys?.filter((key) => parseDidKey(key) !== null) ?? null
  } catch (error) {
    if (error instanceof OldHostRefusal) return null
    throw error
  }
}

/** What the holder wants a move to change in the identity. */
export interface Wish {
  /** A key that the holder adds, which ranks above all others. */
  recoveryKey: string | null
  notes: KeyNotes
}

/** A change of the identity that the holder is asked to agree to. */
export interface IdentityChange {
  /** The identity as it is. */
  state: PlcState
  keys: KeyChanges
  /** The operation to sign; null if too many keys would stay. */
  operation: UnsignedOperation | null
  /** Identifies the content of the operation, so that the holder signs what was shown. Null if `operation` is null. */
  agreement: string | null
}

/**
 * Returns the change that points the identity to this server, based on the current state of the directory and on the
 * notes. The server, the signing key and the handle become those of this server; all other entries of the identity
 * stay. Throws as `presentIdentity`.
 */
export async function changeOf(ctx: Context, did: Did, { recoveryKey, notes }: Wish): Promise<IdentityChange> {
  const { rotationKeys: ours, alsoKnownAs = [], verificationMethods, services } = await recommendedCredentials(ctx, did)
  const present = await presentIdentity(ctx, did)
  const { state } = present
  const keys = keyChanges({ state, ours, recoveryKey, notes })
  return withOperation(present, keys, {
    alsoKnownAs: [...alsoKnownAs, ...state.alsoKnownAs.filter((name) => !name.startsWith('at://'))],
    verificationMethods: { ...state.verificationMethods, ...verificationMethods },
    services: { ...state.services, ...services },
  })
}

/** The change of an identity that leaves these keys. */
export function withOperation(
  { last, state }: { last: LogOperation; state: PlcState },
  keys: KeyChanges,
  parts: Omit<PlcState, 'rotationKeys'>,
): IdentityChange {
  const next = nextOperation(last, { ...parts, rotationKeys: keys.stay.map(({ key }) => key) })!
  const operation = keys.stay.length > MAX_ROTATION_KEYS ? null : next
  return { state, keys, operation, agreement: operation && agreementOn(operation) }
}

/**
 * Returns the operation if it is the agreed one, signed by a rotation key of the identity. Throws `InvalidRequest`
 * otherwise.
 */
export function requireAgreed({ keys, operation: agreed, state }: IdentityChange, given: unknown): Operation {
  requireFewKeys(keys)
  const operation = parseOperation(given)
  if (operation?.type !== 'plc_operation') throw invalidRequest('operation: not a PLC operation')
  if (Buffer.compare(unsignedBytes(operation), unsignedBytes(agreed!)) !== 0)
    throw invalidRequest('operation: it does not say what was agreed, or another operation came first')
  if (signerOf(operation, state.rotationKeys) === null)
    throw invalidRequest('operation: not signed by a rotation key of the identity')
  return operation
}

/** The refusal if the change is no longer the one that was shown. */
export const shownAgain = () =>
  new Refusal(409, 'Conflict', 'The changes to your identity are not those that you were shown: review its keys again')

/**
 * Sign the change that was shown with a secret key of the holder, a multikey, which is not stored. Throws
 * `InvalidRequest` for a text that is no such key, and `Conflict` if the change is no longer the one that was shown.
 */
export function signWithSecret(
  { operation }: Pick<IdentityChange, 'operation'>,
  { secretKey, agreement }: { secretKey: string; agreement: string | null },
): Operation {
  const key = parseSecretMultikey(secretKey)
  if (key === null) throw invalidRequest('secretKey: not a secret key of a supported curve')
  const signed = operation && signAgreed(operation, agreement, key)
  if (signed === null) throw shownAgain()
  return signed
}
