/** Warns people before a quota refuses what they write: once for each share, until another quota is set. */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf } from '../accounts/accounts.ts'
import { addMail, quotaMail, type Stored } from '../mails/mails.ts'
import { raiseWarning } from './quota-store.ts'

/** Shares that are warned of, in percent. */
const shares = [95, 80]

/**
 * Call it in a transaction that adds something under a quota (0: none). It costs a comparison, and statements only when
 * a share is reached.
 */
export async function warnOfQuota(
  ctx: Context,
  tx: Tx,
  did: Did,
  { what, before, after, quota }: { what: Stored; before: number; after: number; quota: number },
): Promise<void> {
  const reached = (count: number) => shares.find((share) => count * 100 >= quota * share) ?? 0
  const percent = reached(after)
  if (quota === 0 || percent <= reached(before)) return
  if ((await raiseWarning(tx, did, what, percent)) === 0) return
  const account = await accountOf(tx, did)
  if (account === null || account.email === null) return
  const mail = await quotaMail(ctx, { ...account, email: account.email }, { what, used: after, quota })
  await addMail(ctx, tx, { key: `quota ${what} ${did}`, did, what: 'quota', causedBy: 'holder', mail })
}
