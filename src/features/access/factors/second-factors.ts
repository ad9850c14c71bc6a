/**
 * The second factor of a sign-in with the account's own password. Every sign-in with a password asks here, once the password is known to be right: before that, no answer tells whether there is a factor.
 *
 * App passwords and the keys of wallets need none.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { chargeMail, codeRefused, redeemCode, requestCode } from '../../identity/mails/mails.ts'

/** How the holder of an account can pass; null if the password suffices. */
export type AskedFactors = { mailed: true } | null

/** Returns what a sign-in to the account needs beside the password. */
export async function askedFactors({ emailAuthFactor }: Account): Promise<AskedFactors> {
  return emailAuthFactor ? { mailed: true } : null
}

/** Mail a code to sign in with. Throws `RateLimitExceeded`, and as `mailCode` does. */
export async function mailSignInCode(exchange: Exchange, { did }: Account): Promise<void> {
  chargeMail(exchange, did, 'sign_in')
  await requestCode(exchange, did, 'sign_in')
}

/** Check the code of a factor and spend it. Throws `InvalidToken` or `ExpiredToken`. */
export async function spendFactorCode({ ctx }: Exchange, { did }: Account, code: string): Promise<void> {
  const fault = await ctx.db.transaction((tx) => redeemCode(ctx, tx, { did, purpose: 'sign_in', code }))
  if (fault) throw codeRefused(fault)
}

/**
 * Let a client pass that has shown the password, with the code that it was given. Throws `AuthFactorTokenRequired` if
 * it sent none, once a code is mailed; and as `spendFactorCode` and `mailSignInCode`.
 */
export async function passFactor(exchange: Exchange, account: Account, code: string | undefined): Promise<void> {
  const asked = await askedFactors(account)
  if (asked === null) return
  if (code !== undefined && code.trim() !== '') return spendFactorCode(exchange, account, code)
  await mailSignInCode(exchange, account)
  throw new Refusal(401, 'AuthFactorTokenRequired', 'A sign in code has been sent to your email address')
}
