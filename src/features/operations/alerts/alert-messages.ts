/** Messages about alerts: their text, and the steps that send them. */
import { timeInWords } from '../../../base/time-words.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Mail } from '../../../platform/network/mailer.ts'
import { wireTime, wireTimeOrNull, type Millis } from '../../../protocol/identifiers.ts'
import { addMail, sendMail } from '../../identity/mails/mails.ts'
import type { News } from './alert-state.ts'
import { postWebhook, webhookStep } from './alert-webhook.ts'

/** What a message says about one alert. */
export interface Told {
  news: News
  name: string
  subject: string
  title: string
  text: string
  remedy: string
  since: Millis
  /** When it ended; null while it lasts. */
  overSince: Millis | null
}

export interface Message {
  /** The same in every try to deliver the message. */
  id: string
  type: 'alerts.changed' | 'alerts.test'
  at: Millis
  told: readonly Told[]
}

const test = {
  name: 'test',
  subject: '',
  title: 'a test',
  text: 'An operator has asked for it with "holdfast alerts --test".',
  remedy: 'nothing',
} as const

/** How long a test waits for the receiver of the webhook. */
const TEST_MILLIS = 20_000

const beginnings: Record<News, string> = { begun: 'Alert', lasting: 'Still', over: 'Over' }
/** How many of what kind, in the subject of a message about several. */
const counted: Record<News, string> = { begun: 'begun', lasting: 'lasting', over: 'over' }

/** The section of the guide about an alert. */
const guideOf = (name: string): string => `docs/alerts.md#${name}`

const about = ({ title, subject }: Told): string => (subject === '' ? title : `${title} (${subject})`)

/** Returns a line such as `Alert: the disk is nearly full (pds.example.com)`. */
export function summaryOf({ publicUrl }: Pick<Config, 'publicUrl'>, told: readonly Told[]): string {
  const { host } = new URL(publicUrl)
  const [first, ...rest] = told
  if (first !== undefined && rest.length === 0) return `${beginnings[first.news]}: ${about(first)} (${host})`
  const counts = new Map<News, number>()
  for (const { news } of told) counts.set(news, (counts.get(news) ?? 0) + 1)
  return `Alerts: ${Array.from(counts, ([news, count]) => `${count} ${counted[news]}`).join(', ')} (${host})`
}

/** Returns the message as plain text: a paragraph for each alert. */
export function textOf(told: readonly Told[]): string {
  const paragraphs = told.map((each) => {
    const { news, name, text, remedy, since, overSince } = each
    const head = `${beginnings[news]}: ${about(each)}`
    if (overSince !== null) return `${head}\nIt began on ${timeInWords(since)}, and ended on ${timeInWords(overSince)}.`
    return `${head}\n${text}\nSince: ${timeInWords(since)}\nWhat to do: ${remedy}. See ${guideOf(name)}.`
  })
  return `${paragraphs.join('\n\n')}\n\n"holdfast alerts" lists all alerts.\n`
}

/** The body of the webhook. */
const jsonOf = (config: Config, { type, at, told }: Message): string =>
  JSON.stringify({
    type,
    timestamp: wireTime(at),
    data: {
      server: config.publicUrl,
      summary: summaryOf(config, told),
      alerts: told.map(({ news, name, subject, title, text, remedy, since, overSince }) => ({
        name,
        subject: subject === '' ? null : subject,
        state: news,
        title,
        text,
        remedy,
        guide: guideOf(name),
        since: wireTime(since),
        overSince: wireTimeOrNull(overSince),
      })),
    },
  })

function mailsOf(config: Config, { told }: Message): Mail[] {
  const mail = { subject: summaryOf(config, told), text: textOf(told) }
  return config.alerts.mailTo.map((to) => ({ to, ...mail }))
}

const webhookKey = ({ id }: Message): string => id
const orderOf = ({ id }: Message, mail: Mail) =>
  ({ key: `alert ${id} ${mail.to}`, what: 'alert', causedBy: 'operator', mail }) as const

/** Send a message, once the transaction is durable. */
export async function orderMessage(ctx: Context, tx: Tx, message: Message): Promise<void> {
  for (const mail of mailsOf(ctx.config, message)) await addMail(ctx, tx, orderOf(message, mail))
  await orderWebhook(ctx, tx, message)
}

async function orderWebhook(ctx: Context, tx: Tx, message: Message): Promise<void> {
  if (ctx.config.alerts.webhookUrl === null) return
  const payload = { id: message.id, body: jsonOf(ctx.config, message) }
  await ctx.steps.add(tx, webhookStep, { key: webhookKey(message), payload })
}

/** Send a message without the database. Returns whether at least one recipient has got it. */
export async function sendNow(ctx: Context, message: Message): Promise<boolean> {
  const sent = await Promise.all([
    ...mailsOf(ctx.config, message).map((mail) => isDone(ctx, () => ctx.mailer.send(mail, message.id))),
    ...(ctx.config.alerts.webhookUrl === null
      ? []
      : [isDone(ctx, () => postWebhook(ctx, { id: message.id, body: jsonOf(ctx.config, message) }))]),
  ])
  return sent.includes(true)
}

/** Returns whether the work succeeded. */
async function isDone(ctx: Context, work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    ctx.log.warn('could not send an alert', { error })
    return false
  }
}

/** Who was sent a test: each address, and the webhook; null if there is none. */
export interface TestOutcome {
  mail: { to: string; sent: boolean; outcome: Awaited<ReturnType<typeof sendMail>>['outcome'] }[]
  webhook: boolean | null
}

/**
 * Send a message that says it is a test, and wait for the first try to each recipient. Failed tries are repeated as
 * durable steps, so this throws if nothing can be stored.
 */
export async function sendTest(ctx: Context): Promise<TestOutcome> {
  const at = ctx.clock.now()
  const told: Told = { ...test, news: 'begun', since: at, overSince: null }
  const message: Message = { id: Bun.randomUUIDv7(), type: 'alerts.test', at, told: [told] }
  const mail: TestOutcome['mail'] = []
  for (const each of mailsOf(ctx.config, message)) {
    const { outcome } = await sendMail(ctx, async () => orderOf(message, each))
    mail.push({ to: each.to, sent: outcome === 'sent', outcome })
  }
  if (ctx.config.alerts.webhookUrl === null) return { mail, webhook: null }
  await ctx.db.transaction((tx) => orderWebhook(ctx, tx, message))
  return { mail, webhook: await ctx.steps.nextTry(webhookStep, webhookKey(message), TEST_MILLIS) }
}
