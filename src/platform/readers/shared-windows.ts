/**
 * Windows of rate limits in memory that threads share, so that a client has the same budget at all of them.
 *
 * Two threads that charge the same window in the same instant may both take its last point: a limit is exceeded by one
 * point for each reader thread at most.
 */

/** One window: when it ends (in milliseconds), what it belongs to, and the points used. */
const SLOT_BYTES = 24
const ENDS_AT = 0
const KEY = 2
const USED = 4
const SLOTS = 2 ** 17
/** Slots that the window of a key may be in. If all are taken, the window that ends first makes room. */
const TRIES = 8
const DOUBLES = SLOT_BYTES / Float64Array.BYTES_PER_ELEMENT
const INTEGERS = SLOT_BYTES / Int32Array.BYTES_PER_ELEMENT

export class SharedSlot {
  constructor(
    readonly integers: Int32Array<SharedArrayBuffer>,
    readonly at: number,
    readonly endsAt: number,
    readonly millis: number,
  ) {}

  get used(): number {
    return Atomics.load(this.integers, this.at + USED)
  }

  take(points: number): void {
    Atomics.add(this.integers, this.at + USED, points)
  }
}

export class SharedSlots {
  readonly #doubles: Float64Array<SharedArrayBuffer>
  readonly #integers: Int32Array<SharedArrayBuffer>

  constructor(readonly shared: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * SLOT_BYTES)) {
    this.#doubles = new Float64Array(shared)
    this.#integers = new Int32Array(shared)
  }

  /** Returns the window of a key, or a new one. */
  at(key: string, now: number, millis: number): SharedSlot {
    const first = Bun.hash.xxHash32(key) | 0
    // A key of zero marks an empty slot.
    const second = Bun.hash.cityHash32(key) | 1
    let [oldest, oldestEndsAt] = [0, Infinity]
    for (let tries = 0; tries < TRIES; tries++) {
      const slot = ((first >>> 0) + tries) % SLOTS
      const at = slot * INTEGERS
      const endsAt = this.#doubles[slot * DOUBLES + ENDS_AT]!
      if (this.#integers[at + KEY] === first && this.#integers[at + KEY + 1] === second && endsAt > now)
        return new SharedSlot(this.#integers, at, endsAt, millis)
      if (endsAt < oldestEndsAt) [oldest, oldestEndsAt] = [slot, endsAt]
    }
    const at = oldest * INTEGERS
    this.#integers[at + KEY] = first
    this.#integers[at + KEY + 1] = second
    Atomics.store(this.#integers, at + USED, 0)
    this.#doubles[oldest * DOUBLES + ENDS_AT] = now + millis
    return new SharedSlot(this.#integers, at, now + millis, millis)
  }
}
