/** Setting another password: by the code that was mailed, by knowing the current one, or by the operator. */
import { authenticationRequired, invalidRequest } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountWithEmail, codeRefused, deleteMailedCode, hashPassword, loginRefused, loginWithPassword, mailCode, passwordFault, redeemAnonymousCode, updatePassword, type StillHolds } from '../accounts/accounts.ts'
import { signOutEverywhere, signOutPasswords } from '../auth/auth.ts'

/** Mail a code to the address, behind the answer: whether there is an account shows neither in it nor in its time. */
export function requestPasswordReset(ctx: Context, email: string): void {
  void mailResetCode(ctx, email)
}

async function mailResetCode(ctx: Context, email: string): Promise<void> {
  try {
    const account = await accountWithEmail(ctx.db, email)
    if (account) await mailCode(ctx, account.did, 'reset_password')
  } catch (error) {
    ctx.log.error('password reset not mailed', { error })
  }
}

/** Whoever forgot the password does not know what is signed in either: all of it ends. */
export async function resetPassword(ctx: Context, code: string, password: string): Promise<void> {
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
}

const wrongPassword = () => authenticationRequired('Invalid password')

/** For an account holder who knows the current password. */
export async function changePassword(ctx: Context, did: Did, current: string, next: string): Promise<void> {
  const login = await loginWithPassword(ctx, did, current)
  if (!login.ok) throw loginRefused(login.fault, wrongPassword())
  await setPassword(ctx, did, next, login.value)
}

/** Without asking for anything but, if it is given, that the present password still holds. Apps that the account lets in stay. */
export async function setPassword(ctx: Context, did: Did, password: string, stillHolds?: StillHolds): Promise<void> {
  const hash = await hashAcceptable(ctx, password)
  await ctx.db.transaction(async (tx) => {
    if (stillHolds && !(await stillHolds(tx))) throw wrongPassword()
    await replacePassword(tx, did, hash)
    await signOutPasswords(tx, did)
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
