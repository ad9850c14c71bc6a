/**
 * Limits how many log lines of one kind are written if strangers cause them: a flood of requests must not become a
 * flood of lines. Each key has its own limit, so one key cannot use up the total. Omitted lines are counted.
 */
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { Clock } from './clock.ts'

const WINDOW_MILLIS = MINUTE_MILLIS
/** Lines per window: of all keys together, and of one key. */
const usual = { total: 60, perKey: 10 }

export class LogRateLimiter {
  readonly #written = new Map<string, number>()
  #total = 0
  #omitted = 0
  #endsAt = 0

  constructor(
    readonly clock: Pick<Clock, 'monotonic'>,
    readonly most = usual,
  ) {}

  /**
   * Call `write` if the budget allows another line for the key. `omitted` is the number of lines left out since the
   * previous line, or null if none were.
   */
  within(key: string, write: (omitted: number | null) => void): void {
    const now = this.clock.monotonic()
    if (now >= this.#endsAt) {
      this.#written.clear()
      this.#total = 0
      this.#endsAt = now + WINDOW_MILLIS
    }
    const written = this.#written.get(key) ?? 0
    if (written >= this.most.perKey || this.#total >= this.most.total) {
      this.#omitted++
      return
    }
    this.#written.set(key, written + 1)
    this.#total++
    const omitted = this.#omitted === 0 ? null : this.#omitted
    this.#omitted = 0
    write(omitted)
  }
}
