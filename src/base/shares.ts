/** Gives each key its own number of places, which keeps one key from taking the places of others. */
export class Shares {
  readonly #taken = new Map<string, number>()

  constructor(readonly placesPerKey: number) {}

  /**
   * Take a place. Returns the function that gives it back, to be called once; null if all places of the key are taken.
   */
  enter(key: string): (() => void) | null {
    const taken = this.#taken.get(key) ?? 0
    if (taken >= this.placesPerKey) return null
    this.#taken.set(key, taken + 1)
    return () => this.#leave(key)
  }

  #leave(key: string): void {
    const left = this.#taken.get(key)! - 1
    if (left > 0) this.#taken.set(key, left)
    else this.#taken.delete(key)
  }
}
