/**
 * The door of the firehose: numbering events, and telling crawlers that there are new ones.
 *
 * An event is a row of the log, written in the transaction that makes what it tells true. Transactions run one after
 * another, so the order of numbers is the order of commits, and a reader who has seen a number has seen all below it.
 * A number is read from the log itself: right after a rollback, a restart, and a command of another process.
 */
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { crawlersOf, type CrawlAnswer } from './crawlers.ts'
import { countEvents, deleteEventsOf, headSeq, insertEvents, type EventRow } from './event-log.ts'
import { tailOf } from './tail.ts'
import { eventFrame, type RepoEvent } from '../../protocol/frames.ts'

export { headSeq, raiseSeq, sequencedAt } from './event-log.ts'
export type { RepoEvent } from '../../protocol/frames.ts'

/**
 * Append events to the log, in the caller's transaction. Once the transaction is durable, subscribers receive them and
 * crawlers are told that there is something new.
 *
 * Call it late in the transaction. The event that an account is deleted removes what the log holds about it.
 */
export async function sequenceEvents(ctx: Context, tx: Tx, events: readonly RepoEvent[]): Promise<void> {
  const { clock, metrics } = ctx
  const head = await headSeq(tx)
  const sequencedAt = clock.now()
  const rows: EventRow[] = []
  for (const event of events) {
    const seq = head + 1 + rows.length
    rows.push({ seq, type: event.type, did: event.did, frame: eventFrame(event, seq, sequencedAt), sequencedAt })
    if (event.type === 'account' && event.status === 'deleted') await deleteEventsOf(tx, event.did)
  }
  await insertEvents(tx, rows)
  tx.afterCommit(() => {
    for (const { type } of rows) metrics.count('firehose_events_total', { frame: type })
    tailOf(ctx).take(rows)
    crawlersOf(ctx).announce()
  })
}

/** Ask every crawler now, and wait for what it says. */
export const askCrawlers = (ctx: Context): Promise<CrawlAnswer[]> => crawlersOf(ctx).ask()

export interface FirehoseReadout {
  currentSeq: number
  subscribers: number
  retainedEvents: number
  /** How far back a cursor reaches; null when age sets no bound. */
  backfillWindowSecs: number | null
}

export async function firehoseReadout(ctx: Context): Promise<FirehoseReadout> {
  return {
    currentSeq: await headSeq(ctx.db),
    subscribers: tailOf(ctx).followers,
    retainedEvents: await countEvents(ctx.db),
    backfillWindowSecs: backfillWindowSecs(ctx),
  }
}

export const backfillWindowSecs = ({ config }: Pick<Context, 'config'>): number | null => config.firehose.logRetentionSecs || null
