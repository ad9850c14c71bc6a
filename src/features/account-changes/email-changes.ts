/** Changing and confirming the account's address. */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { addressOf, type CodeFault, codeRefused, deleteMailedCodesOf, emailNotSupported, mailCode, parseEmailAddress, presentAccount, redeemCode, requireLastingAddress, updateEmail, updateEmailConfirmed } from '../accounts/accounts.ts'
import { isEmailUnderWay } from '../identity/identity.ts'

/**
 * Store another address, which nobody has confirmed yet; codes sent to the old one are void. `token` is needed where
 * the old address is confirmed, and has to be right where it is given.
 */
export async function changeEmail(ctx: Context, did: Did, wanted: string, token: string | undefined): Promise<void> {
  const { emailConfirmedAt } = await presentAccount(ctx, did)
  if (emailConfirmedAt !== null && token === undefined) throw new Refusal(400, 'TokenRequired', 'confirmation token required')
  await requireLastingAddress(ctx, wanted)
  await replaceEmail(ctx, did, wanted, async (tx) => (token === undefined ? null : redeemCode(ctx, tx, { did, purpose: 'update_email', code: token })))
}

/** Store another address if `permits`, in the same transaction, finds no fault. */
export async function replaceEmail(ctx: Context, did: Did, wanted: string, permits: (tx: Tx) => Promise<CodeFault | null>): Promise<void> {
  const email = parseEmailAddress(wanted)
  if (email === null) throw emailNotSupported()
  try {
    const fault = await ctx.db.transaction(async (tx) => {
      const fault = await permits(tx)
      if (fault) return fault
      if (await isEmailUnderWay(tx, email, ctx.clock.now())) throw emailTaken()
      await updateEmail(tx, did, email)
      await deleteMailedCodesOf(tx, did)
      return null
    })
    if (fault) throw codeRefused(fault)
  } catch (error) {
    throw isUniqueViolation(error) ? emailTaken() : error
  }
}

const emailTaken = () => invalidRequest('This email address is already in use, please use a different email.')

/** Whether the change needs a code. Then it is on its way to the address that the account has now. */
export async function requestEmailUpdate(ctx: Context, did: Did): Promise<boolean> {
  const account = await presentAccount(ctx, did)
  addressOf(account)
  if (account.emailConfirmedAt === null) return false
  await mailCode(ctx, did, 'update_email')
  return true
}

export async function confirmEmail(ctx: Context, did: Did, address: string, code: string): Promise<void> {
  const { email } = await presentAccount(ctx, did)
  if (email !== address.toLowerCase()) throw new Refusal(400, 'InvalidEmail', 'invalid email')
  const fault = await ctx.db.transaction(async (tx) => {
    const fault = await redeemCode(ctx, tx, { did, purpose: 'confirm_email', code })
    if (!fault) await updateEmailConfirmed(tx, did, ctx.clock.now())
    return fault
  })
  if (fault) throw codeRefused(fault)
}
