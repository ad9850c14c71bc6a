/**
 * The two kinds of time. Instants that are stored, sent or compared with stored ones come from the wall clock, which an
 * operator or a time server may set. Durations that are only measured within this process (a window, a wait, the age of
 * something in memory) come from the monotonic clock, so setting the clock neither shortens nor prolongs them.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { Millis } from '../../protocol/identifiers.ts'

export interface Clock {
  /** Wall-clock time. May go backwards or jump ahead. */
  now(): Millis
  /** Milliseconds since an arbitrary moment of this process. Never goes backwards or jumps. */
  monotonic(): number
}

/** Times written by one node are ahead of another node's time by less, even while nodes of an earlier version run. */
export const MAX_SKEW_MILLIS = 2 * MINUTE_MILLIS

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** The clock of a node: the time is that of the cluster. */
export const clusterClock = (machine: Clock, cluster: { readonly clockCorrection: Millis }): Clock => ({
  now: () => machine.now() - cluster.clockCorrection,
  monotonic: () => machine.monotonic(),
})

/**
 * Returns the age of something stored, in milliseconds. A time in the future was stored while the clock was wrong: the
 * age is then unknown, and counts as infinite.
 */
export const ageOf = (at: Millis, now: Millis): number => (at <= now ? now - at : Infinity)
