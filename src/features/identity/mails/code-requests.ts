/** Requests for a code by mail. */
import type { CallLimit, Exchange } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { limitRefusal } from '../../../http/limit-headers.ts'
import { charge } from '../../../http/limiting.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import { placesOf, type CodePurpose } from './mailed-code-store.ts'
import { countWorkingCodes, issueCode } from './mailed-codes.ts'
import { countMail, withinBound, type MailCause } from './mail-bound.ts'
import { addMail, sendMail, type MailOrder } from './mail-steps.ts'
import { addressOf, codeMail, loadMailTexts, type Told } from './mail-bodies.ts'

/** Returns the caller's account. Throws `InvalidRequest` if it was deleted after the caller authenticated. */
export async function presentAccount(reader: Reader, did: Did): Promise<Account> {
  const account = await accountOf(reader, did)
  if (!account) throw invalidRequest('account not found')
  return account
}

/** Mail a code to the account holder at their own request. Throws as `mailCode` does. */
export const requestCode = (exchange: Exchange, did: Did, purpose: CodePurpose): Promise<void> =>
  mailCode(exchange, did, purpose, askedBy(exchange), { causedBy: 'holder' })

/** Returns the details of the request that a mail mentions. */
export const askedBy = (exchange: Exchange): Told => ({ at: exchange.ctx.clock.now(), origin: requestOrigin(exchange) })

/**
 * Issue a code and mail it. `record` runs in the same transaction. Throws `InvalidRequest` if there is no account, it
 * has no address, or the provider refuses the mail permanently, `RateLimitExceeded` if the address is not confirmed and
 * has had too many mails, and `ServiceUnavailable` if the mail cannot be sent at once.
 */
export async function mailCode(
  exchange: Exchange,
  did: Did,
  purpose: CodePurpose,
  told: Told,
  { causedBy, record }: { causedBy: 'holder' | 'operator'; record?: (tx: Tx) => Promise<void> },
): Promise<void> {
  const { ctx } = exchange
  const account = await presentAccount(ctx.db, did)
  await loadMailTexts(ctx, account)
  const counted = { did, to: account.email, what: purpose, causedBy }
  const bound = await countMail(ctx, counted)
  if (typeof bound !== 'function') throw limitRefusal(exchange, bound, 'Too many mails to an unconfirmed address')
  const { refusal } = await sendMail(ctx, async (tx) => {
    await record?.(tx)
    return orderCode(ctx, tx, { did, purpose, told, counted })
  })
  if (refusal !== null) throw refusal
}

interface OrderedCode {
  did: Did
  purpose: CodePurpose
  told: Told
  /** The address and the cause for which the mail was counted against the bound. */
  counted: { to: string | null; causedBy: MailCause }
}

/**
 * Issue a code. Returns its mail, which replaces a queued one for the same purpose. Throws `InvalidRequest` if there is
 * no account or no address.
 */
async function orderCode(
  ctx: Context,
  tx: Tx,
  { did, purpose, told, counted: { to, causedBy } }: OrderedCode,
): Promise<MailOrder> {
  // Read in the same transaction: an address that was just replaced must not receive the code.
  const account = await presentAccount(tx, did)
  const email = addressOf(account)
  const code = await issueCode(ctx, tx, did, purpose)
  return {
    key: `${purpose} ${did}`,
    did,
    what: purpose,
    causedBy,
    countedFor: to,
    mail: await codeMail(ctx, { ...account, email }, purpose, code, told),
    carries: { did, purpose, code },
  }
}

/**
 * Mail a code that anyone can ask for. `end` runs in the same transaction; if it returns false, no code is issued. A
 * code is withheld while the account has its maximum of working codes; after too many requests, while it has one
 * working code. So the holder of a confirmed address always has a working code, and gets a bounded number of mails.
 * Codes for an unconfirmed address that has had too many mails are also withheld; none is issued then, so that every
 * working code was mailed.
 */
export async function mailCodeForAnyone(
  ctx: Context,
  account: Account,
  purpose: CodePurpose,
  told: Told,
  end: (tx: Tx) => Promise<boolean>,
): Promise<void> {
  const { did } = account
  await loadMailTexts(ctx, account)
  const asked = { name: 'requestMail', key: mailKey(did, purpose) } as const
  const state = await ctx.limits.chargeShared(asked)
  const most = state?.allowed === false ? 1 : placesOf(purpose).length
  const counted = { did, to: account.email, what: purpose, causedBy: 'anyone' } as const
  try {
    await withinBound(ctx, counted, (isAllowed) =>
      ctx.db.transaction(async (tx) => {
        if (!(await end(tx)) || !isAllowed || (await countWorkingCodes(ctx, tx, did, purpose)) >= most) return false
        await addMail(ctx, tx, await orderCode(ctx, tx, { did, purpose, told, counted }))
        return true
      }),
    )
  } catch (error) {
    // The step that called this will try again.
    if (state?.allowed === true) ctx.limits.takeBack(asked)
    throw error
  }
}

/**
 * Limits codes per account and purpose, not per client address, so that other people behind the same address are
 * unaffected.
 */
export const mailsOf = (purpose: CodePurpose): CallLimit<{ caller: { did: Did } }> => ({
  name: 'requestMail',
  key: ({ caller }) => mailKey(caller.did, purpose),
})

/** Charges the same limit for a page, which shows the refusal in its form. Throws `RateLimitExceeded`. */
export const chargeMail = (exchange: Exchange, did: Did, purpose: CodePurpose): Promise<void> =>
  charge(exchange, { name: 'requestMail', key: mailKey(did, purpose) })

const mailKey = (did: Did, purpose: CodePurpose): string => `${purpose} ${did}`
