/** Thrown when the waiting list is full. */
export class SemaphoreFull extends Error {}

/** Runs at most `size` pieces of work at a time. At most `maxWaiting` others wait, first come, first served. */
export class Semaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(
    size: number,
    readonly maxWaiting: number,
  ) {
    this.#free = size
  }

  /** Throws `SemaphoreFull` if `maxWaiting` others are waiting. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn()
    try {
      return await work()
    } finally {
      // Hand the permit to the next in line; it becomes free only if none is waiting.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.maxWaiting) throw new SemaphoreFull('the queue is full')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    return promise
  }
}
