/** Changes of the status of an account (active, deactivated or taken down), each with its `#account` event. */
import { endAccess, endActivity } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { accountOf, updateActivation, updateTakedown, type Account } from './account-store.ts'

/** Add an `#account` event with the account's current status. Does nothing if the account does not exist. */
export async function addStatusEvent(ctx: Context, tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  if (account) await sequenceEvents(ctx, tx, [{ type: 'account', did, status: statusOf(account) }])
}

/**
 * Deactivate an account, and have it deleted at `deleteAfter` unless that is null. The sessions of its holder stay; if
 * the holder is an operator, the operator sessions end.
 */
export async function deactivate(ctx: Context, tx: Tx, did: Did, deleteAfter: Millis | null): Promise<void> {
  await updateActivation(tx, did, { deactivatedAt: ctx.clock.now(), deleteAfter })
  await endActivity(ctx, tx, did)
  await addStatusEvent(ctx, tx, did)
}

/**
 * Schedule the deletion of an account for `deleteAfter`, and deactivate the account now if it is active. Null cancels
 * the deletion and leaves the activation as it is.
 */
export async function scheduleDeletion(
  ctx: Context,
  tx: Tx,
  account: Account,
  deleteAfter: Millis | null,
): Promise<void> {
  const { did, deactivatedAt } = account
  if (deleteAfter === null) return void (await updateActivation(tx, did, { deactivatedAt, deleteAfter }))
  await updateActivation(tx, did, { deactivatedAt: deactivatedAt ?? ctx.clock.now(), deleteAfter })
  if (deactivatedAt === null) await endActivity(ctx, tx, did)
  if (statusOf(account) === 'active') await addStatusEvent(ctx, tx, did)
}

/** Activate an account, and cancel its deletion. The caller adds the events (`activateAccount`). */
export async function activate(tx: Tx, did: Did): Promise<void> {
  await updateActivation(tx, did, { deactivatedAt: null, deleteAfter: null })
}

/**
 * Take an account down, or lift the takedown with a null `ref`; lifting it ends the sessions from before. If the
 * account is taken down already, only the reference is replaced. Returns whether the status has changed.
 */
export async function takeDown(
  ctx: Context,
  tx: Tx,
  { did, takedownRef }: Pick<Account, 'did' | 'takedownRef'>,
  ref: string | null,
): Promise<boolean> {
  await updateTakedown(tx, did, ref)
  if ((takedownRef === null) === (ref === null)) return false
  await endAccess(ctx, tx, did, ref === null ? 'restored' : 'taken_down')
  await addStatusEvent(ctx, tx, did)
  return true
}
