/** A wake-up that carries no data: whoever waits looks for itself what there is to do. */
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
