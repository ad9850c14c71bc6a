/**
 * Background work that continues after a response was sent. An error is logged and fails no request. On shutdown the
 * server waits for the work, for a bounded time.
 */
import type { Log } from './log.ts'
import { inTime } from '../../base/in-time.ts'

/** Tasks beyond this number are dropped with a warning. Callers have bounds of their own; this one bounds their sum. */
const MAX_RUNNING = 1000

export class Background {
  readonly #running = new Set<Promise<void>>()

  constructor(readonly log: Log) {}

  /** Start a task. `action` names it in the log. Errors are logged, never thrown. */
  run(action: string, work: () => Promise<unknown>): void {
    if (this.#running.size >= MAX_RUNNING)
      return this.log.warn('background task dropped: too many are running', { action })
    const task = this.#attempt(action, work).finally(() => this.#running.delete(task))
    this.#running.add(task)
  }

  /** Resolves once no task is running. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Wait for the running tasks, at most `graceMillis`. */
  async end(graceMillis: number): Promise<void> {
    await inTime(this.settled(), graceMillis)
    if (this.#running.size > 0) this.log.warn('stopped before all background tasks finished')
  }

  async #attempt(action: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.log.error('background task failed', { action, error })
    }
  }
}
