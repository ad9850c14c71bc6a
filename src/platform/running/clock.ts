/**
 * The two kinds of time. What is stored, sent or compared with something of that kind is an instant of the wall clock,
 * which an operator or a time server may set. What is only measured here and now (a window, a wait, the age of something
 * in memory) is an interval of the monotonic clock, so that a clock that is set neither ends nor prolongs it.
 */
import type { Millis } from '../../protocol/identifiers.ts'

export interface Clock {
  /** Wall-clock time. May step back, and jump ahead. */
  now(): Millis
  /** Milliseconds since some moment of this process. Never steps back or jumps. */
  monotonic(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** How old something stored is. Something from the future was stored while the clock was wrong, and may be of any age. */
export const ageOf = (at: Millis, now: Millis): number => (at <= now ? now - at : Infinity)
