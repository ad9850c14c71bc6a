/** How far the events of this server get: to the relays, which pass them on to the rest of the network. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { timeInWords } from '../../../base/time-words.ts'
import type { Context } from '../../../platform/context.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import {
  askRelay,
  crawlersFor,
  crawlRequests,
  headSeq,
  subscribersOf,
  waitingSince,
  type CrawlRequest,
} from '../../data/firehose/firehose.ts'
import { broken, good, type Link } from './link.ts'

/** How far behind a relay may be. */
const LATE_MILLIS = HOUR_MILLIS
const ASK = 'run "holdfast relay request-crawl"'
const CHECK = 'run "holdfast doctor", which tries what a relay needs: DNS, the certificate, the proxy and WebSockets'

/** What a relay reports of a host that it does not read, and what to do about it. */
const refusals: Readonly<Record<string, string>> = {
  offline: `${CHECK}; then ${ASK}`,
  throttled: 'wait: the relay takes fewer events from this server than there are; ask its operator if it persists',
  banned: 'ask the operator of the relay why it refuses this server',
}

/** Returns the links between this server and the relays. Asks all relays. */
export async function serverReach(ctx: Context): Promise<Link[]> {
  const { publicUrl, crawlers } = ctx.config
  const { host } = new URL(publicUrl)
  if (crawlers.urls.length === 0)
    return [broken('relays', 'fault', 'no relay is configured', 'set crawlers.urls: without a relay, posts stay here')]
  const urls = crawlersFor(ctx.config)
  if (urls.length === 0)
    return [
      broken(
        'relays',
        'fault',
        `${host} is a name that no relay can reach`,
        'set public_url to a public https address',
      ),
    ]
  const relays = await Promise.all(urls.map((url) => relayReach(ctx, url)))
  return [...relays.flat(), readersOf(ctx)]
}

async function relayReach(ctx: Context, url: string): Promise<Link[]> {
  const { host } = new URL(url)
  return [requestLink(host, crawlRequests(ctx).get(url)), await relayLink(ctx, url)]
}

function requestLink(host: string, request: CrawlRequest | undefined): Link {
  const name = `request to ${host}`
  if (request === undefined)
    return broken(name, 'unknown', 'this node has not asked it to come since it started', `${ASK} if it does not come`)
  const text = `asked it to come on ${timeInWords(request.at)}: ${request.detail}`
  if (request.outcome === 'ok') return good(name, text)
  return request.outcome === 'rejected'
    ? broken(name, 'fault', text, CHECK)
    : broken(name, 'fault', text, 'allow outgoing https; the server tries again by itself')
}

/** Ask a relay about this server, and return what it says. */
export async function relayLink(ctx: Context, url: string): Promise<Link> {
  const { db, clock } = ctx
  const name = `relay ${new URL(url).host}`
  const answer = await askRelay(ctx, url)
  if (answer.kind === 'unreachable')
    return broken(name, 'unknown', `it cannot be reached: ${answer.detail}`, 'allow outgoing https, or wait')
  if (answer.kind === 'failed') return broken(name, 'unknown', `it returns ${answer.httpStatus}`, 'try again later')
  if (answer.kind === 'not-crawled')
    return broken(name, 'fault', 'it has never read this server', `${CHECK}; then ${ASK}`)
  const { status, seq } = answer
  const refusal = status === null ? undefined : refusals[status]
  if (refusal !== undefined) return broken(name, 'fault', `it reports the status "${status}" for this server`, refusal)
  const taken = seq === null ? 'it follows this server' : `it has taken event ${seq} of ${await headSeq(db)}`
  const waiting = seq === null ? null : await waitingSince(db, seq)
  if (waiting === null) return good(name, taken)
  return ageOf(waiting, clock.now()) > LATE_MILLIS
    ? broken(
        name,
        'fault',
        `${taken}; the next one waits since ${timeInWords(waiting)}`,
        `${ASK}; then ${CHECK.slice(4)}`,
      )
    : good(name, taken)
}

/** Every relay is a subscriber, but not every subscriber is a relay. */
function readersOf(ctx: Context): Link {
  const name = 'event stream'
  const { here, former } = subscribersOf(ctx)
  if (here.size > 0) return good(name, `${here.size} subscribers are connected to this node`)
  const last = former.at(-1)
  const text =
    last === undefined
      ? 'no subscriber has connected to this node since it started'
      : `the last subscriber left on ${timeInWords(last.leftAt!)}`
  return broken(name, 'warning', text, `${CHECK}; on a cluster, relays may be connected to another node`)
}
