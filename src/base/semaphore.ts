/** Thrown when as many pieces of work as may wait are waiting already. */
export class SemaphoreFull extends Error {}

/** Runs at most `size` pieces of work at a time. At most `maxWaiting` others wait their turn, in order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(
    size: number,
    readonly maxWaiting: number,
  ) {
    this.#free = size
  }

  /** Throws `SemaphoreFull` when too many wait already. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn()
    try {
      return await work()
    } finally {
      // A slot passes from hand to hand; it is free only when nobody waits.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.maxWaiting) throw new SemaphoreFull('too much is waiting already')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    return promise
  }
}
