/**
 * A bounded map in two generations. When the younger generation is full, it replaces the older one, which is dropped.
 *
 * Deleting the oldest entries of a large `Map` one by one takes tens of microseconds each, because the runtime walks
 * over the slots of all earlier deletions. Dropping a generation costs the same at every size.
 */
export class BoundedCache<Value, Key = string> {
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()
  #youngWeight = 0

  /**
   * Keeps the newest entries: at least `max / 2` of total weight, at most `max`. An entry weighs one unless `weigh`
   * says otherwise.
   */
  constructor(
    readonly max: number,
    readonly weigh: (key: Key, value: Value) => number = () => 1,
  ) {}

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: Key): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  /** As `get`, but makes the entry as young as one that was set. */
  use(key: Key): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: Key, value: Value): void {
    this.#unweigh(key)
    const weight = this.weigh(key, value)
    if (this.#youngWeight + weight > this.max / 2) this.turn()
    this.#young.set(key, value)
    this.#youngWeight += weight
  }

  delete(key: Key): void {
    this.#unweigh(key)
    this.#young.delete(key)
    this.#old.delete(key)
  }

  #unweigh(key: Key): void {
    const value = this.#young.get(key)
    if (value !== undefined) this.#youngWeight -= this.weigh(key, value)
  }

  /** Drop the older generation and start a new one. */
  turn(): void {
    this.#old = this.#young
    this.#young = new Map<Key, Value>()
    this.#youngWeight = 0
  }
}
