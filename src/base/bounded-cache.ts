/**
 * A map with a bound, in two generations: when the younger is full it becomes the older, and the older goes as a whole.
 *
 * Taking the oldest out of a large `Map` one by one costs tens of microseconds each time: the runtime walks over the
 * places of all that were deleted before. This costs the same at every size.
 */
export class BoundedCache<Value> {
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()
  #youngWeight = 0

  /** Keeps the newest that weigh `max / 2` together at least, and `max` at most. Each weighs one where nothing else is said. */
  constructor(
    readonly max: number,
    readonly weigh: (key: string, value: Value) => number = () => 1,
  ) {}

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: string, value: Value): void {
    this.#unweigh(key)
    const weight = this.weigh(key, value)
    if (this.#youngWeight + weight > this.max / 2) this.turn()
    this.#young.set(key, value)
    this.#youngWeight += weight
  }

  delete(key: string): void {
    this.#unweigh(key)
    this.#young.delete(key)
    this.#old.delete(key)
  }

  #unweigh(key: string): void {
    const value = this.#young.get(key)
    if (value !== undefined) this.#youngWeight -= this.weigh(key, value)
  }

  /** Let the older generation go, and begin a new one. */
  turn(): void {
    this.#old = this.#young
    this.#young = new Map()
    this.#youngWeight = 0
  }
}
