/**
 * The SQLite adapter: one file, one write connection behind a queue, one read connection.
 *
 * The life of a transaction, which shares its commit with others (group commit):
 * 1. `enter` queues the transaction. One turn of the event loop later, all waiting transactions run as a group inside
 *    one BEGIN … COMMIT, one after another. Most failures happen before a row is changed, and leave nothing to undo. If
 *    a member fails later, the group is rolled back and runs again with a savepoint for each member, so that only the
 *    failing one is undone.
 * 2. COMMIT writes the log without waiting for the disk. The reader is pinned to the state before the commit.
 * 3. Another thread flushes the log. In the meantime, reads see the state before the commit.
 * 4. The group is now durable: the reader moves on, `afterCommit` callbacks run, and the callers' promises resolve.
 * 5. Before the next group, the log file is extended. If the log is long, another thread copies it into the database
 *    file (a checkpoint). The next group waits for its last pages, so that the log can restart from its beginning: see
 *    `wal.ts`.
 *
 * With a gate (`CommitGate`), a group is durable once it has passed the gate, which takes long. So the next groups run
 * in the meantime: a snapshot keeps the state after each, and readers move from one to the next as groups pass.
 */
import { statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Database as Connection, type SQLQueryBindings, type Statement } from 'bun:sqlite'
import {
  DatabaseUnavailable,
  sql,
  type Database,
  type DatabaseCounters,
  type Reader,
  type Sql,
  type SqlValue,
  type Tx,
  type WriteFault,
} from './database.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { storageFaultOf } from '../files/storage-faults.ts'
import { BatchLoop } from '../running/batch-loop.ts'
import type { CommitBoard } from '../readers/commit-board.ts'
import { onBehalf } from '../running/request-scope.ts'
import { DatabaseFiles } from './database-files.ts'
import { FRAME_BYTES, LogFollower, type CommitGate, type LogPosition } from './log-follower.ts'
import { Checkpointer, FlushFailed, WriteAheadLog } from './wal.ts'

/** Most transactions in one COMMIT; the bound keeps the first of them from waiting long. */
const MAX_GROUP = 512
/** A group that runs for longer than this yields to other requests between its members. */
const TURN_MILLIS = 4
/**
 * After a member has failed with changed rows, this many groups run with savepoints from the start. Otherwise, a client
 * that knows how to cause such failures could make every group run twice. A savepoint costs as much as two statements.
 */
const CAREFUL_GROUPS = 64
/** Start a background checkpoint at this many WAL frames. */
const CHECKPOINT_FRAMES = 8000
/**
 * When no more frames than these are left to copy, writers wait for the checkpoint: the log cannot restart while they
 * add to it. That takes 2 ms, once in 800 commits; flushes of a background checkpoint delay those of commits.
 */
const LAST_FRAMES = 500
/** If a reader kept a checkpoint from copying the whole log, the next one begins after this many more frames. */
const RETRY_FRAMES = 1000
/**
 * At this many WAL frames, writers wait for each checkpoint, and new snapshots wait until a checkpoint has copied the
 * whole log.
 */
const MAX_LOG_FRAMES = 24_000
/** How long a new snapshot waits for that checkpoint. An older snapshot may prevent it for longer. */
const COPY_WAIT_MILLIS = 5000
/** Prepared statements kept per connection; the oldest is dropped first. */
const MAX_STATEMENTS = 400
/** How long a statement waits for the lock of another process. */
const BUSY_TIMEOUT_MILLIS = 5000
/** `temp_store`: without it, SQLite keeps the rollback data of savepoints in a temporary file. */
const writerPragmas = [
  'journal_mode = WAL',
  'synchronous = NORMAL',
  'wal_autocheckpoint = 0',
  'foreign_keys = ON',
  'temp_store = MEMORY',
]
/** Page cache of each connection. Pages beyond it are still in the operating system's cache. */
const CACHE_KIB = 16_384
/** Page cache of a snapshot connection. It stays small because snapshots read each page once. */
const SNAPSHOT_CACHE_KIB = 4096
/** Idle snapshot connections that stay open. */
const MAX_IDLE_SNAPSHOTS = 2
/** Most groups that wait for the gate at once. */
const MAX_UNSETTLED = 8

export interface SqliteOptions {
  path: string
  /**
   * For tests: enforce the contract of transactions. Each runs twice, with the first run rolled back, and fails if it
   * awaits anything but the database.
   */
  strict?: boolean
}

/** The path in `database_url`, which is a path or a `sqlite:` URL. */
export const sqlitePath = (databaseUrl: string): string => databaseUrl.replace(/^sqlite:(\/\/)?/, '')

/** An empty file does not count: SQLite creates a database in it, as it does for a missing file. */
export const isDatabaseThere = (path: string): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Returns the path of an existing database. Throws `OperatorError` if there is none: opening it would create an empty
 * one, which a command would report as sound.
 */
export function existingSqlitePath(databaseUrl: string): string {
  const path = sqlitePath(databaseUrl)
  if (!isDatabaseThere(path)) throw new OperatorError(`there is no database at ${path}`)
  return path
}

export function openSqlite({ path, strict = false }: SqliteOptions): Database {
  const counters: DatabaseCounters = { statements: 0, rows: 0, transactions: 0, commits: 0, roundTrips: 0 }
  const writer = new Prepared(new Connection(path, { create: true, strict: true }), counters)
  for (const pragma of writerPragmas) writer.connection.run(`PRAGMA ${pragma}`)
  const reader = new SteadyReader(new Prepared(new Connection(path, { readonly: true, strict: true }), counters))
  const snapshots = new Snapshots(
    () => new Prepared(new Connection(path, { readonly: true, strict: true }), counters, SNAPSHOT_CACHE_KIB),
  )
  const queue = new WriterQueue(writer, reader, snapshots, path, strict)

  const reads = readerOf({
    all: (query) => (queue.shown?.prepared ?? reader).all(query),
    get: (query) => (queue.shown?.prepared ?? reader).get(query),
  })

  const ended = new AbortController()
  return {
    dialect: { name: 'sqlite', beforeMigration: [], definition: (statement) => statement },
    counters: {
      get statements() {
        return counters.statements + (queue.board?.statements ?? 0)
      },
      get rows() {
        return counters.rows
      },
      get transactions() {
        return counters.transactions
      },
      get commits() {
        return counters.commits
      },
      roundTrips: 0,
    },
    cluster: null,
    ended: ended.signal,
    logFollowing: {
      begin: (position) => queue.atRest((frames) => queue.follow(frames, position)),
      async rewind(work) {
        await queue.shorten()
        return queue.atRest((frames) => {
          queue.follower?.rewind(frames)
          return work()
        })
      },
      settle: () => queue.atRest(() => {}),
      file: queue.files,
      end: () => queue.unfollow(),
      abandon: (reason) => ended.abort(reason),
      get abandoned() {
        return ended.signal.aborted ? (ended.signal.reason as OperatorError) : null
      },
    },
    threads: {
      path,
      async notify(board) {
        // Not through `atRest`, which needs a commit: a server that is stopping may be unable to write.
        if (board === null) queue.board = null
        else await queue.atRest(() => void (queue.board = board))
      },
    },
    get writeFault() {
      return queue.follower?.gate?.refusal ?? queue.fault
    },
    ...reads,
    run: (query) => queue.enter((tx) => tx.run(query)),
    transaction: (work) => queue.enter(onBehalf(work)),
    transactionOn: (_, work) => queue.enter(onBehalf(work)),
    async shortSnapshot(work) {
      if (queue.shown !== null)
        return snapshots.share(queue.shown, (shown) => (strict ? withoutWaiting(work(shown)) : work(shown)))
      reader.pin()
      try {
        return await (strict ? withoutWaiting(work(reads)) : work(reads))
      } finally {
        reader.unpin()
      }
    },
    async snapshot(work) {
      const snapshot = await queue.beginSnapshot()
      try {
        return await work(snapshot.reader)
      } finally {
        snapshots.leave(snapshot)
      }
    },
    async integrityFaults() {
      const rows = await reads.all<{ integrity_check: string }>(sql`PRAGMA integrity_check`)
      return rows.map((row) => row.integrity_check).filter((found) => found !== 'ok')
    },
    // An update that changes nothing writes no page. Setting `user_version`, which is not used, writes the first one.
    retryWriting: () => queue.enter(async (tx) => void (await tx.run(sql`PRAGMA user_version = 0`))),
    async close() {
      await queue.rest()
      await queue.follower?.onClosing()
      await queue.close()
      const { follower } = queue
      await follower?.onLastCommit()
      snapshots.close()
      queue.showNewest()
      reader.close()
      const isWhole = emptyLog(writer) && !queue.hasUnflushed
      writer.close()
      queue.log.close()
      await queue.files.close()
      follower?.onClosed(isWhole)
      queue.unfollow()
    },
  }
}

/** Copies the whole log into the database file. Returns false if the disk fails; the log then stays as it is. */
function emptyLog({ connection }: Prepared): boolean {
  try {
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return true
  } catch (error) {
    if (isDiskFault(error)) return false
    throw error
  }
}

const readerOf = (source: Pick<Prepared, 'all' | 'get'>): Reader => ({
  all: <Row>(query: Sql) => answered(() => source.all<Row>(query)),
  get: <Row>(query: Sql) => answered(() => source.get<Row>(query)),
})

/** Does what `async` would do, for much less: the engine need not create a function that it can suspend and resume. */
function answered<T>(work: () => T): Promise<T> {
  try {
    return Promise.resolve(work())
  } catch (error) {
    return Promise.reject(error as Error)
  }
}

interface Kept {
  statement: Statement
  /** False if the statement may change something. */
  onlyReads: boolean
  /** Whether the row count of the statement covers all that it changes. `CREATE TABLE` counts no rows. */
  onlyRows: boolean
}

const reading = /^\s*SELECT\b/i
const changingRows = /^\s*(INSERT|UPDATE|DELETE)\b/i

/** A connection and its prepared statements. */
export class Prepared {
  readonly #statements = new Map<string, Kept>()
  #isClosed = false
  /** Whether anything may have changed since this was last set to false. */
  hasChanged = false

  constructor(
    readonly connection: Connection,
    readonly counters: DatabaseCounters,
    cacheKib = CACHE_KIB,
  ) {
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MILLIS}`)
    connection.run(`PRAGMA cache_size = -${cacheKib}`)
  }

  all<Row>(query: Sql): Row[] {
    return this.#answering(query).all(...bindings(query.values)) as Row[]
  }

  get<Row>(query: Sql): Row | null {
    return this.#answering(query).get(...bindings(query.values)) as Row | null
  }

  run(query: Sql): number {
    const { statement, onlyRows } = this.#counted(query)
    const { changes } = statement.run(...bindings(query.values))
    this.counters.rows += changes
    if (changes > 0 || !onlyRows) this.hasChanged = true
    return changes
  }

  /** A statement without parameters. */
  command(text: string): void {
    this.#prepared(text).statement.run()
  }

  /** Prepares a statement that returns rows, as `INSERT … RETURNING` does too. */
  #answering(query: Sql): Statement {
    const { statement, onlyReads } = this.#counted(query)
    if (!onlyReads) this.hasChanged = true
    return statement
  }

  #counted(query: Sql): Kept {
    this.counters.statements++
    return this.#prepared(textOf(query))
  }

  #prepared(text: string): Kept {
    const kept = this.#statements.get(text)
    if (kept) return kept
    if (this.#isClosed) throw new DatabaseUnavailable('the database is closed')
    const made = {
      statement: this.connection.prepare(text),
      onlyReads: reading.test(text),
      onlyRows: changingRows.test(text),
    }
    if (this.#statements.size >= MAX_STATEMENTS) {
      const [oldest, { statement }] = this.#statements.entries().next().value!
      this.#statements.delete(oldest)
      statement.finalize()
    }
    this.#statements.set(text, made)
    return made
  }

  close() {
    this.#isClosed = true
    for (const { statement } of this.#statements.values()) statement.finalize()
    this.#statements.clear()
    this.connection.close()
  }
}

/**
 * The connection that reads committed data. It stays in one read transaction between commits, because beginning one for
 * each statement costs as much as most statements. No other process writes, so it misses no commit.
 */
class SteadyReader {
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
    this.#begin()
    // SQLite fixes the visible state at the first statement.
    this.prepared.command('SELECT 1 FROM sqlite_schema LIMIT 1')
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

/**
 * How the text of a statement writes a parameter. SQLite compares a bare `?` with the conditions of partial indices,
 * and from then on prepares the statement again whenever that parameter is bound, which takes 10 to 30 µs. A unary `+`
 * changes no value, and SQLite does not look behind it. So a statement that needs an index with a condition like `state
 * = 'open'` has to write that value in its text.
 */
const PARAMETER = '+?'

/** Statement texts by the strings of their template, which are the same array in every call. */
const templateTexts = new WeakMap<readonly string[], string>()

function textOf({ texts }: Sql): string {
  if (!('raw' in texts)) return texts.join(PARAMETER)
  const known = templateTexts.get(texts)
  if (known !== undefined) return known
  const text = texts.join(PARAMETER)
  templateTexts.set(texts, text)
  return text
}

/** A connection that sees one state of the database, for all readers of that state. */
interface Snapshot {
  readonly prepared: Prepared
  readonly version: number
  readonly reader: Reader
  users: number
}

class Snapshots {
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
    return { prepared, version, reader: readerOf(prepared), users: 0 }
  }

  #keepState(): Prepared {
    const prepared = this.#idle.pop() ?? this.open()
    try {
      prepared.command('BEGIN')
      // SQLite fixes the visible state at the first statement, not at BEGIN, and a commit may come in between.
      prepared.command('SELECT 1 FROM sqlite_schema LIMIT 1')
      return prepared
    } catch (error) {
      prepared.close()
      throw error
    }
  }

  #end(snapshot: Snapshot): void {
    if (this.#newest === snapshot) this.#newest = null
    const { prepared } = snapshot
    prepared.command('ROLLBACK')
    if (!this.#isClosed && this.#idle.length < this.maxIdle) this.#idle.push(prepared)
    else prepared.close()
  }

  close(): void {
    this.#isClosed = true
    for (const prepared of this.#idle.splice(0)) prepared.close()
  }
}

/**
 * Without this check, `undefined` would silently be bound as NULL, and numbers beyond 2^53 would silently lose digits.
 */
function bindings(values: readonly SqlValue[]): SQLQueryBindings[] {
  for (const value of values) {
    if (value === undefined) throw new TypeError('undefined is not an SQL value')
    if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new TypeError(`${value} is not an SQL integer`)
  }
  return values as SQLQueryBindings[]
}

interface Waiting {
  work: (tx: Tx) => Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface LogState {
  log: number
  checkpointed: number
}

interface Member {
  waiting: Waiting
  outcome: Outcome
}

type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

class WriterQueue {
  readonly #waiting: Waiting[] = []
  // Waiting one turn of the event loop lets the requests of one tick share a commit.
  readonly #groups = new BatchLoop(() => this.#nextGroup(), { gathering: nextTurn })
  #flushing: Promise<void> | null = null
  /** The work that runs has asked for a turn of the event loop. */
  #isTurning = false
  /** Callbacks of the present group, called once it is durable. */
  #afterCommit: (() => void)[] = []
  readonly #tx: Tx
  /** How many of the next groups have savepoints. */
  #carefulGroups = 0
  readonly files: DatabaseFiles
  readonly log: WriteAheadLog
  readonly #checkpointer: Checkpointer
  /** Reads the log for copies that follow the database; null if there are none. */
  follower: LogFollower | null = null
  /** Where commits are noted for reader threads; null if there are no such threads. */
  board: CommitBoard | null = null
  #atRest: ((frames: number) => void)[] = []
  fault: WriteFault | null = null
  /** Identifies the state that a new connection sees. Every commit changes it. */
  version = 0
  /** The newest state that has passed the gate, which readers see; null without a gate. */
  shown: Snapshot | null = null
  /** One promise for each group that waits for the gate, oldest first. None rejects. */
  readonly #unsettled: Promise<void>[] = []
  /** Transactions that have failed, possibly because of a commit that is still waiting for the gate. */
  readonly #failing = new Set<Waiting>()
  /** Why no commit can be acknowledged any more. `refusal` is the error for changes that begin later. */
  #end: { error: unknown; refusal: unknown } | null = null
  #isClosed = false
  #isLogLong = false
  #isLogFull = false
  /** Callbacks that begin the snapshots waiting until the log has been copied. */
  readonly #beginnings = new Set<() => void>()
  /** How many frames the present checkpoint, or the last one, copies unless a reader still needs an earlier state. */
  #framesToCopy = 0
  /** Number of frames in the log at which the next checkpoint begins. */
  #nextCheckpoint = 0

  constructor(
    readonly writer: Prepared,
    readonly reader: SteadyReader,
    readonly snapshots: Snapshots,
    readonly path: string,
    readonly strict: boolean,
  ) {
    this.files = new DatabaseFiles(path)
    this.log = new WriteAheadLog(path)
    this.#checkpointer = new Checkpointer(path)
    this.#tx = {
      ...readerOf(writer),
      run: (query) => answered(() => writer.run(query)),
      afterCommit: (act) => void this.#afterCommit.push(act),
      turn: () => this.#turn(),
      known: new Map(),
    }
  }

  enter<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const refusal = this.follower?.gate?.refusal?.error ?? this.#end?.refusal
    if (refusal) return Promise.reject(refusal as Error)
    if (this.#isClosed) return Promise.reject(new DatabaseUnavailable('the database is closed'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject })
    this.#groups.wake()
    return promise
  }

  async #turn(): Promise<void> {
    this.#isTurning = true
    await nextTurn()
    this.#isTurning = false
  }

  /** Run `work` between groups, with the number of committed frames in the log. */
  async atRest<T>(work: (frames: number) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const act = (frames: number) => {
      try {
        resolve(work(frames))
      } catch (error) {
        reject(error)
      }
    }
    this.#atRest.push(act)
    await this.enter(async () => {}).catch((error: unknown) => {
      const index = this.#atRest.indexOf(act)
      // If the callback is no longer in the list, it has already run, after an earlier group.
      if (index < 0) return
      this.#atRest.splice(index, 1)
      throw error
    })
    return promise
  }

  follow(frames: number, position: LogPosition | null): LogFollower | null {
    const follower = new LogFollower(this.files)
    try {
      if (position === null) follower.rewind(frames)
      else if (!follower.resume(position, frames)) return null
      this.unfollow()
      return (this.follower = follower)
    } finally {
      if (this.follower !== follower) follower.close()
    }
  }

  unfollow(): void {
    this.follower?.close()
    this.follower = null
  }

  /** Waits until every commit is on the disk. */
  async durable(): Promise<void> {
    while (this.#flushing) await this.#flushing
  }

  /**
   * Begins a snapshot of the newest state that readers see. While the log is full, this first waits until all of it has
   * been copied: the snapshot then reads the database file only, and the log can restart. Without this wait,
   * overlapping snapshots would let the log grow until the last of them ended.
   */
  async beginSnapshot(): Promise<Snapshot> {
    const begun = this.#isLogFull && this.shown === null ? await this.#onceCopied() : null
    if (begun !== null) return begun
    if (this.shown === null) await this.durable()
    return this.#enterSnapshot()
  }

  /** Without a gate, call it only while no commit is being flushed. */
  #enterSnapshot(): Snapshot {
    // After a failed commit, the newest state is not the one that readers see.
    if (this.shown === null && this.#end !== null) throw this.#end.refusal
    if (this.shown === null) return this.snapshots.enter(this.version)
    this.shown.users++
    return this.shown
  }

  /** Returns a snapshot that was begun between two groups; null if copying the log takes too long. */
  async #onceCopied(): Promise<Snapshot | null> {
    const { promise, resolve } = Promise.withResolvers<Snapshot | null>()
    const begin = () => resolve(this.#enterSnapshot())
    const giveUp = () => {
      if (this.#beginnings.delete(begin)) resolve(null)
    }
    this.#beginnings.add(begin)
    const timer = setTimeout(giveUp, COPY_WAIT_MILLIS)
    // An empty commit, so that a group ends even if there are no other commits.
    this.enter(async () => {}).catch(giveUp)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Call it between groups. */
  #beginSnapshots(): void {
    for (const begin of this.#beginnings) begin()
    this.#beginnings.clear()
  }

  /** Whether there are commits that were refused because the log could not be flushed. */
  get hasUnflushed(): boolean {
    return this.#end?.error instanceof FlushFailed
  }

  /** Waits for all transactions that have been entered. */
  async rest(): Promise<void> {
    await this.#groups.idle()
    await this.#unsettled.at(-1)
    if (this.#end === null) this.showNewest()
  }

  /** Refuses new transactions, and waits for all that have been entered. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.rest()
    await this.#checkpointer.close()
  }

  async #nextGroup(): Promise<boolean> {
    while (this.#unsettled.length >= (this.follower?.gate ? MAX_UNSETTLED : 1)) await this.#unsettled[0]
    if (this.#end !== null) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#end.refusal)
      return false
    }
    if (this.#waiting.length > 0) await this.#group()
    // A failed checkpoint is repeated later; it must not block the transactions that wait.
    if (this.#end === null) await this.#keepLog().catch((error: unknown) => this.#noteFault(error))
    return this.#waiting.length > 0
  }

  /** Runs one BEGIN … COMMIT. The promises of its members resolve only after the COMMIT is durable. */
  async #group(): Promise<void> {
    const { reader, writer } = this
    const { connection } = writer
    // A reader that still uses a checkpointed log would keep the log from restarting.
    reader.renew()
    const members: Member[] = []
    /**
     * Transactions of this group that are still to run: not in `#waiting`, all of which the gate may refuse meanwhile.
     */
    const coming = this.#waiting.splice(0, MAX_GROUP)
    this.#afterCommit = []
    this.#tx.known.clear()
    try {
      writer.command('BEGIN IMMEDIATE')
      this.follower?.beforeWrites()
      const size = coming.length
      const isCareful = size > 1 && this.#carefulGroups > 0
      if (isCareful) this.#carefulGroups--
      for (let turnEndsAt = performance.now() + TURN_MILLIS; members.length < size;) {
        if (performance.now() > turnEndsAt) {
          await nextTurn()
          turnEndsAt = performance.now() + TURN_MILLIS
        }
        const waiting = coming.shift()!
        const outcome = await (isCareful ? this.#member(waiting.work) : this.#work(waiting.work))
        members.push({ waiting, outcome })
        // Some errors, like a full disk, roll back the whole transaction, including the work of earlier members.
        if (!connection.inTransaction) throw outcome.ok ? new Error('the transaction ended early') : outcome.error
        if (size === 1 && !outcome.ok) {
          if (!this.follower?.gate || isDiskFault(outcome.error)) throw outcome.error
          // Even a refusal passes the gate, like a commit without changes: it may rest on a state that is no longer the
          // newest.
          writer.command('ROLLBACK')
          writer.command('BEGIN IMMEDIATE')
          break
        }
        if (!isCareful && !outcome.ok && writer.hasChanged) {
          writer.command('ROLLBACK')
          this.#waiting.unshift(...members.map((member) => member.waiting), ...coming)
          this.#carefulGroups = CAREFUL_GROUPS
          return
        }
      }
      const gate = this.follower?.gate
      if (gate) return this.#commitBehind(gate, members)
      await this.#unsettled.at(-1)
      this.showNewest()
      await this.#commit()
    } catch (error) {
      this.#noteFault(error)
      if (connection.inTransaction) writer.command('ROLLBACK')
      if (members.length === 0) coming.shift()?.reject(error)
      this.#waiting.unshift(...coming)
      for (const { waiting } of members) this.#fail(waiting, error)
      return
    }
    this.#acknowledge(members, this.#afterCommit)
  }

  #acknowledge(members: readonly Member[], afterCommit: readonly (() => void)[]): void {
    this.writer.counters.commits++
    this.fault = null
    // Queued first, so that the callbacks run before the members continue.
    void Promise.resolve().then(() => callAll(afterCommit))
    for (const { waiting, outcome } of members) {
      if (outcome.ok) waiting.resolve(outcome.value)
      else waiting.reject(outcome.error)
    }
  }

  /**
   * Rejects once earlier groups have left the gate: the failure may be due to one of them, which is not visible yet.
   */
  #fail(waiting: Waiting, error: unknown): void {
    const before = this.#unsettled.at(-1)
    if (before === undefined) return waiting.reject(error)
    this.#failing.add(waiting)
    void before.then(() => {
      this.#failing.delete(waiting)
      waiting.reject(this.#end?.error ?? error)
    })
  }

  #noteFault(error: unknown): void {
    if (error instanceof FlushFailed) this.fault = { error: error.refusal, at: performance.now() }
    else if (isDiskFault(error)) this.fault = { error, at: performance.now() }
  }

  /** Readers see the state before the commit until the log is flushed, and for good if the flush fails. */
  async #commit(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.reader.pin()
    try {
      this.#flushing = promise
      this.version++
      this.board?.begin()
      this.writer.command('COMMIT')
      await this.log.sync()
    } catch (error) {
      // Nothing may build on a commit that could not be flushed: pending changes and all later ones are refused.
      if (error instanceof FlushFailed) this.#end = endOf(error)
      throw error
    } finally {
      if (this.#end === null) {
        this.reader.renew()
        this.reader.unpin()
        this.board?.settle()
      }
      this.#flushing = null
      resolve()
    }
  }

  /** COMMIT, and let the group wait for the gate while the next ones run. */
  #commitBehind(gate: CommitGate, members: readonly Member[]): void {
    const { board, snapshots } = this
    const afterCommit = this.#afterCommit
    snapshots.maxIdle = MAX_UNSETTLED
    this.shown ??= snapshots.enter(this.version)
    // Before the COMMIT: if no connection could be opened afterwards, a commit that was made would count as failed.
    snapshots.makeReady()
    this.version++
    const mark = board?.begin()
    const before = this.#unsettled.at(-1)
    try {
      this.writer.command('COMMIT')
    } catch (error) {
      // Nothing was committed, but the board has announced a commit, and reader threads wait for it.
      this.#queue(async () => {
        await before
        if (this.#end === null) board?.settle(mark)
      })
      throw error
    }
    const state = this.#stateMade(members)
    if (state === null) return
    const flushed = this.log.sync()
    const refuse = (error: Error) => {
      for (const { waiting } of members) waiting.reject(error)
      for (const waiting of this.#failing) waiting.reject(error)
      for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
    }
    const passed = gate.pass({ flushed, state: state.reader, refuse })
    this.#queue(async () => {
      const outcome = await passed.then(() => null, endOf)
      await before
      this.#end ??= outcome
      if (this.#end !== null) {
        // Readers stay at the last state that has passed. Only the next start shows whether this group is durable.
        snapshots.leave(state)
        this.#noteFault(this.#end.error)
        for (const { waiting } of members) waiting.reject(this.#end.error)
        return
      }
      snapshots.leave(this.shown!)
      this.shown = state
      board?.settle(mark)
      this.#acknowledge(members, afterCommit)
    })
  }

  /**
   * Returns the state after a COMMIT, once the follower has noted it. If that state cannot be read, returns null: only
   * the next start shows whether the commit is durable, and nothing may build on it.
   */
  #stateMade(members: readonly Member[]): Snapshot | null {
    try {
      const state = this.snapshots.enter(this.version)
      this.follower!.note(this.#frames())
      return state
    } catch (error) {
      this.#end ??= endOf(new FlushFailed(error))
      this.#noteFault(this.#end.error)
      for (const { waiting } of members) waiting.reject(this.#end.error)
      return null
    }
  }

  /** Adds a group to those that wait for the gate. */
  #queue(work: () => Promise<void>): void {
    const end = work().then(() => {
      void this.#unsettled.shift()
      if (this.#isLogLong && this.#unsettled.length === 0) void this.#restartLog()
    })
    this.#unsettled.push(end)
  }

  /** Without a gate, readers see the newest commit. */
  showNewest(): void {
    if (this.shown === null) return
    this.snapshots.leave(this.shown)
    this.snapshots.maxIdle = MAX_IDLE_SNAPSHOTS
    this.shown = null
  }

  /** Lets the log restart with the next commit. Everything that readers see must be in the database file by then. */
  async #restartLog(): Promise<void> {
    await this.#checkpointer.pass()
    // After a refused commit, the newest state is not the one that readers see.
    if (this.shown === null || this.#end !== null || this.#unsettled.length > 0) return
    this.shown = this.snapshots.renew(this.shown)
    this.board?.renewReaders()
  }

  /** The number of committed frames in the log. */
  #frames(): number {
    return this.#logState().log
  }

  /** Committed frames in the log, and how many of them checkpoints have copied. */
  #logState(): LogState {
    return this.writer.connection.query<LogState, []>('PRAGMA wal_checkpoint(NOOP)').get()!
  }

  /** Have most of the log copied into the file of the database. */
  async shorten(): Promise<void> {
    await this.#checkpointer.pass()
  }

  async #keepLog(): Promise<void> {
    const state = this.#logState()
    const { log: frames } = state
    this.follower?.note(frames)
    if (this.#atRest.length > 0) {
      await this.#unsettled.at(-1)
      for (const work of this.#atRest.splice(0)) work(frames)
    }
    this.log.makeRoom(frames * FRAME_BYTES)
    this.#isLogLong = frames >= CHECKPOINT_FRAMES
    this.#isLogFull = frames >= MAX_LOG_FRAMES
    if (!this.#isLogFull) this.#beginSnapshots()
    if (!this.#isLogLong) {
      this.#nextCheckpoint = this.#framesToCopy = 0
      return
    }
    if (this.shown !== null) {
      // While the log is not full, `#queue` restarts it, once no group waits for the gate.
      if (frames < MAX_LOG_FRAMES) return
      await this.#unsettled.at(-1)
      await this.#restartLog()
      return this.board?.renewed()
    }
    return this.#shortenLog(state)
  }

  /** Has most of a long log copied while writers keep writing, and the last frames while they wait. */
  async #shortenLog({ log: frames, checkpointed }: LogState): Promise<void> {
    const { board } = this
    const { isRunning } = this.#checkpointer
    if (!isRunning && checkpointed < this.#framesToCopy) {
      this.#nextCheckpoint = frames + RETRY_FRAMES
      this.#framesToCopy = 0
    }
    const isFull = frames >= MAX_LOG_FRAMES
    if (frames < this.#nextCheckpoint && !isFull) return
    if (!isRunning) this.#framesToCopy = frames
    const pass = this.#checkpointer.pass()
    if (board !== null && !isRunning) void pass.then(() => this.#renewReaders(board))
    if (frames - checkpointed > LAST_FRAMES && !isFull) return
    if (!(await pass)) this.writer.command('PRAGMA wal_checkpoint(PASSIVE)')
    if (this.#isLogFull && this.#beginnings.size > 0) {
      const copied = this.#logState()
      if (copied.checkpointed === copied.log) this.#beginSnapshots()
    }
    await board?.renewed()
  }

  /** Makes reader threads start over, unless the newest commit is not on the disk, and perhaps never will be. */
  #renewReaders(board: CommitBoard): void {
    if (this.#flushing === null && this.#end === null) board.renewReaders()
  }

  /** Runs a member in a savepoint: its failure undoes only its own changes. */
  async #member(work: Waiting['work']): Promise<Outcome> {
    const { writer } = this
    writer.command('SAVEPOINT member')
    const outcome = await this.#work(work)
    if (!writer.connection.inTransaction) return outcome
    if (!outcome.ok) writer.command('ROLLBACK TO member')
    writer.command('RELEASE member')
    return outcome
  }

  async #work(work: Waiting['work']): Promise<Outcome> {
    if (this.strict) await this.#rehearse(work)
    return this.#attempt(work)
  }

  /** Runs the work and rolls it back. The outcome is ignored: the second run must have the same one. */
  async #rehearse(work: Waiting['work']): Promise<void> {
    const { writer } = this
    const counted = { ...writer.counters }
    const others = this.#afterCommit.length
    writer.command('SAVEPOINT rehearsal')
    await this.#attempt(work)
    this.#afterCommit.length = others
    this.#tx.known.clear()
    Object.assign(writer.counters, counted)
    if (!writer.connection.inTransaction) return
    writer.command('ROLLBACK TO rehearsal')
    writer.command('RELEASE rehearsal')
  }

  async #attempt(work: Waiting['work']): Promise<Outcome> {
    this.writer.counters.transactions++
    this.writer.hasChanged = false
    const others = this.#afterCommit.length
    try {
      return {
        ok: true,
        value: await (this.strict ? withoutWaiting(work(this.#tx), () => this.#isTurning) : work(this.#tx)),
      }
    } catch (error) {
      this.#afterCommit.length = others
      this.#tx.known.clear()
      return { ok: false, error }
    }
  }
}

const endOf = (error: unknown) => ({ error, refusal: error instanceof FlushFailed ? error.refusal : error })

/** Calls all of them. An error in one becomes an unhandled rejection, which ends neither the others nor the process. */
function callAll(acts: readonly (() => void)[]): void {
  for (const act of acts) {
    try {
      act()
    } catch (error) {
      void Promise.reject(error as Error)
    }
  }
}

/** Whether an error comes from the disk or the database file, not from the statement. */
const isDiskFault = (error: unknown): boolean =>
  storageFaultOf(error) !== null || /^SQLITE_(CORRUPT|NOTADB)/.test(String((error as { code?: unknown } | null)?.code))

/** Rejects if `work` awaits anything but the database. Other work settles within the turns that it asks for. */
function withoutWaiting<T>(work: Promise<T>, isTurning = () => false): Promise<T> {
  const { promise, reject } = Promise.withResolvers<T>()
  const look = () => {
    if (isTurning()) late = setImmediate(look)
    else reject(new Error('a transaction waited for something other than its database'))
  }
  let late = setImmediate(look)
  return Promise.race([work, promise]).finally(() => clearImmediate(late))
}
