/**
 * Takes over the work of dead nodes: on a cluster, the rows that a node held when it died are free for the others.
 * Every node looks for such rows from time to time, because any node may be the last one.
 *
 * While the database is down, no node can send heartbeats. A node that could not reach it therefore waits until the
 * others have had time to send one.
 */
import { ALIVE_MILLIS, DatabaseUnavailable, type Cluster } from '../database/database.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import { outsideRequests } from './request-scope.ts'

const INTERVAL_MILLIS = 3000

export class Reclaiming {
  #looking: Promise<void> | null = null
  #timer: Timer | null = null
  /** When the other nodes have had time to send a heartbeat, on the monotonic clock. */
  #trustedFrom = -Infinity

  constructor(
    readonly ctx: { cluster: Pick<Cluster, 'nodes'>; clock: Pick<Clock, 'monotonic'>; log: Pick<Log, 'warn'> },
    readonly reclaims: readonly (() => Promise<void>)[],
  ) {}

  start(): void {
    this.#timer = outsideRequests(() => setInterval(() => (this.#looking ??= this.look()), INTERVAL_MILLIS))
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#looking
  }

  async look(): Promise<void> {
    const { cluster, clock } = this.ctx
    try {
      await cluster.nodes()
      if (clock.monotonic() >= this.#trustedFrom) for (const reclaim of this.reclaims) await this.#tried(reclaim)
    } catch (error) {
      this.#trustedFrom = clock.monotonic() + ALIVE_MILLIS
      this.#warn(error)
    } finally {
      this.#looking = null
    }
  }

  /** A failure while the database can be reached must not keep other work from being taken over. */
  async #tried(reclaim: () => Promise<void>): Promise<void> {
    try {
      await reclaim()
    } catch (error) {
      if (error instanceof DatabaseUnavailable) throw error
      this.#warn(error)
    }
  }

  #warn(error: unknown): void {
    this.ctx.log.warn('could not check for work of dead nodes', { error })
  }
}
