/** Charges rate limits and reports them in response headers. */
import type { Charge, LimitName, LimitState } from '../platform/running/limits.ts'
import { tighter } from '../platform/running/limits.ts'
import type { Client } from '../base/fair-queue.ts'
import { budgetsOf } from './client-address.ts'
import type { CallLimit, Exchange } from './endpoint.ts'
import { Refusal } from './errors.ts'

export const rateLimitHeaders = [
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'RateLimit-Policy',
  'Retry-After',
]

/** Metric labels of limits that are not specific to one endpoint. */
const limiters = { globalIp: 'global_ip', repoWrite: 'account_writes' } as const

const states = new WeakMap<Exchange, LimitState>()

/** Charge one point of each limit to the client's address. Throws `RateLimitExceeded`. */
export function chargeAddress(exchange: Exchange, names: readonly LimitName[]): void {
  const charges = ofAddress(exchange, names)
  if (charges.length > 0) take(exchange, charges)
}

function ofAddress(exchange: Exchange, names: readonly LimitName[]): readonly Charge[] {
  // Reading the address from the runtime costs more than everything that is done with it.
  if (names.length === 0 || !exchange.ctx.config.rateLimit.enabled) return []
  return names.flatMap((name) => chargesOf(exchange.client, name))
}

/** Returns the charges of one point to every budget that the client uses. */
export const chargesOf = (client: Client, name: LimitName): Charge[] =>
  budgetsOf(client).map((budget) => ({ name, ...budget }))

/** The same for every request. Returns a promise if the node has to ask others first. */
export const chargeEntry = (exchange: Exchange, names: readonly LimitName[]): void | Promise<void> =>
  takeKnown(exchange, ofAddress(exchange, names))

/**
 * Charge the limits that depend on the caller or the input: all of them, or none if one is used up. Throws
 * `RateLimitExceeded`. Returns a promise if the node has to ask others first.
 */
export function chargeCall<Call extends Exchange>(
  call: Call,
  limits: readonly CallLimit<Call>[],
): void | Promise<void> {
  if (limits.length === 0 || !call.ctx.config.rateLimit.enabled) return
  return takeKnown(
    call,
    limits.map(({ name, key, cost }) => ({ name, key: key(call), cost: cost?.(call) })),
  )
}

function takeKnown(exchange: Exchange, charges: readonly Charge[]): void | Promise<void> {
  if (charges.length === 0) return
  const { limits } = exchange.ctx
  const state = limits.charge(...charges)
  const known = state?.allowed === false ? limits.chargeOnceKnown(...charges) : null
  if (known === null) return applyLimit(exchange, state)
  return known.then((later) => applyLimit(exchange, later))
}

/**
 * Throws `RateLimitExceeded` if the client, or `key`, has used up a limit to which only failures are charged. Charges
 * nothing.
 */
export async function refuseSpent(exchange: Exchange, name: LimitName, key?: string): Promise<void> {
  const { config, limits } = exchange.ctx
  if (!config.rateLimit.enabled) return
  const charges = key === undefined ? chargesOf(exchange.client, name) : [{ name, key }]
  for (const charge of charges) await limits.learn(name, charge.key)
  applyLimit(exchange, limits.spent(...charges))
}

/** Charge a point to `key` (a DID or a client). Throws `RateLimitExceeded`. */
export function charge(exchange: Exchange, name: LimitName, key: string): void {
  take(exchange, [{ name, key }])
}

/** Charge what all clients have together, of which each network and provider has a part. Throws a refusal. */
export function chargeAll(exchange: Exchange, name: LimitName, key: string): void {
  take(exchange, [{ name, key, from: exchange.client }])
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
  exchange.ctx.metrics.count('rate_limit_rejections_total', {
    limiter: limiters[state.name as keyof typeof limiters] ?? 'endpoint_ip',
  })
  throw new Refusal(429, 'RateLimitExceeded', 'Rate Limit Exceeded')
}

function tell(
  { ctx, replyHeaders }: Exchange,
  { allowed, limit, remaining, resetMillis, windowSecs }: LimitState,
): void {
  replyHeaders.set('RateLimit-Limit', String(limit))
  replyHeaders.set('RateLimit-Remaining', String(remaining))
  replyHeaders.set('RateLimit-Reset', String(Math.ceil((ctx.clock.now() + resetMillis) / 1000)))
  replyHeaders.set('RateLimit-Policy', `${limit};w=${windowSecs}`)
  if (!allowed) replyHeaders.set('Retry-After', String(Math.max(1, Math.ceil(resetMillis / 1000))))
}
