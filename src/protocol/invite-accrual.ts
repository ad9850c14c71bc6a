/** How many invite codes an account has earned. */
import type { Millis } from './identifiers.ts'

/** Most unused codes that an account may have. */
const MAX_UNUSED_CODES = 5

/**
 * How many codes the account may create now: whole intervals since it was created, or since `epochAt` if it is older,
 * minus the codes created since then. At most five may be unused. Codes from the operator do not count.
 */
export function codesToCreate(account: {
  now: Millis
  createdAt: Millis
  epochAt: Millis
  intervalMillis: number
  /** Codes that the account itself created since `epochAt`. */
  madeSinceEpoch: number
  /** Unused codes among those it created itself. */
  unused: number
}): number {
  const { now, createdAt, epochAt, intervalMillis, madeSinceEpoch, unused } = account
  const intervals = (until: Millis) => Math.max(0, Math.floor((until - createdAt) / intervalMillis))
  const earned = intervals(now) - intervals(epochAt)
  return Math.max(0, Math.min(MAX_UNUSED_CODES - unused, earned - madeSinceEpoch))
}
