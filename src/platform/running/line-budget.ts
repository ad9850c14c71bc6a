/**
 * How many lines of a kind the log gets, where strangers cause them: a flood of requests must not become a flood of
 * lines. Each key has a share of what all have, so that one does not use up everybody's. What is left out is counted.
 */
import type { Clock } from './clock.ts'

const WINDOW_MILLIS = 60_000
/** In one window. */
const MAX_LINES = 60
const MAX_LINES_PER_KEY = 10

export class LineBudget {
  readonly #written = new Map<string, number>()
  #total = 0
  #omitted = 0
  #endsAt = 0

  constructor(readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Write a line if there is room for it. `omitted` says how many were left out before it, null where none were. */
  within(key: string, write: (omitted: number | null) => void): void {
    const now = this.clock.monotonic()
    if (now >= this.#endsAt) {
      this.#written.clear()
      this.#total = 0
      this.#endsAt = now + WINDOW_MILLIS
    }
    const written = this.#written.get(key) ?? 0
    if (written >= MAX_LINES_PER_KEY || this.#total >= MAX_LINES) {
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
