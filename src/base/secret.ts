/** A value that must not be printed: every formatter prints `[secret]`. Uses of `.reveal()` are easy to search for. */
export class Secret<T> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  reveal(): T {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}
