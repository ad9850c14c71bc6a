/** Work by key that callers share: whoever asks while it runs gets the outcome of that run. */
export class SingleFlight<Key, Outcome> {
  readonly #running = new Map<Key, Promise<Outcome>>()

  /** Keys whose work runs. */
  get size(): number {
    return this.#running.size
  }

  /** The run of a key that is under way. */
  running(key: Key): Promise<Outcome> | undefined {
    return this.#running.get(key)
  }

  /** Join the run of a key, or begin one. */
  run(key: Key, work: () => Promise<Outcome>): Promise<Outcome> {
    let run = this.#running.get(key)
    if (!run) this.#running.set(key, (run = work().finally(() => this.#running.delete(key))))
    return run
  }

  /** Begin a run of a key, or join one that began after this was asked: what an older one finds may be out of date by now. */
  async runAnew(key: Key, work: () => Promise<Outcome>): Promise<Outcome> {
    await this.#running.get(key)?.catch(() => undefined)
    return this.run(key, work)
  }
}
