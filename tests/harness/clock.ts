import type { Clock } from '../../src/platform/clock.ts'

/** Real time, moved by as much as a test asks for. */
export class TestClock implements Clock {
  #offsetMillis = 0

  now(): number {
    return Date.now() + this.#offsetMillis
  }

  /** Negative to step back, as a badly kept machine does. */
  advance({ secs = 0, days = 0 }: { secs?: number; days?: number }): void {
    this.#offsetMillis += (days * 86_400 + secs) * 1000
  }
}
