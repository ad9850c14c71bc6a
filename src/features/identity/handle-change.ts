/** Giving an account another handle: it is claimed here, then told to the directory, and then the account's. */
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

/** One change of an account at a time: its row must come to say what the directory was told last. */
const changeQueue = perContext(() => new KeyedQueue())

/**
 * The account's own handle again is allowed, and is told to the network again. `actor` is an operator who does it.
 *
 * When the directory was told and the row cannot be written, trying again goes on where it ended; so does the sweep.
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
    // The directory may say so already, or in a moment.
    isTold = isPlcDid(did)
    if (operation) await submitOnce(ctx, did, operation)
    if (!(await giveHandle(by, held, actor))) throw accountNotFound()
  } catch (error) {
    await (isTold && !isDirectoryRefusal(error) ? leaveName(ctx, held) : forgetName(ctx, held))
    throw error
  }
}

/** Null when the directory says so already. Where the service holds no rotation key, the wallet that does publishes the handle itself. */
async function handleOperation(ctx: Context, did: Did, handle: Handle): Promise<Operation | null> {
  const last = await ctx.plc.lastOperation(did)
  const state = last && stateOf(last)
  if (!state) throw didEnded()
  const alsoKnownAs = withHandle(state.alsoKnownAs, handle)
  const key = await heldRotationKey(ctx, did, state.rotationKeys)
  if (!key || alsoKnownAs.join() === state.alsoKnownAs.join()) return null
  return signOperation(nextOperation(last, { alsoKnownAs })!, key)
}

async function requirePublished(ctx: Context, did: Did, handle: Handle): Promise<null> {
  const resolution = await resolveDid(ctx, did, { live: true })
  if (!resolution.ok || claimedHandle(resolution.document) !== handle) throw invalidRequest('DID is not properly configured for handle')
  return null
}

export const didEnded = () => invalidRequest('Did is tombstoned')
