/**
 * Reads a copy of a database whose pages are replaced in place. Only `change` may replace them.
 *
 * A change waits until the reads that need one state have ended, and takes place within one turn of the event loop, so
 * that no statement sees a part of it. SQLite does not notice the change. So each state gets a connection of its own,
 * opened on first use, which treats the file as immutable.
 */
import { constants, Database as Connection } from 'bun:sqlite'
import { pathToFileURL } from 'node:url'
import { Elsewhere } from '../../base/elsewhere.ts'
import type { Database, DatabaseCounters, Reader } from './database.ts'
import { onlyHere } from './reader-database.ts'
import { Prepared, readerOf } from './sqlite-statements.ts'

/** How long a change waits for reads that need one state. After that, they fail. */
const MAX_HOLD_MILLIS = 5000
/**
 * Part of the time during which changes may wait for reads. Without this limit, endless reads would let one change
 * through every five seconds, and the copy would fall behind.
 */
const HELD_PART = 1 / 2

export class CopyDatabase {
  readonly #counters: DatabaseCounters = { statements: 0, rows: 0, transactions: 0, commits: 0, roundTrips: 0 }
  /** Null while there is nothing to read. */
  #path: string | null = null
  /** Whether the file has the whole of the last change. */
  #isWhole = true
  #connection: Prepared | null = null
  /** Identifies the present state; every change makes another. */
  #state = 0
  /** Number of reads that need the present state. */
  #users = 0
  #onUnused: () => void = () => {}
  /** Resolves once the pending change has been made. */
  #change: Promise<void> | null = null
  /** How long the next change may wait, as of `at`. */
  #mayHold: { millis: number; at: number }

  /** `onOpened` is called when a state is read for the first time. */
  constructor(
    readonly onOpened: (reader: Reader) => void = () => {},
    readonly maxHoldMillis = MAX_HOLD_MILLIS,
  ) {
    this.#mayHold = { millis: maxHoldMillis, at: performance.now() }
  }

  get isReadable(): boolean {
    return this.#path !== null && this.#isWhole
  }

  /** Read this file from now on, as it is. */
  begin(path: string): void {
    this.#path = path
    this.#isWhole = true
  }

  /** Read nothing from now on. Reads in progress fail. */
  end(): void {
    this.#path = null
    this.#leave()
  }

  /** Replaces pages in `work`, once no read needs the old ones. If `work` fails, reads fail until a change succeeds. */
  async change(work: () => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#change = promise
    try {
      await this.#unused()
      this.#leave()
      this.#isWhole = false
      work()
      this.#isWhole = true
    } finally {
      this.#change = null
      resolve()
    }
  }

  async #unused(): Promise<void> {
    if (this.#users === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    const began = performance.now()
    const { millis, at } = this.#mayHold
    const mayHold = Math.min(this.maxHoldMillis, millis + (began - at) * HELD_PART)
    const late = setTimeout(resolve, mayHold)
    await promise
    clearTimeout(late)
    const ended = performance.now()
    this.#mayHold = { millis: Math.max(0, mayHold - (ended - began)), at: ended }
  }

  #leave(): void {
    this.#state++
    this.#users = 0
    this.#connection?.close()
    this.#connection = null
  }

  #reading(): Prepared {
    if (!this.isReadable) throw new Elsewhere('there is no copy to read')
    if (this.#connection !== null) return this.#connection
    const { href } = pathToFileURL(this.#path!)
    const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI
    const connection = (this.#connection = new Prepared(new Connection(`${href}?immutable=1`, flags), this.#counters))
    this.onOpened(readerOf(() => connection))
    return connection
  }

  async #snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    while (this.#change !== null) await this.#change
    const state = this.#state
    this.#users++
    const reading = () => {
      if (this.#state !== state) throw new Elsewhere('the copy has changed')
      return this.#reading()
    }
    try {
      return await work(readerOf(reading))
    } finally {
      if (this.#state === state && --this.#users === 0) this.#onUnused()
    }
  }

  asDatabase(): Database {
    const here: Partial<Database> = {
      ...readerOf(() => this.#reading()),
      cluster: null,
      shortSnapshot: (work) => this.#snapshot(work),
      snapshot: (work) => this.#snapshot(work),
    }
    return onlyHere('db', here)
  }
}
