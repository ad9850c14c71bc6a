/**
 * The door of the firehose: writes events and announces them to crawlers.
 *
 * An event is a row, written in the same transaction as the change that it reports. Numbers are in the order of
 * commits, and a reader who has seen a number has seen all lower ones.
 *
 * On SQLite, transactions run one after another, and an event gets its number as it is written. The first transaction
 * of a group reads the next number from the log, which is correct even after a rollback, a restart or a command of
 * another process; the later ones count on from it. On PostgreSQL, events get their numbers after the commit: see
 * `sequencer.ts`.
 */
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { crawlersOf, type CrawlAnswer, type CrawlRequest } from './crawlers.ts'
import { leaveToSequencer } from './sequencer.ts'
import { deleteEventsOf } from './event-list.ts'
import { countEvents, headSeq, headToFollow, insertEvents, type EventRow } from './event-log.ts'
import { erasesEarlier } from './sequencer-store.ts'
import { tailOf } from './tail.ts'
import { eventFrame, type RepoEvent } from '../../../protocol/frames.ts'

export { crawlersFor, type CrawlRequest } from './crawlers.ts'
export { eventNumbersOf, missingInList } from './event-list.ts'
export {
  headSeq,
  keepEvents,
  loggedSince,
  newestCommitEvent,
  writtenSince,
  raisePruned,
  raiseSeq,
  sequencedAt,
  waitingSince,
  wholeEventsAfter,
  type EventRow,
} from './event-log.ts'
export { askRelay } from './relay-host-status.ts'
export { subscribersOf, type Subscriber } from './subscriber-list.ts'
export { EVENT_NUMBERS } from './sequencer.ts'
export { sentEventsOf, type Sent } from './sent-events.ts'
export { numberRest, unnumberedEvents } from './sequencer-store.ts'
export type { RepoEvent } from '../../../protocol/frames.ts'

/**
 * Add events to the log, with the caller's transaction. Once the transaction is durable, subscribers receive them and
 * crawlers are told that there are new events.
 *
 * Call it last in the transaction. An `#account` event with status `deleted` deletes the account's earlier events.
 */
export async function sequenceEvents(ctx: Context, tx: Tx, events: readonly RepoEvent[]): Promise<void> {
  const { cluster } = ctx.db
  if (cluster === null) return appendNumbered(ctx, tx, events)
  tx.afterCommit(() => count(ctx, events))
  await leaveToSequencer(ctx, cluster, tx, events)
}

function count({ metrics }: Context, events: readonly RepoEvent[]): void {
  for (const { type } of events) metrics.count('firehose_events_total', { frame: type })
}

async function appendNumbered(ctx: Context, tx: Tx, events: readonly RepoEvent[]): Promise<void> {
  const { clock } = ctx
  const head = await headToFollow(tx)
  const sequencedAt = clock.now()
  const rows: EventRow[] = []
  for (const event of events) {
    const seq = head + 1 + rows.length
    rows.push({ seq, type: event.type, did: event.did, frame: eventFrame(event, seq, sequencedAt), sequencedAt })
    if (erasesEarlier(event)) await deleteEventsOf(tx, event.did)
  }
  await insertEvents(tx, rows)
  tx.afterCommit(() => {
    count(ctx, events)
    tailOf(ctx).take(rows)
    crawlersOf(ctx).announce()
  })
}

/** Ask every crawler now. Returns their responses. */
export const askCrawlers = (ctx: Context): Promise<CrawlAnswer[]> => crawlersOf(ctx).ask()

/** The last request of this node to each crawler, by its URL. */
export const crawlRequests = (ctx: Context): ReadonlyMap<string, CrawlRequest> => crawlersOf(ctx).requests

export interface FirehoseStatus {
  currentSeq: number
  subscribers: number
  retainedEvents: number
  /** How far back a cursor reaches; null if events do not expire by age. */
  backfillWindowSecs: number | null
}

export async function firehoseStatus(ctx: Context): Promise<FirehoseStatus> {
  return {
    currentSeq: await headSeq(ctx.db),
    subscribers: tailOf(ctx).followers,
    retainedEvents: await countEvents(ctx.db),
    backfillWindowSecs: backfillWindowSecs(ctx),
  }
}

export const backfillWindowSecs = ({ config }: Pick<Context, 'config'>): number | null =>
  config.firehose.logRetentionSecs || null
