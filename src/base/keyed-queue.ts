/** A queue for each key: work under one key runs one piece at a time and in order, work under different keys side by side. */
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
    // The next in line does not care how its predecessor ended.
    const tail = turn.then(nothing, nothing)
    this.#tails.set(key, tail)
    return turn
  }

  /** Keys with work that runs or waits. */
  get size(): number {
    return this.#tails.size
  }

  async #after<T>(predecessor: Promise<void> | undefined, work: () => Promise<T>): Promise<T> {
    await predecessor
    return work()
  }
}

const nothing = () => undefined
