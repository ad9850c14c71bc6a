/**
 * One queue per key: work with the same key runs one at a time and in order; work with different keys runs
 * concurrently.
 */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<void>>()

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#after(this.#tails.get(key), async () => {
      try {
        return await work()
      } finally {
        if (this.#tails.get(key) === tail) this.#tails.delete(key)
      }
    })
    // The next in line runs whether its predecessor succeeded or failed.
    const tail = turn.then(nothing, nothing)
    this.#tails.set(key, tail)
    return turn
  }

  /** How many keys have running or waiting work. */
  get size(): number {
    return this.#tails.size
  }

  async #after<T>(predecessor: Promise<void> | undefined, work: () => Promise<T>): Promise<T> {
    await predecessor
    return work()
  }
}

const nothing = () => undefined
