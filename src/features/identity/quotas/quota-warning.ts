/** Warns people before a quota refuses their writes: once for each share of the quota, until another quota is set. */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf } from '../accounts/accounts.ts'
import { addMail, quotaMail, type Stored } from '../mails/mails.ts'
import { raiseWarning } from './quota-store.ts'

/** Shares of a quota at which the holder is warned, in percent. */
const shares = [95, 80]

/** How much of a quota (0: none) is used, before and after something is added. */
export interface Usage {
  before: number
  after: number
  quota: number
}

/** The highest share that is reached; 0 if none is. */
const shareOf = (count: number, quota: number): number => shares.find((share) => count * 100 >= quota * share) ?? 0

/** Whether an addition reaches a share at which the holder is warned. */
export const reachesShare = ({ before, after, quota }: Usage): boolean =>
  quota > 0 && shareOf(after, quota) > shareOf(before, quota)

/**
 * Call it in a transaction that adds something under a quota. It costs a comparison, and statements only when a share
 * is reached.
 */
export async function warnOfQuota(
  ctx: Context,
  tx: Tx,
  did: Did,
  { what, ...usage }: Usage & { what: Stored },
): Promise<void> {
  if (!reachesShare(usage)) return
  const { after, quota } = usage
  if ((await raiseWarning(tx, did, what, shareOf(after, quota))) === 0) return
  const account = await accountOf(tx, did)
  if (account === null || account.email === null) return
  const mail = await quotaMail(ctx, { ...account, email: account.email }, { what, used: after, quota })
  await addMail(ctx, tx, { key: `quota ${what} ${did}`, did, what: 'quota', causedBy: 'holder', mail })
}
