/**
 * Outgoing mail is a durable step: a message that a transaction orders is sent even if the server or the mail server
 * fails meanwhile. A request that sends a mail waits only for the first try.
 */
import { HOUR_SECS } from '../../../base/durations.ts'
import { invalidRequest, serviceUnavailable, type Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { MailRefused, type Mail } from '../../../platform/network/mailer.ts'
import { hasStepFailed, type StepKind } from '../../../platform/running/steps.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { withinBound, type MailCause } from './mail-bound.ts'
import type { CodePurpose } from './mailed-code-store.ts'
import { isCodeAlive } from './mailed-codes.ts'

/** Placeholder accounts use this domain, where mail cannot be received. RFC 2606 section 2. */
const NOBODYS_DOMAIN = '.invalid'

interface OrderedMail {
  mail: Mail
  /** The code in the mail, if any: once it is void, the mail is not sent. */
  carries: { did: Did; purpose: CodePurpose; code: string } | null
  /** The mail is not sent after this instant; null if it does not expire. */
  goodUntil: Millis | null
  /**
   * The cause to which the mail is charged when it is sent; null if it was already counted. Absent in steps of an
   * earlier version.
   */
  causedBy?: MailCause | null
  /** Topic of the mail, for the log. Absent in steps of an earlier version. */
  what?: string
}

export const mailStep: StepKind<OrderedMail> = {
  name: 'mail',
  concurrency: 4,
  maxSteps: 5000,
  // The last try is four days after the first.
  maxTries: 36,
  firstWaitSecs: 5,
  maxWaitSecs: 4 * HOUR_SECS,
  isFinal: (error) => error instanceof MailRefused,
  async take(ctx, { id, did, payload: { mail, carries, goodUntil, causedBy = null, what = '' } }) {
    if (ctx.clock.now() >= (goodUntil ?? Infinity)) return
    if (carries !== null && !(await isCodeAlive(ctx, carries))) return
    await withinBound(ctx, { did, to: mail.to, what, causedBy }, async (isAllowed) => {
      if (isAllowed) await ctx.mailer.send(signed(ctx, mail), id)
      return isAllowed
    })
  },
}

/**
 * Appends the name of the service and its imprint, if one is configured, for operators who have to state who sends a
 * mail. RFC 3676 section 4.3 defines the separator line.
 */
const signed = ({ config: { links, serviceName } }: Context, mail: Mail): Mail =>
  links.imprint === null ? mail : { ...mail, text: `${mail.text}\n-- \n${serviceName}\n${links.imprint}\n` }

export interface MailOrder {
  /** The mail replaces a queued one with the same key. */
  key: string
  mail: Mail
  /** The account that the mail concerns; when the account is deleted, the mail is dropped. */
  did?: Did | null
  /** Topic of the mail, for the log. */
  what: string
  causedBy: MailCause
  /** The address, if the mail was counted before it was ordered: the bound never withholds it. */
  countedFor?: string | null
  carries?: OrderedMail['carries']
  goodUntil?: OrderedMail['goodUntil']
}

/** Queue a mail in the caller's transaction; it is sent once that is durable. */
export async function addMail(
  { steps }: Pick<Context, 'steps'>,
  tx: Tx,
  { key, mail, did = null, what, causedBy, countedFor = null, carries = null, goodUntil = null }: MailOrder,
): Promise<void> {
  if (!mail.to.endsWith(NOBODYS_DOMAIN))
    await steps.add(tx, mailStep, {
      key,
      did,
      payload: { mail, carries, goodUntil, what, causedBy: countedFor === mail.to ? null : causedBy },
    })
}

/** The outcome of the first try: `logged` if no provider is configured, `delayed` if the server will try again. */
type MailOutcome = 'sent' | 'logged' | 'delayed' | 'refused'

/** Refusals for a person who waits for the mail. */
const refusals: Partial<Record<MailOutcome, () => Refusal>> = {
  delayed: () => serviceUnavailable('The mail could not be sent yet. The server will try again.'),
  refused: () => invalidRequest('The mail was refused permanently. The server will not try again.'),
}

/** Queue a mail and wait for its first try. `order` runs in a transaction. `refusal` is for callers to throw. */
export async function sendMail(
  ctx: Context,
  order: (tx: Tx) => Promise<MailOrder>,
): Promise<{ outcome: MailOutcome; refusal: Refusal | null }> {
  const outcome = await outcomeOf(ctx, order)
  return { outcome, refusal: refusals[outcome]?.() ?? null }
}

async function outcomeOf(ctx: Context, order: (tx: Tx) => Promise<MailOrder>): Promise<MailOutcome> {
  const { key, mail } = await ctx.db.transaction(async (tx) => {
    const ordered = await order(tx)
    await addMail(ctx, tx, ordered)
    return ordered
  })
  const done = ctx.mailer.isLog === true ? 'logged' : 'sent'
  if (mail.to.endsWith(NOBODYS_DOMAIN)) return done
  const { smtpTimeoutSecs, httpTimeoutSecs } = ctx.config.email
  if (await ctx.steps.nextTry(mailStep, key, Math.max(smtpTimeoutSecs, httpTimeoutSecs) * 1000)) return done
  return (await hasStepFailed(ctx.db, mailStep, key)) ? 'refused' : 'delayed'
}
