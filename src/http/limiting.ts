/** Charging rate limits and telling about them in headers. */
import type { LimitName, LimitState } from '../platform/limits.ts'
import { tighter } from '../platform/limits.ts'
import { limitKey } from './client-address.ts'
import type { Exchange } from './endpoint.ts'
import { Refusal } from './errors.ts'

export const RATE_LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy', 'Retry-After']

/** Limits that metrics tell apart from those of single endpoints. */
const limiters = { globalIp: 'global_ip', repoWrite: 'account_writes' } as const

const states = new WeakMap<Exchange, LimitState>()

/** Take points by the client's address, or refuse. */
export function chargeAddress(exchange: Exchange, name: LimitName): void {
  charge(exchange, name, limitKey(exchange.ip))
}

/** Take `cost` points of `key` (an address, a DID, a client), or refuse. The tightest limit of a request is told. */
export function charge(exchange: Exchange, name: LimitName, key: string, cost = 1): void {
  const state = exchange.ctx.limits.charge(name, key, cost)
  if (state === null) return
  const before = states.get(exchange)
  const tightest = before ? tighter(before, state) : state
  states.set(exchange, tightest)
  tell(exchange, tightest)
  if (state.allowed) return
  exchange.ctx.metrics.count('rate_limit_rejections_total', { limiter: limiters[name as keyof typeof limiters] ?? 'endpoint_ip' })
  throw new Refusal(429, 'RateLimitExceeded', 'Rate Limit Exceeded')
}

function tell({ ctx, replyHeaders }: Exchange, { allowed, limit, remaining, resetAt, windowSecs }: LimitState): void {
  replyHeaders.set('RateLimit-Limit', String(limit))
  replyHeaders.set('RateLimit-Remaining', String(remaining))
  replyHeaders.set('RateLimit-Reset', String(Math.ceil(resetAt / 1000)))
  replyHeaders.set('RateLimit-Policy', `${limit};w=${windowSecs}`)
  if (!allowed) replyHeaders.set('Retry-After', String(Math.max(1, Math.ceil((resetAt - ctx.clock.now()) / 1000))))
}
