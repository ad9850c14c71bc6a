/** Setting another password: by the code that was mailed, by knowing the current one, or by the operator. */
import type { Exchange } from '../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountWithEmail, announce, askedBy, codeRefused, deleteMailedCode, hashPassword, loginRefused, loginWithPassword, mailCode, passwordFault, redeemAnonymousCode, updatePassword, type StillHolds } from '../accounts/accounts.ts'
import { signOutEverywhere, signOutPasswords } from '../auth/auth.ts'

/** Mail a code to the address, behind the answer: whether there is an account shows neither in it nor in its time. */
export function requestPasswordReset(exchange: Exchange, email: string): void {
  const { ctx } = exchange
  const told = askedBy(exchange)
  ctx.background.run('mail to reset a password', async () => {
    const account = await accountWithEmail(ctx.db, email)
    if (account) await mailCode(ctx, account.did, 'reset_password', told)
  })
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
    }
    return redeemed
  })
  if (!redeemed.ok) throw codeRefused(redeemed.fault)
  announce(exchange, 'passwordReset', redeemed.did)
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
  })
  announce(exchange, 'passwordChanged', did, { actor })
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
