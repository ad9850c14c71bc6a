/**
 * The events that this node has sent to subscribers: the number of the newest event, and of the newest event of each
 * account. They show whether the database has lost events.
 */
import { perContext } from '../../../platform/context.ts'
import type { Cluster } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { StoredEvent } from './event-log.ts'

/** The most accounts that are remembered. Of the accounts seen last, at least half this number stay remembered. */
const MAX_ACCOUNTS = 20_000

/** Outlives the server that has sent the events. */
export interface Sent {
  /** Generation of the history in which they were sent. */
  readonly generation: number
  readonly head: number
  /** The accounts with events above a number; null if some may have been forgotten. */
  accountsAfter(seq: number): Did[] | null
}

export class SentEvents implements Sent {
  #head = 0
  #young = new Map<Did, number>()
  #old = new Map<Did, number>()
  /** Events above this number are remembered. */
  #floor = 0

  constructor(readonly cluster: Pick<Cluster, 'history'>) {}

  get generation(): number {
    return this.cluster.history.generation
  }

  /** The newest number that was ever seen. */
  get head(): number {
    return this.#head
  }

  raise(head: number): void {
    this.#head = Math.max(this.#head, head)
  }

  note(events: readonly StoredEvent[]): void {
    for (const { seq, did } of events) {
      this.raise(seq)
      if (seq > (this.#young.get(did) ?? 0)) this.#young.set(did, seq)
    }
    if (this.#young.size > MAX_ACCOUNTS / 2) this.#turn()
  }

  #turn(): void {
    for (const seq of this.#old.values()) this.#floor = Math.max(this.#floor, seq)
    this.#old = this.#young
    this.#young = new Map()
  }

  accountsAfter(seq: number): Did[] | null {
    if (seq < this.#floor) return null
    const newer = [...this.#old, ...this.#young].filter(([, newest]) => newest > seq)
    return [...new Set(newer.map(([did]) => did))]
  }
}

/** Null on SQLite, whose file does not go back in time while a server has it open. */
export const sentEventsOf = perContext(({ db }) => (db.cluster === null ? null : new SentEvents(db.cluster)))
