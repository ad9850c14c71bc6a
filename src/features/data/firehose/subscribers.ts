/**
 * Bounds the subscribers of the event stream, in total and per address; for IPv6, per /64 and /48 network.
 *
 * A relay needs one connection, and a second one for a moment when it reconnects; several people who experiment may
 * share an address. The outbox bounds what a subscriber costs while it does not read: some hundreds of them cost less
 * than 100 MB. Today, no single server of this kind has more subscribers.
 */
import type { Client } from '../../../base/fair-queue.ts'
import { budgetsOf, type ClientBudget } from '../../../http/client-address.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'

/** `Retry-After` of a refused subscriber. */
const RETRY_SECS = 60

class Subscribers {
  #count = 0
  /** Subscribers by address or network. */
  readonly #counts = new Map<string, number>()

  constructor(readonly ctx: Pick<Context, 'config' | 'metrics'>) {}

  /**
   * Take a place. Returns the function that gives it back, to be called once. Refuses with 429 per address, with 503 in
   * total.
   */
  enter(client: Client): () => void {
    const { firehose, rateLimit } = this.ctx.config
    const { maxSubscribers } = firehose
    // Without rate limits, no address has a limit of its own. The limit in total still guards memory.
    const maxSubscribersPerAddress = rateLimit.enabled ? firehose.maxSubscribersPerAddress : 0
    const budgets = budgetsOf(client)
    for (const { key, times } of budgets) {
      const max = maxSubscribersPerAddress * times
      if (!isReached(this.#counts.get(key) ?? 0, max)) continue
      this.ctx.metrics.count('rate_limit_rejections_total', { limiter: 'endpoint_ip' })
      throw refused(429, 'RateLimitExceeded', `Too many subscribers from ${key}: ${max} at most`)
    }
    if (isReached(this.#count, maxSubscribers))
      throw refused(503, 'ServiceUnavailable', 'Too many subscribers at the moment')
    this.#add(budgets, 1)
    return () => this.#add(budgets, -1)
  }

  #add(budgets: readonly ClientBudget[], change: 1 | -1): void {
    this.#count += change
    for (const { key } of budgets) {
      const count = (this.#counts.get(key) ?? 0) + change
      if (count > 0) this.#counts.set(key, count)
      else this.#counts.delete(key)
    }
  }
}

const isReached = (count: number, limit: number) => limit > 0 && count >= limit
const refused = (status: number, name: string, message: string) =>
  new Refusal(status, name, message, { headers: { 'Retry-After': String(RETRY_SECS) } })

const subscribersOf = perContext((ctx) => new Subscribers(ctx))

/** Take a subscriber's place; see `Subscribers.enter`. */
export const takePlace = ({ ctx, client }: Pick<Exchange, 'ctx' | 'client'>): (() => void) =>
  subscribersOf(ctx).enter(client)
