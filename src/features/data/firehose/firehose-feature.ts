/** The firehose's routes, sweeps and metrics. */
import { subscription } from '../../../http/endpoint.ts'
import type { Feature } from '../../../http/feature.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { crawlersOf, crawlStep } from './crawlers.ts'
import { backfillWindowSecs } from './firehose.ts'
import { LISTED_AT_ONCE, listedThrough, listSome } from './event-list.ts'
import { headSeq, logLock } from './event-log.ts'
import { Outbox } from './outbox.ts'
import { sequencerOf, type Sequencer } from './sequencer.ts'
import { unnumberedEvents } from './sequencer-store.ts'
import { retentionSweep } from './retention-sweep.ts'
import { sentEventsOf, type SentEvents } from './sent-events.ts'
import { tailOf } from './tail.ts'

export const firehose: Feature = {
  name: 'firehose',
  routes: [subscription('com.atproto.sync.subscribeRepos', (exchange) => Outbox.accept(exchange))],
  sweeps: [retentionSweep],
  steps: [crawlStep],
  async prepare(ctx) {
    ctx.metrics.gauge('firehose_subscribers', 'Subscribers connected to the event stream', () => tailOf(ctx).followers)
    ctx.metrics.gauge(
      'firehose_backfill_window_seconds',
      'Age of the oldest event that a cursor can still replay',
      () => backfillWindowSecs(ctx),
    )
    const sequencer = sequencerOf(ctx)
    if (sequencer !== null) declareNumbering(ctx, sequencer)
    const sent = sentEventsOf(ctx)
    if (sent !== null) ctx.db.cluster?.history.witness((reader) => missingEvents(reader, sent))
  },
  start(ctx) {
    const crawlers = crawlersOf(ctx)
    const endNumbering = sequencerOf(ctx)?.start()
    if (endNumbering === undefined) {
      crawlers.start()
      ctx.background.run('list of events by account', () => listRest(ctx))
    }
    return async () => {
      await endNumbering?.()
      crawlers.stop()
    }
  },
}

/** List the events that a copy from PostgreSQL, or an earlier version, has left unlisted. */
async function listRest({ db }: Context): Promise<void> {
  const head = await headSeq(db)
  for (let listed = await listedThrough(db); head - listed >= LISTED_AT_ONCE;) {
    const through = await db.transactionOn(logLock, async (tx) => listSome(tx, await listedThrough(tx)))
    if (through === null) return
    listed = through
  }
}

async function missingEvents(reader: Reader, sent: SentEvents): Promise<string | null> {
  const known = sent.head
  const head = await headSeq(reader)
  return head < known ? `event ${known} was sent, and ${head} is the newest` : null
}

function declareNumbering({ metrics, db, clock }: Context, sequencer: Sequencer): void {
  metrics.gauge(
    'firehose_unnumbered_events',
    'Events of all nodes that have no number yet',
    async () => (await unnumberedEvents(db)).count,
  )
  metrics.gauge(
    'firehose_numbering_lag_seconds',
    'Age of the oldest event of all nodes that has no number yet',
    async () => {
      const { oldestAt } = await unnumberedEvents(db)
      return oldestAt === null ? 0 : Math.max(0, (clock.now() - oldestAt) / 1000)
    },
  )
  metrics.gauge('firehose_numberer', 'Whether this node numbers the events of all nodes', () =>
    sequencer.isHolding ? 1 : 0,
  )
  metrics.gauge('firehose_numbering_batches', 'Batches of events that this node has numbered', () => sequencer.batches)
}
