/** Turns the mailed code at sign-in on and off. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountNotFound, accountOf } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { codeRefused, redeemCode } from '../../identity/mails/mails.ts'
import type { RevalidateIn } from './passkeys.ts'
import { deleteTrustedBrowsersOf } from './trusted-browser-store.ts'
import { updateEmailAuthFactor } from './email-factor-store.ts'

/** What shows that the holder asks: a mailed code, or that they have just signed in again. */
type Proof = { code: string | undefined } | { revalidate: RevalidateIn }

/**
 * Turn the mailed code at each sign-in with the password on or off. An unconfirmed address gets no codes. Turning it
 * off takes a sign-in with it, or a code of the purpose `update_email`, so that a stolen session does not suffice.
 *
 * Throws `InvalidRequest` if the address is not confirmed, and `TokenRequired`, `InvalidToken` or `ExpiredToken`.
 */
export async function setEmailFactor(exchange: Exchange, did: Did, isWanted: boolean, proof: Proof): Promise<void> {
  const { ctx } = exchange
  const fault = await ctx.db.transaction(async (tx) => {
    await ('revalidate' in proof ? proof : exchange).revalidate(tx)
    const account = await accountOf(tx, did)
    if (account === null) throw accountNotFound()
    const isConfirmed = account.emailConfirmedAt !== null
    if (isWanted && !isConfirmed) throw invalidRequest('Confirm your email address first')
    if (isWanted === account.emailAuthFactor && isConfirmed) return null
    if (!isWanted && isConfirmed && 'code' in proof) {
      if (proof.code === undefined) throw new Refusal(400, 'TokenRequired', 'confirmation token required')
      const fault = await redeemCode(ctx, tx, { did, purpose: 'update_email', code: proof.code })
      if (fault) return fault
    }
    await updateEmailAuthFactor(tx, did, isWanted)
    await deleteTrustedBrowsersOf(tx, did)
    if (isConfirmed) await announceIn(tx, exchange, isWanted ? 'emailFactorOn' : 'emailFactorOff', did)
    return null
  })
  if (fault) throw codeRefused(fault)
}
