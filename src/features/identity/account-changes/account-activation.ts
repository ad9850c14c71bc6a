/** Activates and deactivates accounts for their holders and for operators, each in one transaction with the events. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { accountOf, activate, deactivate } from '../accounts/accounts.ts'
import { announceIn, revalidate, type By, type Operated } from '../account-events/account-events.ts'
import { settledKeyOf, settledTransaction } from '../account-keys/account-keys.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { resignHead } from '../../data/repo/repo.ts'
import { didFault } from './did-fitness.ts'

/**
 * Deactivate an account. Its sessions stay, so that the holder can activate it again or migrate its data. `operated`
 * names the operator who does it, if one does. Throws `InvalidRequest` if there is no such account.
 */
export async function deactivateAccount(
  exchange: Exchange,
  did: Did,
  deleteAfter: Millis | null,
  operated: Operated | null = null,
): Promise<void> {
  const { ctx } = exchange
  const actor = operated?.actor
  await ctx.db.transaction(async (tx) => {
    if (!(await accountOf(tx, did))) throw invalidRequest('Account not found')
    // Before the deactivation, because it ends the operator sessions of the account, and the caller may use one of
    // them.
    await exchange.revalidate(tx)
    await operated?.record?.(tx)
    await deactivate(ctx, tx, did, deleteAfter)
    if (deleteAfter === null) await announceIn(tx, exchange, 'deactivated', did, { actor })
    else await announceIn(tx, exchange, 'deletionScheduled', did, { actor, deleteAfter })
  })
}

/**
 * Activate an account. The head commit is signed again with the key that the identity now names, so that subscribers
 * accept the `#sync` even of an imported repository. `operated` names the operator who does it, if one does. Throws
 * `AccountNotFound` if the account is missing or taken down, and `InvalidRequest` unless the identity points here.
 */
export async function activateAccount(by: By, did: Did, operated: Operated | null = null): Promise<void> {
  const { ctx } = by
  const account = await accountOf(ctx.db, did)
  if (!account || account.takedownRef !== null) throw userNotFound()
  const fault = await didFault(ctx, did)
  if (fault) throw invalidRequest(fault)
  await settledTransaction(ctx, did, async (tx) => {
    await revalidate(by, tx)
    await operated?.record?.(tx)
    await reopen(ctx, tx, did)
    await announceIn(tx, by, 'activated', did, { actor: operated?.actor })
  })
}

/** Reads the account again, because it may have changed during the request to the directory. */
async function reopen(ctx: Context, tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  const key = await settledKeyOf(ctx, tx, did)
  if (!account || account.takedownRef !== null || !key) throw userNotFound()
  const { handle } = account
  await activate(tx, did)
  const sync = await resignHead(ctx, tx, did, key)
  await sequenceEvents(ctx, tx, [
    { type: 'account', did, status: 'active' },
    { type: 'identity', did, ...(handle === null ? {} : { handle }) },
    sync,
  ])
}

const userNotFound = () => new Refusal(400, 'AccountNotFound', 'user not found')
