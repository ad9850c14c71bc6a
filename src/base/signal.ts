/** A wake-up without data: each listener looks for its work itself. */
export class Signal {
  readonly #listeners = new Set<() => void>()

  notify(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
