/**
 * Mail on its way: a durable step, so that a message which a transaction asks for is sent whatever happens to the
 * server or to the mail server. Whoever waits for a person's answer waits for its first try, and no longer.
 */
import { serviceUnavailable } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { MailRefused, type Mail } from '../../platform/network/mailer.ts'
import type { StepKind } from '../../platform/running/steps.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { CodePurpose } from './mailed-code-store.ts'
import { isCodeAlive } from './mailed-codes.ts'

/** Addresses under it stand for accounts that nobody reads mail for. */
const NOBODYS_DOMAIN = '.invalid'

interface OrderedMail {
  mail: Mail
  /** What the mail carries, if it does: it is not worth sending once that is void. */
  carries: { did: Did; purpose: CodePurpose; code: string } | null
}

export const mailStep: StepKind<OrderedMail> = {
  name: 'mail',
  concurrency: 4,
  maxSteps: 5000,
  // The last of these is four days after the first.
  maxTries: 36,
  firstWaitSecs: 5,
  maxWaitSecs: 4 * 3600,
  isFinal: (error) => error instanceof MailRefused,
  async take(ctx, { id, payload: { mail, carries } }) {
    if (carries === null || (await isCodeAlive(ctx, carries))) await ctx.mailer.send(mail, id)
  },
}

export interface MailOrder {
  /** What it is about: one that still waits under the same key is replaced. */
  key: string
  mail: Mail
  /** The account that it is about, and with whose end it is not to be sent any more. */
  did?: Did | null
  carries?: OrderedMail['carries']
}

/** Have a mail sent once the caller's transaction is durable. */
export async function addMail({ steps }: Pick<Context, 'steps'>, tx: Tx, { key, mail, did = null, carries = null }: MailOrder): Promise<void> {
  if (!mail.to.endsWith(NOBODYS_DOMAIN)) await steps.add(tx, mailStep, { key, did, payload: { mail, carries } })
}

/**
 * Add a mail, and wait for whether it is sent. `order` is called in a transaction. Refuses with 503 when it is not sent
 * at once; it is tried again all the same.
 */
export async function sendMail(ctx: Context, order: (tx: Tx) => Promise<MailOrder>): Promise<void> {
  const { key, mail } = await ctx.db.transaction(async (tx) => {
    const ordered = await order(tx)
    await addMail(ctx, tx, ordered)
    return ordered
  })
  if (mail.to.endsWith(NOBODYS_DOMAIN)) return
  const { smtpTimeoutSecs, httpTimeoutSecs } = ctx.config.email
  const isSent = await ctx.steps.nextTry(mailStep, key, Math.max(smtpTimeoutSecs, httpTimeoutSecs) * 1000)
  if (!isSent) throw serviceUnavailable('The mail could not be sent yet. It will be tried again.')
}
