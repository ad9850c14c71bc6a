/** The connection whose life is that of a node in its cluster: what it holds, it holds until the connection ends. */
import type { SQL } from 'bun'
import type { DatabaseCounters, Reader } from './database.ts'
import { readerOn } from './postgres-statements.ts'

/** Opens a pool of at most `max` connections. */
export type Connect = (max: number, options?: Pick<SQL.PostgresOrMySQLOptions, 'onconnect' | 'onclose' | 'connection'>) => SQL

/** PostgreSQL ends a session that is silent for this long. */
const SESSION_TIMEOUT_MILLIS = 10_000
/** The node gives up a session without answers earlier than that. */
const SILENCE_MILLIS = 8000
/** Longest wait for a lock, such as that on the row of a lease. */
const LOCK_TIMEOUT_MILLIS = 5000

const settings = { idle_session_timeout: SESSION_TIMEOUT_MILLIS, lock_timeout: LOCK_TIMEOUT_MILLIS }

export class Session {
  #pool: SQL
  #reader: Reader
  #answeredAt = performance.now()

  /** `onEnd` is called whenever a connection has ended. The next question opens another one. */
  constructor(
    readonly connect: Connect,
    readonly onEnd: () => void,
  ) {
    this.#pool = this.#open()
    this.#reader = this.#readerOn(this.#pool)
  }

  /** Runs `work` on the session. Its statements may be on two connections if the first was lost in between. */
  async ask<T>(work: (session: Reader) => Promise<T>): Promise<T> {
    const answer = await work(this.#reader)
    this.#answeredAt = performance.now()
    return answer
  }

  /** Give up a connection that was lost without a sign. Call it at short intervals, before a question. */
  endIfSilent(): void {
    if (performance.now() - this.#answeredAt < SILENCE_MILLIS) return
    const silent = this.#pool
    this.#pool = this.#open()
    this.#reader = this.#readerOn(this.#pool)
    this.#answeredAt = performance.now()
    this.onEnd()
    // Questions without answer are rejected.
    void silent.close({ timeout: 0 }).catch(() => undefined)
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  #open(): SQL {
    const pool: SQL = this.connect(1, {
      connection: settings,
      onclose: () => {
        if (pool === this.#pool) this.onEnd()
      },
    })
    return pool
  }

  /** Statements of the cluster are not those of requests, and are counted apart. */
  #readerOn(pool: SQL): Reader {
    const counters: DatabaseCounters = { statements: 0, rows: 0, transactions: 0, commits: 0 }
    return readerOn(pool, counters)
  }
}
