/** Asking for a code by mail. */
import type { Exchange } from '../../http/endpoint.ts'
import { charge } from '../../http/limiting.ts'
import type { Context } from '../../platform/context.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { Account } from './account-store.ts'
import type { CodePurpose } from './mailed-code-store.ts'
import { issueCode } from './mailed-codes.ts'
import { addressOf, codeMail, sendMail } from './mails.ts'

/** Make a code and mail it. Refuses when the account has no address, and when the mail cannot be sent. */
export async function mailCode(ctx: Context, account: Account, purpose: CodePurpose): Promise<void> {
  const email = addressOf(account)
  const code = await ctx.db.transaction((tx) => issueCode(ctx, tx, account.did, purpose))
  await sendMail(ctx, codeMail(ctx, { ...account, email }, purpose, code))
}

/** Each account may ask for a few codes of each purpose; who shares its network address is not held to account for that. */
export function chargeMail(exchange: Exchange, did: Did, purpose: CodePurpose): void {
  charge(exchange, 'requestMail', `${purpose} ${did}`)
}
