/** Asking for a code by mail. */
import type { CallLimit, Exchange } from '../../http/endpoint.ts'
import { invalidRequest } from '../../http/errors.ts'
import { charge } from '../../http/limiting.ts'
import { originOf } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import type { Reader, Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountOf, type Account } from './account-store.ts'
import type { CodePurpose } from './mailed-code-store.ts'
import { issueCode } from './mailed-codes.ts'
import { sendMail, type MailOrder } from './mail-steps.ts'
import { addressOf, codeMail, type Told } from './mails.ts'

/** The account of a caller. Refuses when it was deleted since the caller was let in. */
export const presentAccount = ({ db }: Context, did: Did): Promise<Account> => present(db, did)

async function present(reader: Reader, did: Did): Promise<Account> {
  const account = await accountOf(reader, did)
  if (!account) throw invalidRequest('account not found')
  return account
}

/** What an account holder asks for by themselves: a code by mail. */
export const requestCode = (exchange: Exchange, did: Did, purpose: CodePurpose): Promise<void> => mailCode(exchange.ctx, did, purpose, askedBy(exchange))

/** What a mail tells of who asked for it. */
export const askedBy = (exchange: Exchange): Told => ({ at: exchange.ctx.clock.now(), origin: originOf(exchange) })

/** Make a code and mail it. Refuses when there is no account or no address, and when the mail is not sent at once. `record` runs along with making it. */
export const mailCode = (ctx: Context, did: Did, purpose: CodePurpose, told: Told, record?: (tx: Tx) => Promise<void>): Promise<void> =>
  sendMail(ctx, async (tx) => {
    await record?.(tx)
    return orderCode(ctx, tx, did, purpose, told)
  })

/** Make a code. Returns the mail with it, which takes the place of one that still waits. Refuses when there is no account or no address. */
export async function orderCode(ctx: Context, tx: Tx, did: Did, purpose: CodePurpose, told: Told): Promise<MailOrder> {
  // Read along with making the code: an address that was given up a moment ago must not get it.
  const account = await present(tx, did)
  const email = addressOf(account)
  const code = await issueCode(ctx, tx, did, purpose)
  return { key: `${purpose} ${did}`, did, mail: codeMail(ctx, { ...account, email }, purpose, code, told), carries: { did, purpose, code } }
}

/** Each account may ask for a few codes of each purpose. Counted by account: others at its network address are not held back. */
export const mailsOf = (purpose: CodePurpose): CallLimit<{ caller: { did: Did } }> => ({ name: 'requestMail', key: ({ caller }) => mailKey(caller.did, purpose) })

/** The same for a page, which shows in its form that there were too many. */
export const chargeMail = (exchange: Exchange, did: Did, purpose: CodePurpose): void => charge(exchange, 'requestMail', mailKey(did, purpose))

const mailKey = (did: Did, purpose: CodePurpose): string => `${purpose} ${did}`
