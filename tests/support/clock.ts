import type { Clock } from '../../src/platform/running/clock.ts'

interface Span {
  secs?: number
  days?: number
}

const millisOf = ({ secs = 0, days = 0 }: Span) => (days * 86_400 + secs) * 1000

/** Real time, moved by as much as a test asks for. */
export class TestClock implements Clock {
  /** By how much it was advanced, for threads of the server. */
  readonly passed = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)
  readonly #passedThere = new Float64Array(this.passed)
  #passedMillis = 0
  #jumpedMillis = 0

  now(): number {
    return Date.now() + this.#passedMillis + this.#jumpedMillis
  }

  monotonic(): number {
    return performance.now() + this.#passedMillis
  }

  /** Time passes. */
  advance(span: Span): void {
    const millis = millisOf(span)
    if (millis < 0) throw new RangeError('time does not run backwards; a clock that is set does: jump')
    this.#passedMillis += millis
    this.#passedThere[0] = this.#passedMillis
  }

  /** Somebody sets the wall clock: ahead, or back where negative. */
  jump(span: Span): void {
    this.#jumpedMillis += millisOf(span)
  }
}

/** Time that passes only when a test says so, for what happens at an exact moment. It starts at a whole second. */
export class StillClock extends TestClock {
  readonly #startedAt: number
  #passedMillis = 0

  constructor(startedAt = Math.floor(Date.now() / 1000) * 1000) {
    super()
    this.#startedAt = startedAt
  }

  override now(): number {
    return this.#startedAt + this.#passedMillis
  }

  override monotonic(): number {
    return this.#passedMillis
  }

  override advance(span: Span & { millis?: number }): void {
    this.#passedMillis += millisOf(span) + (span.millis ?? 0)
  }
}
