/** What the firehose plugs in. */
import { subscription } from '../../http/endpoint.ts'
import type { Feature } from '../../http/feature.ts'
import { Outbox } from './outbox.ts'

export const firehose: Feature = {
  name: 'firehose',
  routes: [subscription('com.atproto.sync.subscribeRepos', (exchange) => new Outbox(exchange))],
}
