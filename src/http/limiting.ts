/** Charges rate limits. */
import type { Charge, LimitName, LimitState } from '../platform/running/limits.ts'
import { POINT_BYTES, tighter, writePoints } from '../platform/running/limits.ts'
import type { Client } from '../base/fair-queue.ts'
import { budgetsOf } from './client-address.ts'
import type { Exchange, Limit } from './endpoint.ts'
import { isStorageOutage, Refusal } from './errors.ts'
import { tell } from './limit-headers.ts'

/** Metric labels of limits that are not specific to one endpoint. */
const limiters = { globalIp: 'global_ip', repoWrite: 'account_writes' } as const

const states = new WeakMap<Exchange, LimitState>()

/**
 * Charge the limits of a declaration: all of them, or none if one is used up. Throws `RateLimitExceeded`. Returns a
 * promise if the node has to ask others first.
 */
export function chargeDeclared<Call extends Exchange>(
  call: Call,
  limits: readonly Limit<Call>[],
): void | Promise<void> {
  const { config, limits: counters } = call.ctx
  // Reading the address from the runtime costs more than everything that is done with it.
  if (limits.length === 0 || !config.rateLimit.enabled) return
  const charges = limits.flatMap((limit) =>
    typeof limit === 'string'
      ? chargesOf(call.client, limit)
      : { name: limit.name, key: limit.key(call), cost: limit.cost?.(call) },
  )
  const state = counters.charge(...charges)
  const known = state?.allowed === false ? counters.chargeOnceKnown(...charges) : null
  if (known === null) return applyLimit(call, state)
  return known.then((later) => applyLimit(call, later))
}

/** Take back what `chargeDeclared` charged to the address: the request is charged where it is answered. */
export function takeBackDeclared(exchange: Exchange, limits: readonly LimitName[]): void {
  const { config, limits: counters } = exchange.ctx
  if (limits.length === 0 || !config.rateLimit.enabled) return
  counters.takeBack(...limits.flatMap((limit) => chargesOf(exchange.client, limit)))
}

/**
 * Charge by hand what no declaration can: a name alone is one point of the client's address. Rejects with
 * `RateLimitExceeded`. Not within a transaction, because it may wait for other nodes.
 */
export async function charge(exchange: Exchange, what: LimitName | Charge): Promise<void> {
  const { config, limits } = exchange.ctx
  if (!config.rateLimit.enabled) return
  const charges = typeof what === 'string' ? chargesOf(exchange.client, what) : [what]
  applyLimit(exchange, await limits.chargeShared(...charges))
}

/**
 * Run a write whose transaction revalidates the caller. A write that fails before its transaction is charged too, so a
 * failure also revalidates the caller: once a session is known to have ended, its guard refuses it before the charge.
 * Not in an outage: a failed revalidation would replace an error that says that the write may have taken effect.
 */
export async function chargedWrite<Result>(exchange: Exchange, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    if (!isStorageOutage(error)) await exchange.revalidate(exchange.ctx.db)
    throw error
  }
}

/**
 * Charge the account for the bytes of its writes, as far as their points have not paid for them. The bytes are known
 * once they are written, so this refuses nothing.
 */
export function chargeBytes(
  exchange: Exchange & { caller: { did: string } },
  writes: readonly { action: keyof typeof writePoints }[],
  bytes: number,
): void {
  const paid = writes.reduce((points, { action }) => points + writePoints[action], 0)
  const cost = Math.ceil(bytes / POINT_BYTES) - paid
  if (cost > 0) applyLimit(exchange, exchange.ctx.limits.spend({ name: 'repoWrite', key: exchange.caller.did, cost }))
}

/**
 * Charges a guess before it is judged, so that guesses that come at once cannot exceed the limit. The response does not
 * mention the limit while there are points left. Rejects with `RateLimitExceeded`. Returns a function that takes the
 * point back, for a guess that was right.
 */
export async function chargeGuess(exchange: Exchange, what: Charge): Promise<() => void> {
  const { limits } = exchange.ctx
  const state = await limits.chargeShared(what)
  if (state?.allowed === false) applyLimit(exchange, state)
  return () => limits.takeBack(what)
}

/** Returns the charges of one point to every budget that the client uses. */
export const chargesOf = (client: Client, name: LimitName): Charge[] =>
  budgetsOf(client).map((budget) => ({ name, ...budget }))

/**
 * Throws `RateLimitExceeded` if the client, or `key`, has used up a limit to which only failures are charged. Charges
 * nothing.
 */
export async function refuseSpent(exchange: Exchange, name: LimitName, key?: string): Promise<void> {
  const { config, limits } = exchange.ctx
  if (!config.rateLimit.enabled) return
  const charges = key === undefined ? chargesOf(exchange.client, name) : [{ name, key }]
  for (const budget of charges) await limits.learn(name, budget.key)
  applyLimit(exchange, limits.spent(...charges))
}

/** Reports the tightest limit of a request in the response headers, and refuses the request if it is used up. */
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
