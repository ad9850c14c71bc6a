/**
 * The second factor of a sign-in with the account's own password. Every sign-in with a password asks here, but only
 * once the password is known to be right: before that, no response tells whether there is a factor.
 *
 * App passwords and keys of wallets need no second factor. While an account has an authenticator app or a passkey, a
 * mailed code does not suffice: anyone who reads the mail can also set a new password.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock } from '../../../platform/database/database.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { chargeMail, codeRefused, redeemCode, requestCode } from '../../identity/mails/mails.ts'
import { attemptCode, attemptRefused } from './factor-attempts.ts'
import { hasHeldFactor, summaryOf } from './factor-summary-store.ts'
import { spendFactorRecoveryCode } from './factor-recovery-codes.ts'
import { isTotpCode, totpSpender } from './totp.ts'

/** The factors that an account accepts: a mailed code; or otherwise a code of an app, a recovery code or a passkey. */
export interface AskedFactors {
  mailed: boolean
  totp: boolean
  passkeys: boolean
}

/** Returns what a sign-in to the account needs in addition to the password; null if nothing. */
export async function askedFactors(
  { db, config }: Context,
  { did, emailAuthFactor }: Account,
): Promise<AskedFactors | null> {
  const summary = await summaryOf(db, did)
  const has = { totp: summary.totp, passkeys: summary.passkeys > 0 }
  if (hasHeldFactor(summary)) return { mailed: false, ...has }
  return emailAuthFactor || config.accounts.requireSecondFactor ? { mailed: true, ...has } : null
}

/** Mail a code to sign in with. Throws `RateLimitExceeded`, and what `mailCode` throws. */
export async function mailSignInCode(exchange: Exchange, { did }: Account): Promise<void> {
  await chargeMail(exchange, did, 'sign_in')
  await requestCode(exchange, did, 'sign_in')
}

/**
 * Check the code of a factor and spend it. Throws `InvalidToken` or `ExpiredToken`, and `RateLimitExceeded` once an
 * account has had too many wrong ones.
 */
export async function spendFactorCode(
  exchange: Exchange,
  account: Account,
  { mailed }: AskedFactors,
  typed: string,
): Promise<void> {
  const { ctx } = exchange
  const { did } = account
  if (mailed) {
    const fault = await ctx.db.transaction((tx) => redeemCode(ctx, tx, { did, purpose: 'sign_in', code: typed }))
    if (fault) throw codeRefused(fault)
    return
  }
  const code = typed.replace(/\s/g, '')
  const spendTotp = await totpSpender(ctx, ({ confirmedAt }) => confirmedAt !== null)
  const fault = await ctx.db.transactionOn(accountLock(did), async (tx) => {
    const isRecovery = !isTotpCode(code)
    const fault = await attemptCode(exchange, tx, did, () =>
      isRecovery ? spendFactorRecoveryCode(tx, did, code) : spendTotp(tx, did, code),
    )
    if (fault === null && isRecovery) await announceIn(tx, exchange, 'recoveryCodeUsed', did)
    return fault
  })
  if (fault) throw attemptRefused(exchange, fault)
}

/**
 * Let a client pass that has shown the password, if its code is right. Throws `AuthFactorTokenRequired` if the client
 * sent none, after mailing one if the account accepts mailed codes; also throws what `spendFactorCode` and
 * `mailSignInCode` throw. `readsMail`: the client also sends another mailed code, so a second one would prove nothing
 * more.
 */
export async function passFactor(
  exchange: Exchange,
  account: Account,
  code: string | undefined,
  { readsMail = false } = {},
): Promise<void> {
  const asked = await askedFactors(exchange.ctx, account)
  if (asked === null || (asked.mailed && readsMail)) return
  if (code !== undefined && code.trim() !== '') return spendFactorCode(exchange, account, asked, code)
  if (asked.mailed) await mailSignInCode(exchange, account)
  throw new Refusal(401, 'AuthFactorTokenRequired', askings[asked.mailed ? 'mailed' : asked.totp ? 'totp' : 'passkeys'])
}

const askings: Readonly<Record<keyof AskedFactors, string>> = {
  mailed: 'A sign in code has been sent to your email address',
  totp: 'A code of your authenticator app is required, or a recovery code',
  passkeys: 'A recovery code is required, because this account signs in with a passkey, which only browsers use',
}
