/** The firehose's routes, sweeps and metrics. */
import { subscription } from '../../http/endpoint.ts'
import type { Feature } from '../../http/feature.ts'
import { crawlersOf, crawlStep } from './crawlers.ts'
import { backfillWindowSecs } from './firehose.ts'
import { Outbox } from './outbox.ts'
import { retentionSweep } from './retention-sweep.ts'
import { tailOf } from './tail.ts'

export const firehose: Feature = {
  name: 'firehose',
  routes: [subscription('com.atproto.sync.subscribeRepos', (exchange) => new Outbox(exchange))],
  sweeps: [retentionSweep],
  steps: [crawlStep],
  async prepare(ctx) {
    ctx.metrics.gauge('firehose_subscribers', 'Subscribers connected to the event stream', () => tailOf(ctx).followers)
    ctx.metrics.gauge('firehose_backfill_window_seconds', 'Age of the oldest event that a cursor can still replay', () =>
      backfillWindowSecs(ctx),
    )
  },
  start(ctx) {
    const crawlers = crawlersOf(ctx)
    crawlers.start()
    return () => crawlers.stop()
  },
}
