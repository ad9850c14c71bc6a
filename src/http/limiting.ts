/** Charging rate limits and telling about them in headers. */
import type { Charge, LimitName, LimitState } from '../platform/running/limits.ts'
import { tighter } from '../platform/running/limits.ts'
import { limitKey } from './client-address.ts'
import type { CallLimit, Exchange } from './endpoint.ts'
import { Refusal } from './errors.ts'

export const rateLimitHeaders = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy', 'Retry-After']

/** Limits that metrics tell apart from those of single endpoints. */
const limiters = { globalIp: 'global_ip', repoWrite: 'account_writes' } as const

const states = new WeakMap<Exchange, LimitState>()

/** Take a point of each limiter by the client's address, or refuse. */
export function chargeAddress(exchange: Exchange, names: readonly LimitName[]): void {
  // Asking the runtime for the address costs more than all that is done with it.
  if (names.length === 0 || !exchange.ctx.config.rateLimit.enabled) return
  const key = limitKey(exchange.ip)
  take(exchange, names.map((name) => ({ name, key })))
}

/** Take the points of every limit that the caller and the input decide, or of none and refuse. */
export function chargeCall<Call extends Exchange>(call: Call, limits: readonly CallLimit<Call>[]): void {
  if (limits.length === 0 || !call.ctx.config.rateLimit.enabled) return
  take(call, limits.map(({ name, key, cost }) => ({ name, key: key(call), cost: cost?.(call) })))
}

/** Refuse an address that has used up a limiter to which only failures are charged. Takes nothing. */
export function refuseSpent(exchange: Exchange, name: LimitName): void {
  if (!exchange.ctx.config.rateLimit.enabled) return
  applyLimit(exchange, exchange.ctx.limits.spent(name, limitKey(exchange.ip)))
}

/** Take `cost` points of `key` (a DID, a client), or refuse. */
export function charge(exchange: Exchange, name: LimitName, key: string, cost = 1): void {
  take(exchange, [{ name, key, cost }])
}

function take(exchange: Exchange, charges: readonly Charge[]): void {
  applyLimit(exchange, exchange.ctx.limits.charge(...charges))
}

/** Tell the tightest limit of a request, and refuse when it is used up. */
function applyLimit(exchange: Exchange, state: LimitState | null): void {
  if (state === null) return
  const before = states.get(exchange)
  const tightest = before ? tighter(before, state) : state
  states.set(exchange, tightest)
  tell(exchange, tightest)
  if (state.allowed) return
  exchange.ctx.metrics.count('rate_limit_rejections_total', { limiter: limiters[state.name as keyof typeof limiters] ?? 'endpoint_ip' })
  throw new Refusal(429, 'RateLimitExceeded', 'Rate Limit Exceeded')
}

function tell({ ctx, replyHeaders }: Exchange, { allowed, limit, remaining, resetMillis, windowSecs }: LimitState): void {
  replyHeaders.set('RateLimit-Limit', String(limit))
  replyHeaders.set('RateLimit-Remaining', String(remaining))
  replyHeaders.set('RateLimit-Reset', String(Math.ceil((ctx.clock.now() + resetMillis) / 1000)))
  replyHeaders.set('RateLimit-Policy', `${limit};w=${windowSecs}`)
  if (!allowed) replyHeaders.set('Retry-After', String(Math.max(1, Math.ceil(resetMillis / 1000))))
}
