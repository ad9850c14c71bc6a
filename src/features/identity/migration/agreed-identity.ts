/**
 * What the identity of an account that moves here will name, and whether a signed operation says just that. The old
 * server signs it, so every byte is compared.
 */
import { Type } from '@sinclair/typebox'
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  MAX_ROTATION_KEYS,
  nextOperation,
  parseOperation,
  parseState,
  SIGNING_KEY_NAME,
  signerOf,
  stateOf,
  unsignedBytes,
  type LogOperation,
  type Operation,
  type PlcState,
  type UnsignedOperation,
} from '../../../protocol/plc.ts'
import { recommendedCredentials } from '../account-changes/account-changes.ts'
import { didEnded } from '../identity/identity.ts'
import { OldHostRefusal, type OldHost } from './old-host.ts'

const credentialsShape = Type.Object({ rotationKeys: Type.Optional(Type.Array(Type.String(), { maxItems: 64 })) })

/**
 * Returns the agreed state: the server, the signing key and the handle are those of here; what the identity names for
 * other purposes stays. Rotation keys are, by rank, `recoveryKey`, those that the holder has now, and those of this
 * server. The keys of the old server go: those that it recommends, or all if it is gone or does not say.
 *
 * Throws `InvalidRequest` if the identity has ended or would have too many keys, and `PlcDirectoryError`.
 */
export async function agreedState(
  ctx: Context,
  did: Did,
  recoveryKey: string | null,
  host: OldHost | null,
): Promise<PlcState> {
  const state = stateOf(await lastOperation(ctx, did))
  if (!state) throw didEnded()
  const { rotationKeys, alsoKnownAs = [], verificationMethods, services } = await recommendedCredentials(ctx, did)
  const theirs = host === null ? null : await keysOf(host)
  const isTheirs = (key: string) =>
    theirs === null || theirs.includes(key) || key === state.verificationMethods[SIGNING_KEY_NAME]
  const own = state.rotationKeys.filter((key) => !isTheirs(key))
  const keys = [...new Set([...(recoveryKey === null ? [] : [recoveryKey]), ...own, ...rotationKeys])]
  if (keys.length > MAX_ROTATION_KEYS)
    throw invalidRequest(
      `The identity would have ${keys.length} rotation keys, and the directory takes ${MAX_ROTATION_KEYS}`,
    )
  return {
    rotationKeys: keys,
    alsoKnownAs: [...alsoKnownAs, ...state.alsoKnownAs.filter((name) => !name.startsWith('at://'))],
    verificationMethods: { ...state.verificationMethods, ...verificationMethods },
    services: { ...state.services, ...services },
  }
}

/** Returns null if the old server does not say. */
async function keysOf(host: OldHost): Promise<readonly string[] | null> {
  try {
    const { rotationKeys } = await host.query('com.atproto.identity.getRecommendedDidCredentials', {}, credentialsShape)
    return rotationKeys ?? null
  } catch (error) {
    if (error instanceof OldHostRefusal) return null
    throw error
  }
}

async function lastOperation({ plc }: Context, did: Did): Promise<LogOperation> {
  const last = await plc.lastOperation(did)
  if (!last) throw didEnded()
  return last
}

/** Parses the state that a move stored. */
export const storedState = (wanted: string): PlcState => parseState(JSON.parse(wanted))!

/** Returns the operation to sign, which sets the state. Throws `InvalidRequest` if the identity has ended. */
export async function operationToSign(ctx: Context, did: Did, wanted: PlcState): Promise<UnsignedOperation> {
  const next = nextOperation(await lastOperation(ctx, did), wanted)
  if (!next) throw didEnded()
  return next
}

/**
 * Returns the operation if it sets just the agreed state, follows the newest operation of the directory, and is signed
 * by a rotation key of the identity. Throws `InvalidRequest` otherwise, and `PlcDirectoryError`.
 */
export async function requireAgreed(ctx: Context, did: Did, wanted: PlcState, given: unknown): Promise<Operation> {
  const operation = parseOperation(given)
  if (operation?.type !== 'plc_operation') throw invalidRequest('operation: not a PLC operation')
  const last = await lastOperation(ctx, did)
  const agreed = nextOperation(last, wanted)
  const state = stateOf(last)
  if (!agreed || !state) throw didEnded()
  if (Buffer.compare(unsignedBytes(operation), unsignedBytes(agreed)) !== 0)
    throw invalidRequest('operation: it does not say what was agreed, or another operation came first')
  if (signerOf(operation, state.rotationKeys) === null)
    throw invalidRequest('operation: not signed by a rotation key of the identity')
  return operation
}
