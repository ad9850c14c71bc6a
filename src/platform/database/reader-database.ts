/**
 * The database of a reader thread: SQLite, on connections that only read, and that see only what is on the disk.
 *
 * It stays in one read transaction from commit to commit, and begins another once the next commit is on the disk: see
 * `CommitBoard`. A client that was told of a commit either reads it here, or gets its answer from the main thread.
 */
import { Database as Connection } from 'bun:sqlite'
import { Elsewhere } from '../../base/elsewhere.ts'
import type { CommitBoard } from '../readers/commit-board.ts'
import type { Database, DatabaseCounters, Reader } from './database.ts'
import { Snapshots, type Snapshot } from './sqlite-readers.ts'
import { Prepared, readerOf } from './sqlite-statements.ts'

/** Page cache of the connection for short reads, and of each snapshot. */
const CACHE_KIB = 8192
const SNAPSHOT_CACHE_KIB = 2048
/** Most attempts to begin a snapshot, each after another commit. */
const MAX_TRIES = 100
/**
 * How long a snapshot waits for a commit, which may wait for a backup: the main thread can read the state before it.
 */
const MAX_WAIT_MILLIS = 100

export class ReaderDatabase {
  readonly #counters: DatabaseCounters
  readonly #prepared: Prepared
  readonly #snapshots = new Snapshots(() => this.#open(SNAPSHOT_CACHE_KIB))
  /** The state that the connection reads; null if it reads none. */
  #state: number | null = null
  #isClosed = false

  constructor(
    readonly path: string,
    readonly board: CommitBoard,
    readonly index: number,
  ) {
    this.#counters = countersOn(board)
    this.#prepared = this.#open(CACHE_KIB)
  }

  #open(cacheKib: number): Prepared {
    return new Prepared(new Connection(this.path, { readonly: true, strict: true }), this.#counters, cacheKib)
  }

  /** Whether the connection reads what was on the disk when this was called. Begins a new transaction if need be. */
  isCurrent(): boolean {
    const { board } = this
    if (this.#state === board.flushed) return true
    this.#leave()
    this.#state = board.steady(() => this.#prepared.beginReading())
    if (this.#state === null) this.#leave()
    else board.noteReading(this.index, this.#state)
    return this.#state !== null
  }

  #leave(): void {
    this.#state = null
    if (this.#prepared.connection.inTransaction) this.#prepared.command('COMMIT')
  }

  /** Follows the commits until the database is closed, so that the next request finds the connection current. */
  async follow(): Promise<void> {
    while (!this.#isClosed) {
      const { flushed } = this.board
      if (this.#state === flushed || !this.isCurrent()) await this.board.after(flushed)
    }
  }

  #reading(): Prepared {
    if (this.#state === null) throw new Elsewhere('a commit is on its way to the disk')
    return this.#prepared
  }

  async #snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const snapshot = await this.#enterSnapshot()
    try {
      return await work(snapshot.reader)
    } finally {
      this.#snapshots.leave(snapshot)
    }
  }

  async #enterSnapshot(): Promise<Snapshot> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { flushed } = this.board
      const snapshot = this.#snapshotOf(flushed)
      if (snapshot !== null) return snapshot
      if (!(await this.board.after(flushed, MAX_WAIT_MILLIS))) break
    }
    throw new Elsewhere('there is always a commit on its way to the disk')
  }

  /** Null while a commit is on its way to the disk, unless the state before it is being read already. */
  #snapshotOf(state: number): Snapshot | null {
    const snapshots = this.#snapshots
    if (snapshots.has(state)) return snapshots.enter(state)
    let begun = null as Snapshot | null
    const seen = this.board.steady(() => (begun = snapshots.enter(state)))
    if (seen === state) return begun
    if (begun !== null) snapshots.leave(begun)
    return null
  }

  /** The database for handlers. Whatever it cannot do here throws `Elsewhere`: the main thread has to do that. */
  asDatabase(): Database {
    const reads = readerOf(() => this.#reading())
    const here: Partial<Database> = {
      ...reads,
      cluster: null,
      shortSnapshot: (work) => work(reads),
      snapshot: (work) => this.#snapshot(work),
    }
    return onlyHere('db', here) as Database
  }

  close(): void {
    this.#isClosed = true
    this.#leave()
    this.#snapshots.close()
    this.#prepared.close()
  }
}

/** Counts statements on the board, for the main thread. This thread does nothing else that is counted. */
const countersOn = (board: CommitBoard): DatabaseCounters => ({
  get statements() {
    return board.statements
  },
  set statements(_) {
    board.countStatement()
  },
  rows: 0,
  transactions: 0,
  commits: 0,
  roundTrips: 0,
})

/** An object of which this thread has only a part. Using another part throws `Elsewhere`. */
export const onlyHere = <Whole extends object>(name: string, part: Partial<Whole>): Whole =>
  new Proxy(part, {
    get(target, key) {
      if (key in target) return target[key as keyof Whole]
      throw new Elsewhere(`it has ${name}.${String(key)}`)
    },
  }) as Whole
