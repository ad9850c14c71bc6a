/**
 * The database of a reader thread: SQLite, on connections that only read, and that see only what is on the disk.
 *
 * It stays in one read transaction from commit to commit, and begins another once the next commit is on the disk: see
 * `CommitBoard`. A client that was told of a commit either reads it here, or gets its answer from the main thread.
 */
import { Database as Connection } from 'bun:sqlite'
import { Elsewhere } from '../../base/elsewhere.ts'
import type { CommitBoard } from '../readers/commit-board.ts'
import type { Database, DatabaseCounters, Reader, Sql } from './database.ts'
import { Prepared } from './sqlite-statements.ts'

/** Page cache of the connection for short reads, and of each snapshot. */
const CACHE_KIB = 8192
const SNAPSHOT_CACHE_KIB = 2048
/** Idle snapshot connections that stay open. */
const MAX_IDLE_SNAPSHOTS = 2
/** Most attempts to begin a snapshot, each after another commit. */
const MAX_TRIES = 100
/**
 * How long a snapshot waits for a commit, which may wait for a backup: the main thread can read the state before it.
 */
const MAX_WAIT_MILLIS = 100

interface Snapshot {
  readonly prepared: Prepared
  readonly state: number
  readonly reader: Reader
  users: number
}

/** Begins a read transaction. SQLite fixes the visible state at the first statement, so this runs one. */
function beginReading(prepared: Prepared): void {
  prepared.command('BEGIN')
  prepared.command('SELECT 1 FROM sqlite_schema LIMIT 1')
}

export class ReaderDatabase {
  readonly #counters: DatabaseCounters
  readonly #prepared: Prepared
  readonly #idle: Prepared[] = []
  /** The newest snapshot that is in use. */
  #newest: Snapshot | null = null
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
    this.#state = board.steady(() => beginReading(this.#prepared))
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
      if (--snapshot.users === 0) this.#end(snapshot)
    }
  }

  /** Snapshots of the same state share a connection. */
  async #enterSnapshot(): Promise<Snapshot> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { flushed } = this.board
      const snapshot = this.#newest?.state === flushed ? this.#newest : this.#beginSnapshot()
      if (snapshot !== null) {
        snapshot.users++
        return snapshot
      }
      if (!(await this.board.after(flushed, MAX_WAIT_MILLIS))) break
    }
    throw new Elsewhere('there is always a commit on its way to the disk')
  }

  #beginSnapshot(): Snapshot | null {
    const prepared = this.#idle.pop() ?? this.#open(SNAPSHOT_CACHE_KIB)
    const state = this.board.steady(() => beginReading(prepared))
    if (state === null) {
      this.#retire(prepared)
      return null
    }
    return (this.#newest = { prepared, state, reader: readerOf(() => prepared), users: 0 })
  }

  #end(snapshot: Snapshot): void {
    if (this.#newest === snapshot) this.#newest = null
    this.#retire(snapshot.prepared)
  }

  #retire(prepared: Prepared): void {
    if (prepared.connection.inTransaction) prepared.command('ROLLBACK')
    if (!this.#isClosed && this.#idle.length < MAX_IDLE_SNAPSHOTS) this.#idle.push(prepared)
    else prepared.close()
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
    for (const prepared of [...this.#idle.splice(0), this.#prepared]) prepared.close()
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

const readerOf = (connection: () => Prepared): Reader => ({
  all: async <Row>(query: Sql) => connection().all<Row>(query),
  get: async <Row>(query: Sql) => connection().get<Row>(query),
})

/** An object of which this thread has only a part. Using another part throws `Elsewhere`. */
export const onlyHere = <Whole extends object>(name: string, part: Partial<Whole>): Whole =>
  new Proxy(part, {
    get(target, key) {
      if (key in target) return target[key as keyof Whole]
      throw new Elsewhere(`it has ${name}.${String(key)}`)
    },
  }) as Whole
