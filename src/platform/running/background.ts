/**
 * Work that goes on behind an answer. It fails nobody: what goes wrong is a line of the log. The server waits for it
 * before it closes, though not for ever.
 */
import type { Log } from './log.ts'

/** What is more than this is left out. Whoever starts it has bounds of their own; this one keeps their sum from growing. */
const MAX_RUNNING = 1000

export class Background {
  readonly #running = new Set<Promise<void>>()

  constructor(readonly log: Log) {}

  /** `action` says in the log what it is. */
  run(action: string, work: () => Promise<unknown>): void {
    if (this.#running.size >= MAX_RUNNING) return this.log.warn('left out: too much goes on behind answers', { action })
    const task = this.#attempt(action, work).finally(() => this.#running.delete(task))
    this.#running.add(task)
  }

  /** Resolves once nothing goes on any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** The same, but not for longer than the grace. */
  async end(graceMillis: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const deadline = setTimeout(resolve, graceMillis)
    await Promise.race([this.settled(), promise])
    clearTimeout(deadline)
    if (this.#running.size > 0) this.log.warn('stopped before all was done that goes on behind answers')
  }

  async #attempt(action: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.log.error('failed behind an answer', { action, error })
    }
  }
}
