/** How many invite codes an account has earned. */
import type { Millis } from './identifiers.ts'

/** Codes that an account holds unused at the same time. */
const MAX_UNUSED_CODES = 5

/**
 * Whole intervals since the account was made, counted from `epochAt` for one that is older, less the codes it has made
 * since then; never so many that more than five are unused. Codes that the operator gave do not count.
 */
export function codesToCreate(account: {
  now: Millis
  createdAt: Millis
  epochAt: Millis
  intervalMillis: number
  /** Codes the account made itself since `epochAt`. */
  madeSinceEpoch: number
  /** Of the codes it made itself. */
  unused: number
}): number {
  const { now, createdAt, epochAt, intervalMillis, madeSinceEpoch, unused } = account
  const intervals = (until: Millis) => Math.max(0, Math.floor((until - createdAt) / intervalMillis))
  const earned = intervals(now) - intervals(epochAt)
  return Math.max(0, Math.min(MAX_UNUSED_CODES - unused, earned - madeSinceEpoch))
}
