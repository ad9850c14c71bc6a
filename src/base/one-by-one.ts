/** Spreads work over the turns of the event loop: one piece in each, however many callers there are. */
export class OneByOne {
  readonly #waiting: (() => void)[] = []

  /** Resolves in a turn of its own, in the order of calls. */
  next(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#waiting.push(resolve) === 1) setImmediate(this.#go)
    return promise
  }

  readonly #go = (): void => {
    this.#waiting.shift()!()
    if (this.#waiting.length > 0) setImmediate(this.#go)
  }
}
