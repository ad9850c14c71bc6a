/**
 * Who follows the event stream: as many as the configuration allows, in all and from one address.
 *
 * A relay needs one connection, and keeps a second for a moment when it begins anew; several people who try things out
 * may share an address. What each costs while it does not read is bounded by the outbox, so some hundreds that do not
 * cost less than a hundred megabytes; more of them than that follow no single server of this kind today.
 */
import { limitKey } from '../../http/client-address.ts'
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import { perContext, type Context } from '../../platform/context.ts'

/** When somebody who found no place may try again. */
const RETRY_SECS = 60

class Subscribers {
  #count = 0
  readonly #byAddress = new Map<string, number>()

  constructor(readonly ctx: Pick<Context, 'config' | 'metrics'>) {}

  /** Take a place, or refuse. Returns what gives it back, to be called once. */
  enter(ip: string): () => void {
    const { maxSubscribers, maxSubscribersPerAddress } = this.ctx.config.firehose
    const address = limitKey(ip)
    const ofAddress = this.#byAddress.get(address) ?? 0
    if (isReached(ofAddress, maxSubscribersPerAddress)) {
      this.ctx.metrics.count('rate_limit_rejections_total', { limiter: 'endpoint_ip' })
      throw refused(429, 'RateLimitExceeded', `Too many subscribers from ${address}: ${maxSubscribersPerAddress} at most`)
    }
    if (isReached(this.#count, maxSubscribers)) throw refused(503, 'ServiceUnavailable', 'Too many subscribers at the moment')
    this.#count++
    this.#byAddress.set(address, ofAddress + 1)
    return () => this.#leave(address)
  }

  #leave(address: string): void {
    this.#count--
    const left = this.#byAddress.get(address)! - 1
    if (left > 0) this.#byAddress.set(address, left)
    else this.#byAddress.delete(address)
  }
}

const isReached = (count: number, limit: number) => limit > 0 && count >= limit
const refused = (status: number, name: string, message: string) => new Refusal(status, name, message, { headers: { 'Retry-After': String(RETRY_SECS) } })

const subscribersOf = perContext((ctx) => new Subscribers(ctx))

export const takePlace = ({ ctx, ip }: Pick<Exchange, 'ctx' | 'ip'>): (() => void) => subscribersOf(ctx).enter(ip)
