/**
 * The bound on mails to an address that no account has confirmed. It may be a stranger's: an account gives any address
 * as its own and gets mail there, and many accounts can give the same one after another.
 */
import { createHash } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { LimitName } from '../../../platform/running/limits.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountWithEmail } from '../accounts/accounts.ts'

/**
 * Who causes a mail:
 * - `holder`: someone who has proven to be the holder of the account, by a session, a password or a mailed code;
 * - `anyone`: someone who has proven nothing. They share a part of the bound, so that they never use up the rest;
 * - `operator`: an operator, or the server on its own. The bound does not hold for them;
 * - `former`: something happens to an account, and its holder is told at an address that the account has replaced, or
 *   had confirmed when it happened. Not bounded either: an attacker who replaces the address could use the bound up,
 *   with accounts that give the address once it is free.
 */
export type MailCause = 'holder' | 'anyone' | 'operator' | 'former'

const boundsOf: Readonly<Record<MailCause, readonly LimitName[]>> = {
  holder: ['unconfirmedAddress'],
  anyone: ['unconfirmedAddress', 'unconfirmedByAnyone'],
  operator: [],
  former: [],
}

/** A mail as the bound sees it. */
export interface BoundMail {
  /** The account that causes it. */
  did: Did | null
  /** Null if the account has no address, or there is no account. */
  to: string | null
  /** What it is about, for the log. */
  what: string
  /** Null if it is counted already. */
  causedBy: MailCause | null
}

/**
 * Count a mail. Returns what takes it back, or null if the address has had too many: the mail is to be withheld, which
 * is logged. Not within a transaction, because it may wait for other nodes.
 */
export async function countMail(ctx: Context, { did, to, what, causedBy }: BoundMail): Promise<(() => void) | null> {
  const bounds = causedBy === null ? [] : boundsOf[causedBy]
  if (to === null || bounds.length === 0) return () => {}
  const account = await accountWithEmail(ctx.db, to)
  if (account !== null && account.emailConfirmedAt !== null) return () => {}
  const key = createHash('sha256').update(to.toLowerCase()).digest('base64url')
  const charges = bounds.map((name) => ({ name, key }))
  if ((await ctx.limits.chargeShared(...charges))?.allowed !== false) return () => ctx.limits.takeBack(...charges)
  ctx.log.info('mail withheld: too many to an unconfirmed address', { did, detail: what })
  return null
}

/**
 * Do what sends or orders a mail, and count that if it returns true. It is told whether the mail is allowed; if not, it
 * must return false.
 */
export async function withinBound(
  ctx: Context,
  mail: BoundMail,
  act: (isAllowed: boolean) => Promise<boolean>,
): Promise<boolean> {
  const takeBack = await countMail(ctx, mail)
  let isMailed = false
  try {
    isMailed = await act(takeBack !== null)
    return isMailed
  } finally {
    if (!isMailed) takeBack?.()
  }
}
