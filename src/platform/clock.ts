import type { Millis } from '../protocol/identifiers.ts'

export interface Clock {
  /** Wall-clock time. May step back. */
  now(): Millis
}

export const systemClock: Clock = { now: () => Date.now() }
