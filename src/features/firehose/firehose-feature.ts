/** What the firehose plugs in. */
import { subscription } from '../../http/endpoint.ts'
import type { Feature } from '../../http/feature.ts'
import { crawlersOf } from './crawlers.ts'
import { Outbox } from './outbox.ts'
import { retentionSweep } from './retention-sweep.ts'

export const firehose: Feature = {
  name: 'firehose',
  routes: [subscription('com.atproto.sync.subscribeRepos', (exchange) => new Outbox(exchange))],
  sweeps: [retentionSweep],
  start(ctx) {
    const crawlers = crawlersOf(ctx)
    crawlers.announce()
    return () => crawlers.stop()
  },
}
