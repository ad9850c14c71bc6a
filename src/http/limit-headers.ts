/** What response headers report of rate limits. */
import type { LimitState } from '../platform/running/limits.ts'
import type { Exchange } from './endpoint.ts'
import { Refusal } from './errors.ts'

export const rateLimitHeaders = [
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'RateLimit-Policy',
  'Retry-After',
]

/** Reports a limit in the response headers. */
export function tell(
  { ctx, replyHeaders }: Exchange,
  { allowed, limit, remaining, resetMillis, windowSecs }: Omit<LimitState, 'name'>,
): void {
  replyHeaders.set('RateLimit-Limit', String(limit))
  replyHeaders.set('RateLimit-Remaining', String(remaining))
  replyHeaders.set('RateLimit-Reset', String(Math.ceil((ctx.clock.now() + resetMillis) / 1000)))
  replyHeaders.set('RateLimit-Policy', `${limit};w=${windowSecs}`)
  if (!allowed) replyHeaders.set('Retry-After', String(Math.max(1, Math.ceil(resetMillis / 1000))))
}

/**
 * Returns the refusal for a limit that a feature counts by itself. The response headers report this limit, instead of
 * another one that has points left: clients wait for as long as the headers say. Without `resetMillis`, that is the
 * whole window.
 */
export function limitRefusal(
  exchange: Exchange,
  {
    limit,
    windowSecs,
    resetMillis = windowSecs * 1000,
  }: Pick<LimitState, 'limit' | 'windowSecs'> & Partial<Pick<LimitState, 'resetMillis'>>,
  description: string,
): Refusal {
  tell(exchange, { allowed: false, limit, remaining: 0, resetMillis, windowSecs })
  return new Refusal(429, 'RateLimitExceeded', description)
}
