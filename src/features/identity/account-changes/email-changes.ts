/** Changes and confirms the account's email address. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { isUniqueViolation, type Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { addressOf, codeRefused, presentAccount, redeemCode, requestCode } from '../mails/mails.ts'
import { AddressTaken, emailNotSupported, parseEmailAddress, requireLastingAddress } from '../addresses/addresses.ts'
import { announceIn } from '../account-events/account-events.ts'
import { accountOf, confirmAddress, replaceAddress, type Account } from '../accounts/accounts.ts'
import { isEmailPromised } from '../handles/handles.ts'

/**
 * Set a new address, not yet confirmed, and void the codes sent to the old one. `token`, a mailed code, is required if
 * the old address is confirmed, and checked whenever it is given. Throws `TokenRequired`, `InvalidToken`,
 * `ExpiredToken`, or `InvalidRequest` if the address is invalid, unwanted or taken.
 */
export async function changeEmail(
  exchange: Exchange,
  did: Did,
  wanted: string,
  token: string | undefined,
): Promise<void> {
  const { ctx } = exchange
  const requireCode = (account: Account | null) => {
    if (account !== null && account.emailConfirmedAt !== null && token === undefined)
      throw new Refusal(400, 'TokenRequired', 'confirmation token required')
  }
  requireCode(await presentAccount(ctx.db, did))
  const email = parseEmailAddress(wanted)
  if (email === null) throw emailNotSupported()
  await requireLastingAddress(ctx, email)
  await replaceEmail(exchange, did, email, async (tx) => {
    if (token !== undefined) return redeemCode(ctx, tx, { did, purpose: 'update_email', code: token })
    // The address may have been confirmed meanwhile.
    requireCode(await accountOf(tx, did))
    return null
  })
}

/**
 * Set a new address if `permits`, which runs in the same transaction, returns null. `actor` is the operator, if an
 * operator makes the change. Throws as `changeEmail` does.
 */
export async function replaceEmail(
  exchange: Exchange,
  did: Did,
  wanted: string,
  permits: (tx: Tx) => ReturnType<typeof redeemCode>,
  actor?: string,
): Promise<void> {
  const { ctx } = exchange
  const email = parseEmailAddress(wanted)
  if (email === null) throw emailNotSupported()
  try {
    const fault = await ctx.db.transaction(async (tx) => {
      await exchange.revalidate(tx)
      const fault = await permits(tx)
      if (fault) return fault
      if (await isEmailPromised(tx, email, ctx.clock.now())) throw emailTaken(email)
      const isConfirmed = (await accountOf(tx, did))?.emailConfirmedAt != null
      const before = await replaceAddress(ctx, tx, did, email)
      // No mail if an operator replaces the address: the holder may have lost the old mailbox.
      if (before !== email)
        await announceIn(tx, exchange, 'emailChanged', did, {
          actor,
          to: actor === undefined ? before : null,
          isConfirmed,
        })
      return null
    })
    if (fault) throw codeRefused(fault)
  } catch (error) {
    throw isUniqueViolation(error) ? emailTaken(email) : error
  }
}

const emailTaken = (email: string) =>
  new AddressTaken(email, invalidRequest('This email address is already in use, please use a different email.'))

/** Returns whether a change requires a code. If so, the code has been mailed to the account's current address. */
export async function requestEmailUpdate(exchange: Exchange, did: Did): Promise<boolean> {
  const account = await presentAccount(exchange.ctx.db, did)
  addressOf(account)
  if (account.emailConfirmedAt === null) return false
  await requestCode(exchange, did, 'update_email')
  return true
}

/**
 * Confirm the account's address. Throws `InvalidEmail` if `address` is not the account's, and `InvalidToken` or
 * `ExpiredToken` for the code.
 */
export async function confirmEmail(exchange: Exchange, did: Did, address: string, code: string): Promise<void> {
  const { ctx } = exchange
  const { email } = await presentAccount(ctx.db, did)
  if (email !== address.toLowerCase()) throw new Refusal(400, 'InvalidEmail', 'invalid email')
  const fault = await ctx.db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    const fault = await redeemCode(ctx, tx, { did, purpose: 'confirm_email', code })
    if (fault) return fault
    await confirmAddress(ctx, tx, did)
    await announceIn(tx, exchange, 'emailConfirmed', did)
    return null
  })
  if (fault) throw codeRefused(fault)
}
