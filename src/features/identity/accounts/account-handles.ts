/**
 * Gives handles to accounts and takes them away, each with the `#identity` event that tells the network of it.
 *
 * The oldest handle of an account is in its row and is the one that sessions report; the others are in
 * `further_handle`. A handle belongs to at most one account across both tables. Claim a handle before you give it
 * (`name-claims.ts`).
 */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { updateHandle, type Account } from './account-store.ts'
import {
  deleteFurtherHandle,
  deleteFurtherHandlesOf,
  furtherHandlesOf,
  insertFurtherHandle,
} from './further-handle-store.ts'

/**
 * Give an account a handle in place of all its handles. Returns false if there is no such account. Throws a unique
 * violation if the handle is the first one of another account.
 */
export async function giveHandle(ctx: Context, tx: Tx, did: Did, handle: Handle): Promise<boolean> {
  if ((await updateHandle(tx, did, handle)) === 0) return false
  await deleteFurtherHandlesOf(tx, did)
  await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
  return true
}

/** Give an account a further handle. Throws a unique violation if another account has it. */
export async function giveFurtherHandle(ctx: Context, tx: Tx, account: Account, handle: Handle): Promise<void> {
  const { did } = account
  await (account.handle === null
    ? updateHandle(tx, did, handle)
    : insertFurtherHandle(tx, did, handle, ctx.clock.now()))
  await sequenceEvents(ctx, tx, [{ type: 'identity', did, handle }])
}

/**
 * Take a handle from the account that has it. If it was the first handle, the oldest of the others becomes the first.
 */
export async function takeHandle(ctx: Context, tx: Tx, { did, handle: first }: Account, handle: Handle): Promise<void> {
  if (handle === first) await promoteNext(tx, did)
  else await deleteFurtherHandle(tx, did, handle)
  await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
}

async function promoteNext(tx: Tx, did: Did): Promise<void> {
  const [next = null] = await furtherHandlesOf(tx, did)
  if (next !== null) await deleteFurtherHandle(tx, did, next)
  await updateHandle(tx, did, next)
}
