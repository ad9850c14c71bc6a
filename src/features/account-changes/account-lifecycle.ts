/** Changes of an account's state, each with the event that tells the network, in one transaction. */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import { accountOf, announce, announceIn, signingKeyOf, statusOf, updateActivation, updateTakedown } from '../accounts/accounts.ts'
import { signOutEverywhere } from '../auth/auth.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import { resignHead } from '../repo/repo.ts'
import { didFault } from './did-fitness.ts'

/** Tell in which state the account is now. */
export async function sequenceStatus(ctx: Context, tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  if (account) await sequenceEvents(ctx, tx, [{ type: 'account', did, status: statusOf(account) }])
}

/** Sessions go on: their holder may activate it again, or fetch what is to be moved away. `actor` is an operator who does it. */
export async function deactivateAccount(exchange: Exchange, did: Did, deleteAfter: Millis | null, actor?: string): Promise<void> {
  const { ctx } = exchange
  const changed = await ctx.db.transaction(async (tx) => {
    const changed = await updateActivation(tx, did, { deactivatedAt: ctx.clock.now(), deleteAfter })
    await sequenceStatus(ctx, tx, did)
    if (changed > 0 && deleteAfter !== null) await announceIn(tx, exchange, 'deletionScheduled', did, { actor, deleteAfter })
    return changed
  })
  if (changed === 0) throw invalidRequest('Account not found')
  if (deleteAfter === null) announce(exchange, 'deactivated', did, { actor })
}

/**
 * Refuses unless the identity fits. The head is signed anew with the key that the identity names now, so that whoever
 * follows the network accepts the `#sync`, also of a repository that was imported.
 */
export async function activateAccount(exchange: Exchange, did: Did, actor?: string): Promise<void> {
  const { ctx } = exchange
  const account = await accountOf(ctx.db, did)
  if (!account || account.takedownRef !== null) throw userNotFound()
  const fault = await didFault(ctx, did)
  if (fault) throw invalidRequest(fault)
  await ctx.db.transaction((tx) => activate(ctx, tx, did))
  announce(exchange, 'activated', did, { actor })
}

/** The directory took its time to answer: the account is looked at again. */
async function activate(ctx: Context, tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  const key = await signingKeyOf(ctx, tx, did)
  if (!account || account.takedownRef !== null || !key) throw userNotFound()
  const { handle } = account
  await updateActivation(tx, did, { deactivatedAt: null, deleteAfter: null })
  const sync = await resignHead(ctx, tx, did, key)
  await sequenceEvents(ctx, tx, [{ type: 'account', did, status: 'active' }, { type: 'identity', did, ...(handle === null ? {} : { handle }) }, sync])
}

const userNotFound = () => new Refusal(400, 'AccountNotFound', 'user not found')

/** Take an account down, or lift its takedown with a `ref` of null. Everybody who was logged in has to log in again. */
export async function setTakedown(ctx: Context, tx: Tx, did: Did, ref: string | null): Promise<void> {
  await updateTakedown(tx, did, ref)
  await signOutEverywhere(tx, did)
  await sequenceStatus(ctx, tx, did)
}
