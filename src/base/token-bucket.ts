import { HOUR_MILLIS } from './durations.ts'

/**
 * A budget that is full at first and fills up again evenly. `now` is an instant on the monotonic clock, in
 * milliseconds.
 */
export class TokenBucket {
  #tokens: number
  #at: number | null = null

  constructor(
    readonly size: number,
    readonly perHour: number,
  ) {
    this.#tokens = size
  }

  /** Returns when the next token is there, in milliseconds from now; 0 if there is one. */
  waitMillis(now: number): number {
    this.#fill(now)
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) * HOUR_MILLIS) / this.perHour)
  }

  /** Take a token if there is one. */
  take(now: number): boolean {
    this.#fill(now)
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  /** Empties the bucket because the relay reported a rate limit. Returns when the next token is there. */
  empty(now: number): number {
    this.#fill(now)
    this.#tokens = 0
    return this.waitMillis(now)
  }

  #fill(now: number): void {
    if (this.#at !== null)
      this.#tokens = Math.min(this.size, this.#tokens + ((now - this.#at) * this.perHour) / HOUR_MILLIS)
    this.#at = now
  }
}
