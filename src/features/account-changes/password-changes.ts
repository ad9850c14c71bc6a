/** Setting another password: by the code that was mailed, by knowing the current one, or by the operator. */
import { createHash } from 'node:crypto'
import type { Exchange } from '../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { StepKind } from '../../platform/running/steps.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountWithEmail, addMail, announceIn, askedBy, codeRefused, deleteMailedCode, hashPassword, loginRefused, loginWithPassword, orderCode, passwordFault, redeemAnonymousCode, updatePassword, type StillHolds, type Told } from '../accounts/accounts.ts'
import { signOutEverywhere, signOutPasswords } from '../auth/auth.ts'

/** No address is longer (RFC 5321, 4.5.3.1). */
const MAX_ADDRESS_CHARS = 320

/**
 * Have a code mailed to the address, if there is an account. Whether there is one is looked up behind the answer, and
 * the same is written for every address: it shows neither in the answer nor in its time.
 */
export async function requestPasswordReset(exchange: Exchange, email: string): Promise<void> {
  if (email.length > MAX_ADDRESS_CHARS) return
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
    if (!account) return
    await ctx.db.transaction(async (tx) => {
      if (await end(tx)) await addMail(ctx, tx, await orderCode(ctx, tx, account.did, 'reset_password', told))
    })
  },
}

/** Whoever forgot the password does not know what is signed in either: all of it ends. */
export async function resetPassword(exchange: Exchange, code: string, password: string): Promise<void> {
  const { ctx } = exchange
  const hash = await hashAcceptable(ctx, password)
  const redeemed = await ctx.db.transaction(async (tx) => {
    const redeemed = await redeemAnonymousCode(ctx, tx, 'reset_password', code)
    if (redeemed.ok) {
      await replacePassword(tx, redeemed.did, hash)
      await signOutEverywhere(tx, redeemed.did)
      await announceIn(tx, exchange, 'passwordReset', redeemed.did)
    }
    return redeemed
  })
  if (!redeemed.ok) throw codeRefused(redeemed.fault)
}

const wrongPassword = () => authenticationRequired('Invalid password')

/** For an account holder who knows the current password. */
export async function changePassword(exchange: Exchange, did: Did, current: string, next: string): Promise<void> {
  const login = await loginWithPassword(exchange, did, current)
  if (!login.ok) throw loginRefused(login.fault, wrongPassword())
  await setPassword(exchange, did, next, { stillHolds: login.value })
}

/**
 * Without asking for anything but, if it is given, that the present password still holds. Apps that the account lets in
 * stay. `actor` is an operator who does it.
 */
export async function setPassword(exchange: Exchange, did: Did, password: string, { stillHolds, actor }: { stillHolds?: StillHolds; actor?: string }): Promise<void> {
  const { ctx } = exchange
  const hash = await hashAcceptable(ctx, password)
  await ctx.db.transaction(async (tx) => {
    if (stillHolds && !(await stillHolds(tx))) throw wrongPassword()
    await replacePassword(tx, did, hash)
    await signOutPasswords(tx, did)
    await announceIn(tx, exchange, 'passwordChanged', did, { actor })
  })
}

async function hashAcceptable(ctx: Context, password: string): Promise<string> {
  const refused = passwordFault(password)
  if (refused) throw invalidRequest(refused.fault === 'long' ? 'Invalid password length.' : refused.message)
  return hashPassword(ctx, password)
}

async function replacePassword(tx: Tx, did: Did, hash: string): Promise<void> {
  await updatePassword(tx, did, hash)
  await deleteMailedCode(tx, did, 'reset_password')
}
