/**
 * The bound on mails to an address that no account has confirmed. The address may be a stranger's: anyone can enter any
 * address in an account and cause mail to it, and many accounts can use the same address one after another.
 */
import { createHash } from 'node:crypto'
import type { Context } from '../../../platform/context.ts'
import type { LimitName, LimitState } from '../../../platform/running/limits.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountWithEmail } from '../accounts/accounts.ts'

/**
 * Who causes a mail:
 * - `holder`: someone who has proven to be the holder of the account, by a session, a password or a mailed code;
 * - `anyone`: someone who has proven nothing. All these share a part of the bound, so that they cannot use up the rest;
 * - `operator`: an operator, or the server on its own. Not bounded;
 * - `former`: an event of an account, of which the holder is notified at an address that the account has replaced, or
 *   had confirmed at the time. Not bounded: an attacker who replaces the address could otherwise use up the bound with
 *   other accounts, in which the attacker enters the address once it is free.
 */
export type MailCause = 'holder' | 'anyone' | 'operator' | 'former'

const boundsOf: Readonly<Record<MailCause, readonly LimitName[]>> = {
  holder: ['unconfirmedAddress'],
  anyone: ['unconfirmedAddress', 'unconfirmedByAnyone'],
  operator: [],
  former: [],
}

/** What the bound needs to know about a mail. */
export interface BoundMail {
  /** The account that causes it. */
  did: Did | null
  /** Null if the account has no address, or there is no account. */
  to: string | null
  /** Topic of the mail, for the log. */
  what: string
  /** Null if the mail is already counted. */
  causedBy: MailCause | null
}

/**
 * Count a mail. Returns a function that takes the count back. Returns the bound, and logs it, if the address has had
 * too many mails: then the caller must withhold the mail. Do not call it within a transaction, because it may wait for
 * other nodes.
 */
export async function countMail(
  ctx: Context,
  { did, to, what, causedBy }: BoundMail,
): Promise<(() => void) | LimitState> {
  const bounds = causedBy === null ? [] : boundsOf[causedBy]
  if (to === null || bounds.length === 0) return () => {}
  const account = await accountWithEmail(ctx.db, to)
  if (account !== null && account.emailConfirmedAt !== null) return () => {}
  const key = createHash('sha256').update(to.toLowerCase()).digest('base64url')
  const charges = bounds.map((name) => ({ name, key }))
  const state = await ctx.limits.chargeShared(...charges)
  if (state?.allowed !== false) return () => ctx.limits.takeBack(...charges)
  ctx.log.info('mail withheld: too many to an unconfirmed address', { did, detail: what })
  return state
}

/**
 * Run `act`, which sends or orders a mail, and count the mail if `act` returns true. `act` gets whether the mail is
 * allowed; if it is not, `act` must return false.
 */
export async function withinBound(
  ctx: Context,
  mail: BoundMail,
  act: (isAllowed: boolean) => Promise<boolean>,
): Promise<boolean> {
  const counted = await countMail(ctx, mail)
  const isAllowed = typeof counted === 'function'
  let isMailed = false
  try {
    isMailed = await act(isAllowed)
    return isMailed
  } finally {
    if (isAllowed && !isMailed) counted()
  }
}
