/** Shares work between callers by key: a caller who asks while it runs gets the outcome of that run. */
export class SingleFlight<Key, Outcome> {
  readonly #running = new Map<Key, Promise<Outcome>>()

  /** How many keys have running work. */
  get size(): number {
    return this.#running.size
  }

  /** The run in progress for a key, if any. */
  running(key: Key): Promise<Outcome> | undefined {
    return this.#running.get(key)
  }

  /** Join the run in progress for a key, or start one. */
  run(key: Key, work: () => Promise<Outcome>): Promise<Outcome> {
    let run = this.#running.get(key)
    if (!run) this.#running.set(key, (run = work().finally(() => this.#running.delete(key))))
    return run
  }

  /** Start a run for a key, or join one that starts after this call. The outcome of an older run may be out of date. */
  async runAnew(key: Key, work: () => Promise<Outcome>): Promise<Outcome> {
    await this.#running.get(key)?.catch(() => undefined)
    return this.run(key, work)
  }
}
