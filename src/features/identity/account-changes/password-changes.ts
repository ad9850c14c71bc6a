/** Sets a new password: with a mailed code, with the current password, or by the operator. */
import { createHash } from 'node:crypto'
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../../http/errors.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Context } from '../../../platform/context.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountWithEmail } from '../accounts/accounts.ts'
import { askedBy, codeRefused, mailCodeForAnyone, redeemAnonymousCode, type Told } from '../mails/mails.ts'
import { announceIn, type Operated } from '../account-events/account-events.ts'
import { hashPassword, loginWithPassword, passwordFault, replacePassword } from '../passwords/passwords.ts'

/** No email address is longer. RFC 5321 section 4.5.3.1. */
const MAX_ADDRESS_CHARS = 320

/**
 * Mail a code to the address if it belongs to an account, unless the account has enough working codes. The lookup runs
 * after the response and every address causes the same writes, so neither the response nor its timing reveals whether
 * there is an account.
 */
export async function requestPasswordReset(exchange: Exchange, email: string): Promise<void> {
  // No account has an address with a NUL, and PostgreSQL cannot search for one.
  if (email.length > MAX_ADDRESS_CHARS || email.includes('\0')) return
  const key = createHash('sha256').update(email.toLowerCase()).digest('hex')
  const { ctx } = exchange
  const payload = { email, told: askedBy(exchange) }
  await ctx.db.transaction((tx) => ctx.steps.add(tx, passwordResetStep, { key, payload }))
}

export const passwordResetStep: StepKind<{ email: string; told: Told }> = {
  name: 'password-reset',
  concurrency: 4,
  maxSteps: 5000,
  maxTries: 10,
  firstWaitSecs: 1,
  maxWaitSecs: 60,
  async take(ctx, { payload: { email, told }, end }) {
    const account = await accountWithEmail(ctx.db, email)
    if (account) await mailCodeForAnyone(ctx, account, 'reset_password', told, end)
  },
}

/**
 * Set a new password with a mailed code, sign out everywhere and revoke all agents, because the holder may not know who
 * was signed in and which agents an intruder has confirmed. Throws `InvalidRequest` for an unacceptable password, and
 * `InvalidToken` or `ExpiredToken` for the code.
 */
export async function resetPassword(exchange: Exchange, code: string, password: string): Promise<void> {
  const { ctx } = exchange
  const hash = await hashAcceptable(ctx, password)
  const redeemed = await ctx.db.transaction(async (tx) => {
    const redeemed = await redeemAnonymousCode(ctx, tx, 'reset_password', code)
    if (redeemed.ok) {
      await replacePassword(ctx, tx, redeemed.did, { hash, why: 'reset_password' })
      await announceIn(tx, exchange, 'passwordReset', redeemed.did)
    }
    return redeemed
  })
  if (!redeemed.ok) throw codeRefused(redeemed.fault)
}

const wrongPassword = () => authenticationRequired('Invalid password')

/**
 * Set a new password for a signed-in holder who knows the current one. Throws `AuthenticationRequired` if it is wrong,
 * and `InvalidRequest` for an unacceptable new one.
 */
export async function changePassword(exchange: Exchange, did: Did, current: string, next: string): Promise<void> {
  const revalidate = await loginWithPassword(exchange, did, current, wrongPassword, { isSignedIn: true })
  await setPassword(exchange, did, next, { revalidate })
}

/**
 * Set a new password, and end every session that the old one opened; OAuth apps and agents stay. If `revalidate` is
 * given, the transaction calls it first. `operated` names the operator who does it, if one does.
 */
export async function setPassword(
  exchange: Exchange,
  did: Did,
  password: string,
  { revalidate, operated = null }: { revalidate?: Revalidate; operated?: Operated | null },
): Promise<void> {
  const { ctx } = exchange
  const hash = await hashAcceptable(ctx, password)
  await ctx.db.transaction(async (tx) => {
    await revalidate?.(tx)
    await operated?.record?.(tx)
    await replacePassword(ctx, tx, did, { hash, why: 'new_password' })
    await announceIn(tx, exchange, 'passwordChanged', did, { actor: operated?.actor })
  })
}

async function hashAcceptable(ctx: Context, password: string): Promise<string> {
  const refused = passwordFault(password)
  if (refused) throw invalidRequest(refused.fault === 'long' ? 'Invalid password length.' : refused.message)
  return hashPassword(ctx, password)
}
