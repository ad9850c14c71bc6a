/**
 * Gives an account another handle. The handle is claimed in the database first, then published in the PLC directory,
 * and then given to the account.
 */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import type { Did, Handle } from '../../protocol/identifiers.ts'
import { isPlcDid, nextOperation, signOperation, stateOf, withHandle, type Operation } from '../../protocol/plc.ts'
import { accountAt, accountOf, type By } from '../accounts/accounts.ts'
import { resolveDid } from './did-resolution.ts'
import { admitHandle } from './handle-admission.ts'
import { heldRotationKey } from './identity-keys.ts'
import { claimName, forgetName, giveHandle, isDirectoryRefusal, leaveName, submitOnce, type HeldName } from './name-claims.ts'

const accountNotFound = () => invalidRequest('Account not found')
const handleTaken = (handle: Handle) => new Refusal(400, 'HandleNotAvailable', `Handle already taken: ${handle}`)

/** One change at a time per account, so that its row ends up with the handle that the directory received last. */
const changeQueue = perContext(() => new KeyedQueue())

/**
 * Change the handle of an account. The handle that it already has is allowed and emits another `#identity` event.
 * `actor` is the operator who makes the change.
 *
 * If the directory has the handle but the account row could not be written, a second call or the sweep completes the
 * change.
 *
 * Throws `InvalidRequest` if the account does not exist, the DID is tombstoned, or a did:web does not name the handle;
 * what `admitHandle` throws; `HandleNotAvailable` if the handle is taken; `PlcDirectoryError` if the directory fails or
 * refuses; and `LookupsFull` if too many names are being looked up.
 */
export async function changeHandle(
  by: By,
  did: Did,
  text: string,
  { actor, ...options }: { allowReserved?: boolean; actor?: string } = {},
): Promise<void> {
  const { ctx } = by
  if (!(await accountOf(ctx.db, did))) throw accountNotFound()
  const handle = await admitHandle(ctx, text, did, options)
  await changeQueue(ctx).run(did, async () => {
    const held = await claimName(ctx, { handle, did, prepared: null }, async (tx) => {
      const holder = await accountAt(tx, handle)
      if (holder && holder.did !== did) throw handleTaken(handle)
    })
    if (!held) throw handleTaken(handle)
    await publishAndGive(by, held, actor)
  })
  await resolveDid(ctx, did, { live: true })
}

async function publishAndGive(by: By, held: HeldName, actor?: string): Promise<void> {
  const { ctx } = by
  const { did, handle } = held
  let isTold = false
  try {
    const operation = isPlcDid(did) ? await handleOperation(ctx, did, handle) : await requirePublished(ctx, did, handle)
    // From here on, the directory may name the handle already, or soon.
    isTold = isPlcDid(did)
    if (operation) await submitOnce(ctx, did, operation)
    if (!(await giveHandle(by, held, actor))) throw accountNotFound()
  } catch (error) {
    await (isTold && !isDirectoryRefusal(error) ? leaveName(ctx, held) : forgetName(ctx, held))
    throw error
  }
}

/**
 * Returns the operation that names the handle, or null if there is nothing to submit: the directory names it already,
 * or this service holds no rotation key of the DID and the wallet that holds one publishes the handle itself.
 */
async function handleOperation(ctx: Context, did: Did, handle: Handle): Promise<Operation | null> {
  const last = await ctx.plc.lastOperation(did)
  const state = last && stateOf(last)
  if (!state) throw didEnded()
  const alsoKnownAs = withHandle(state.alsoKnownAs, handle)
  const key = await heldRotationKey(ctx, did, state.rotationKeys)
  if (!key || alsoKnownAs.join() === state.alsoKnownAs.join()) return null
  return signOperation(nextOperation(last, { alsoKnownAs })!, key)
}

/** Throws `InvalidRequest` unless the document that is published now names the handle. */
async function requirePublished(ctx: Context, did: Did, handle: Handle): Promise<null> {
  const resolution = await resolveDid(ctx, did, { live: true })
  if (!resolution.ok || claimedHandle(resolution.document) !== handle) throw invalidRequest('DID is not properly configured for handle')
  return null
}

/** Also the refusal for a DID that the directory does not know. */
export const didEnded = () => invalidRequest('Did is tombstoned')
