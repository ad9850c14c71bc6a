/** Messages about alerts: their text, and the steps that send them. */
import { timeInWords } from '../../../base/time-words.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { addMail } from '../../identity/mails/mails.ts'
import type { News } from './alert-state.ts'

/** What a message tells of one alert. */
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
  /** The same in every try to deliver it. */
  id: string
  at: Millis
  told: readonly Told[]
}

const beginnings: Record<News, string> = { begun: 'Alert', lasting: 'Still', over: 'Over' }
/** How many of what kind, in the subject of a message about several. */
const counted: Record<News, string> = { begun: 'begun', lasting: 'lasting', over: 'over' }

/** The section of the guide about an alert. */
export const guideOf = (name: string): string => `docs/alerts.md#${name}`

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
    if (overSince !== null)
      return `${head}\nIt began on ${timeInWords(since)}, and is over since ${timeInWords(overSince)}.`
    return `${head}\n${text}\nSince: ${timeInWords(since)}\nWhat to do: ${remedy}. See ${guideOf(name)}.`
  })
  return `${paragraphs.join('\n\n')}\n\n"holdfast alerts" lists all alerts.\n`
}

/** Send a message, once the transaction is durable. */
export async function orderMessage(ctx: Context, tx: Tx, { id, told }: Message): Promise<void> {
  const mail = { subject: summaryOf(ctx.config, told), text: textOf(told) }
  for (const to of ctx.config.alerts.mailTo) await addMail(ctx, tx, { key: `alert ${id} ${to}`, mail: { to, ...mail } })
}
