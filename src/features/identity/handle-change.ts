/** Giving an account another handle: the directory first, then the row and its event. */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { isUniqueViolation } from '../../platform/database.ts'
import { Lanes } from '../../platform/lanes.ts'
import { claimedHandle } from '../../protocol/did-document.ts'
import type { Did, Handle } from '../../protocol/identifiers.ts'
import { isPlcDid, nextOperation, signOperation, stateOf, withHandle } from '../../protocol/plc.ts'
import { accountAt, accountOf, setHandle } from '../accounts/accounts.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { resolveDid } from './did-resolution.ts'
import { admitHandle } from './handle-admission.ts'
import { heldRotationKey } from './identity-keys.ts'

const accountNotFound = () => invalidRequest('Account not found')
const handleTaken = (handle: Handle) => new Refusal(400, 'HandleNotAvailable', `Handle already taken: ${handle}`)

/** One change of an account at a time: its row must come to say what the directory was told last. */
const changeLanes = perContext(() => new Lanes())

/**
 * The account's own handle again is allowed, and is told to the network again.
 *
 * When the row cannot be written, the directory is ahead of it until the caller tries again.
 */
export async function changeHandle(ctx: Context, did: Did, text: string, options: { allowReserved?: boolean } = {}): Promise<void> {
  if (!(await accountOf(ctx.db, did))) throw accountNotFound()
  const handle = await admitHandle(ctx, text, did, options)
  const holder = await accountAt(ctx.db, handle)
  if (holder && holder.did !== did) throw handleTaken(handle)
  await changeLanes(ctx).run(did, () => publishAndKeep(ctx, did, handle))
  await resolveDid(ctx, did, { live: true })
}

async function publishAndKeep(ctx: Context, did: Did, handle: Handle): Promise<void> {
  if (isPlcDid(did)) await publishHandle(ctx, did, handle)
  else await requirePublished(ctx, did, handle)
  try {
    await ctx.db.transaction(async (tx) => {
      // It may have been deleted meanwhile; whoever follows the network has heard its last word then.
      if ((await setHandle(tx, did, handle)) === 0) throw accountNotFound()
      await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
    })
  } catch (error) {
    throw isUniqueViolation(error) ? handleTaken(handle) : error
  }
}

/** Where the service holds no rotation key, the wallet that does publishes the handle itself. */
async function publishHandle(ctx: Context, did: Did, handle: Handle): Promise<void> {
  const last = await ctx.plc.lastOperation(did)
  const state = last && stateOf(last)
  if (!state) throw didEnded()
  const alsoKnownAs = withHandle(state.alsoKnownAs, handle)
  const key = await heldRotationKey(ctx, did, state.rotationKeys)
  if (!key || alsoKnownAs.join() === state.alsoKnownAs.join()) return
  await ctx.plc.submit(did, signOperation(nextOperation(last, { alsoKnownAs })!, key))
}

async function requirePublished(ctx: Context, did: Did, handle: Handle): Promise<void> {
  const resolution = await resolveDid(ctx, did, { live: true })
  if (!resolution.ok || claimedHandle(resolution.document) !== handle) throw invalidRequest('DID is not properly configured for handle')
}

export const didEnded = () => invalidRequest('Did is tombstoned')
