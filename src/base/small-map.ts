/**
 * A map for a handful of entries, most of the time. A `Map` takes more than a kilobyte as soon as it has one entry;
 * this one searches two lists while they are short, and becomes a `Map` when they are not.
 */

/** Up to this many entries are searched one by one. */
const FEW_ENTRIES = 16

export class SmallMap<Value> {
  readonly #keys: string[] = []
  readonly #values: Value[] = []
  #map: Map<string, Value> | null = null

  get(key: string): Value | undefined {
    if (this.#map !== null) return this.#map.get(key)
    const i = this.#keys.indexOf(key)
    return i < 0 ? undefined : this.#values[i]
  }

  set(key: string, value: Value): void {
    if (this.#map !== null) {
      this.#map.set(key, value)
      return
    }
    const i = this.#keys.indexOf(key)
    if (i >= 0) this.#values[i] = value
    else if (this.#keys.length < FEW_ENTRIES) {
      this.#keys.push(key)
      this.#values.push(value)
    } else {
      this.#map = new Map(this.#keys.map((known, at) => [known, this.#values[at]!]))
      this.#map.set(key, value)
    }
  }

  /** Returns whether there was such an entry. */
  delete(key: string): boolean {
    if (this.#map !== null) return this.#map.delete(key)
    const i = this.#keys.indexOf(key)
    if (i < 0) return false
    this.#keys.splice(i, 1)
    this.#values.splice(i, 1)
    return true
  }

  /** In the order in which their keys were first set. */
  values(): Value[] {
    return this.#map === null ? this.#values.slice() : [...this.#map.values()]
  }

  entries(): [key: string, value: Value][] {
    return this.#map === null ? this.#keys.map((key, i) => [key, this.#values[i]!]) : [...this.#map]
  }

  clear(): void {
    this.#keys.length = 0
    this.#values.length = 0
    this.#map = null
  }
}
