/**
 * How SQLite is read while it is written: one connection for reads of the present state, and connections that keep an
 * earlier state for as long as it is needed.
 */
import { DatabaseUnavailable, type Reader, type Sql } from './database.ts'
import { readerOf, type Prepared } from './sqlite-statements.ts'

/** Idle snapshot connections that stay open. */
export const MAX_IDLE_SNAPSHOTS = 2

/**
 * The connection that reads committed data. It stays in one read transaction between commits, because beginning one for
 * each statement costs as much as most statements. No other process writes, so it misses no commit.
 */
export class SteadyReader {
  #isReading = false
  /** How many users need the visible state to stay: short snapshots, and a commit that is not on the disk yet. */
  #pins = 0
  #isOutdated = false

  constructor(readonly prepared: Prepared) {}

  all<Row>(query: Sql): Row[] {
    this.#begin()
    return this.prepared.all<Row>(query)
  }

  get<Row>(query: Sql): Row | null {
    this.#begin()
    return this.prepared.get<Row>(query)
  }

  #begin(): void {
    if (this.#isReading) return
    this.prepared.command('BEGIN')
    this.#isReading = true
  }

  /** From now on, new commits stay invisible until `unpin`. */
  pin(): void {
    this.#pins++
    if (this.#isReading) return
    this.prepared.beginReading()
    this.#isReading = true
  }

  unpin(): void {
    this.#pins--
    if (this.#isOutdated) this.renew()
  }

  /**
   * End the read transaction: the next statement sees the newest commit, and the log may restart. Deferred while
   * pinned.
   */
  renew(): void {
    this.#isOutdated = this.#pins > 0
    if (this.#isOutdated) return
    if (this.#isReading) this.prepared.command('COMMIT')
    this.#isReading = false
  }

  close(): void {
    this.renew()
    this.prepared.close()
  }
}

/** A connection that sees one state of the database, for all readers of that state. */
export interface Snapshot {
  readonly prepared: Prepared
  readonly version: number
  readonly reader: Reader
  users: number
}

export class Snapshots {
  readonly #idle: Prepared[] = []
  maxIdle = MAX_IDLE_SNAPSHOTS
  /** The newest snapshot that is in use. */
  #newest: Snapshot | null = null
  #isClosed = false

  constructor(readonly open: () => Prepared) {}

  /** Run `work` on a snapshot that is already in use. */
  async share<T>(snapshot: Snapshot, work: (reader: Reader) => Promise<T>): Promise<T> {
    snapshot.users++
    try {
      return await work(snapshot.reader)
    } finally {
      this.leave(snapshot)
    }
  }

  /** Whether there is a snapshot of this state that `enter` would share. */
  has = (version: number): boolean => this.#newest?.version === version

  /** Returns a snapshot of the present state, which `version` identifies. The snapshot stays until `leave`. */
  enter(version: number): Snapshot {
    if (this.#newest?.version !== version) this.#newest = this.#begin(version)
    this.#newest.users++
    return this.#newest
  }

  leave(snapshot: Snapshot): void {
    if (--snapshot.users === 0) this.#end(snapshot)
  }

  /** Moves a snapshot to a new transaction: the old one reads frames of the log, which keeps it from restarting. */
  renew(snapshot: Snapshot): Snapshot {
    this.#newest = this.#begin(snapshot.version)
    this.#newest.users++
    this.leave(snapshot)
    return this.#newest
  }

  /** Opens a connection ahead of time, so that the next snapshot need not wait for one, or fail. */
  makeReady(): void {
    if (this.#idle.length > 0) return
    const prepared = this.#keepState()
    prepared.command('ROLLBACK')
    this.#idle.push(prepared)
  }

  #begin(version: number): Snapshot {
    if (this.#isClosed) throw new DatabaseUnavailable('the database is closed')
    const prepared = this.#keepState()
    return { prepared, version, reader: readerOf(() => prepared), users: 0 }
  }

  #keepState(): Prepared {
    const prepared = this.#idle.pop() ?? this.open()
    try {
      prepared.beginReading()
      return prepared
    } catch (error) {
      prepared.close()
      throw error
    }
  }

  #end(snapshot: Snapshot): void {
    if (this.#newest === snapshot) this.#newest = null
    const { prepared } = snapshot
    // An error of the disk may have ended the transaction.
    if (prepared.connection.inTransaction) prepared.command('ROLLBACK')
    if (!this.#isClosed && this.#idle.length < this.maxIdle) this.#idle.push(prepared)
    else prepared.close()
  }

  close(): void {
    this.#isClosed = true
    for (const prepared of this.#idle.splice(0)) prepared.close()
  }
}
