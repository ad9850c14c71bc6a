/**
 * The database seam: `all`, `get`, `run`, `transaction` over sql`…` templates.
 *
 * What holds for every adapter:
 * - A transaction is durable when its promise resolves, and leaves nothing behind when it rejects.
 * - Transactions take effect as if they ran one after another: `work` sees all earlier ones and no concurrent one.
 * - `work` may run more than once, and only its last run counts. It must touch and await nothing but `tx`. Effects that
 *   follow once the transaction is durable are registered with `tx.afterCommit`.
 * - An update of a row that was read earlier states what it read (`WHERE id = … AND rev = …`) and throws
 *   `WriteConflict` if the row has changed since.
 * - `db.all` and `db.get` read committed data. Inside a transaction, read through `tx`.
 *
 * SQL is written in the subset that SQLite and PostgreSQL share. Column types in migrations are INTEGER (64 bit), TEXT
 * and BLOB; booleans are 0 and 1; instants are milliseconds. Cast sums to BIGINT, because PostgreSQL returns decimals.
 */

import { OperatorError } from '../../base/operator-error.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import type { CommitBoard } from '../readers/commit-board.ts'
import type { DatabaseFiles } from './database-files.ts'
import type { LogFollower, LogPosition } from './log-follower.ts'
import { sql, type Reader, type Sql } from './sql.ts'

export {
  inPieces,
  nothingBeside,
  Sql,
  sql,
  sqlAnd,
  sqlList,
  sqlRows,
  type Beside,
  type Reader,
  type SqlValue,
} from './sql.ts'

/**
 * Runs a statement: on the database as a transaction of its own, beside those with locks; on a `Tx` as a part of it.
 */
export interface Writer {
  /** Returns how many rows the statement changed. */
  run(query: Sql): Promise<number>
}

/** PostgreSQL cannot store NUL in text. A client that sends one is told so. */
export class TextNotStorable extends Error {
  override name = 'TextNotStorable'

  constructor() {
    super('text must not contain NUL characters')
  }
}

/**
 * The database cannot be reached, or not in time. The request had no effect, unless the message says otherwise.
 */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'
  readonly retryAfterSecs = 2
}

/** The database became unavailable during a change, which may have been made, or may still be. The message says so. */
export class OutcomeUnknown extends DatabaseUnavailable {
  override name = 'OutcomeUnknown'
}

/**
 * A row has changed since the transaction read it. An adapter that runs transactions concurrently runs this one again.
 */
export class WriteConflict extends Error {
  override name = 'WriteConflict'

  constructor(what: string) {
    super(`${what} was changed by another transaction`)
  }
}

/** The database lacks changes that it had acknowledged: another copy of it answers, which was promoted or restored. */
export class HistoryLost extends OperatorError {
  override name = 'HistoryLost'

  constructor(readonly why: string) {
    super(
      `the database may have lost changes that it had acknowledged (${why}): stop all nodes and run "holdfast restore --database-restored", or set database.after_failover = "continue"; docs/cluster.md explains both`,
    )
  }
}

/** Other nodes have continued with another copy of the database. After a restart, this server may use that copy. */
export class HistoryContinued extends OperatorError {
  override name = 'HistoryContinued'

  constructor() {
    super('other servers have continued with another copy of the database')
  }
}

export class LeaseLost extends Error {
  override name = 'LeaseLost'

  constructor(lease: string) {
    super(`another node has taken the lease "${lease}"`)
  }
}

export interface Tx extends Reader, Writer {
  /**
   * Calls `act` once the transaction is durable and before its promise resolves; never if the transaction fails. Calls
   * are made in the order of transactions, and in one go for those that become durable together.
   */
  afterCommit(act: () => void): void
  /**
   * Gives requests that read a turn of the event loop. A transaction with many thousands of rows calls it after every
   * few thousand. Other requests that write still wait for the whole transaction.
   */
  turn(): Promise<void>
  /**
   * Numbers that earlier transactions of the same group read or wrote, by name, so that this one need not read them.
   * Empty when a group begins, and whenever changes are undone; on PostgreSQL, empty at the start of every transaction.
   * Code that changes the rows behind a number must set or delete that number.
   */
  readonly known: Map<string, number>
}

/** Differences between the databases beneath the shared subset of SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Statements that run before those of each migration, in the same transaction. */
  readonly beforeMigration: readonly string[]
  /** Translates a migration's statement to the types of this database. */
  definition(statement: string): string
}

/** Stands for rows that belong together, such as those of an account. */
export type Lock = string & { readonly kind: 'lock' }

export const lockOn = (what: string, key: string): Lock => `${what} ${key}` as Lock
/** Stands for all rows of an account. */
export const accountLock = (did: string): Lock => lockOn('account', did)

export interface Database extends Reader, Writer {
  readonly dialect: Dialect
  /** Throws `DatabaseUnavailable` if the database cannot be reached. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Like `transaction`, but runs beside others of this kind that name other locks. `work` must then only change, and
   * base its decisions on, rows that its locks stand for, except where a single statement decides: a unique key, `ON
   * CONFLICT`, `DELETE … RETURNING`, an `UPDATE` whose condition says what it expects. An empty list asserts that every
   * statement decides by itself.
   *
   * Other rows that such transactions read, like the status of an account, may only be changed in `transaction`, which
   * runs alone. SQLite runs one transaction at a time anyway.
   */
  transactionOn<T>(lock: Lock | readonly Lock[], work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Runs reads that all see one state of the database, which includes everything that was committed before the call.
   * Their connection serves nothing but snapshots, and several at a time if they see the same state. `work` may yield
   * to other work, but must not wait for anything outside the process: the write-ahead log grows until the snapshot
   * ends. On SQLite, the snapshot begins up to five seconds late if the log is already very long.
   */
  snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T>
  /** A snapshot on the shared read connection, for `work` that awaits nothing but its own few reads. */
  shortSnapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T>
  /** Returns the damage that the database itself reports, in words; empty if there is none. */
  integrityFaults(): Promise<string[]>
  readonly counters: DatabaseCounters
  /** How this process works together with others on the same database. Null on SQLite, which only one process uses. */
  readonly cluster: Cluster | null
  /** Reading what commits add to the log of SQLite; null on PostgreSQL. */
  readonly logFollowing: LogFollowing | null
  /** How threads of this process read the file of SQLite; null on PostgreSQL. */
  readonly threads: ThreadReading | null
  /** Why the last transaction could not be made durable, other than by the caller's own fault; null if it was. */
  readonly writeFault: WriteFault | null
  /** Writes a little, to test whether writing works again. Clears `writeFault` if it does; throws the fault if not. */
  retryWriting(): Promise<void>
  /**
   * Aborts if this process may no longer use the database, with an `OperatorError` as its reason. Every later call
   * fails with `DatabaseUnavailable`.
   */
  readonly ended: AbortSignal
  close(): Promise<void>
}

export interface ThreadReading {
  readonly path: string
  /** Notes commits on `board`, once no earlier commit is on its way to the disk. Null: notes none, from now on. */
  notify(board: CommitBoard | null): Promise<void>
}

export interface WriteFault {
  error: unknown
  /** Time on the monotonic clock, in milliseconds. */
  at: number
}

/** Counts since the database was opened, for metrics and tests. */
export interface DatabaseCounters {
  statements: number
  /** Rows inserted, changed or deleted. */
  rows: number
  transactions: number
  /** Durable commits; several transactions may share one. */
  commits: number
  /** Times that a transaction had to wait for an answer of the database server; 0 without a server. */
  roundTrips: number
}

/** Coordination of servers that share a database: wake-up notifications, and leases for exclusive work. */
export interface Cluster {
  readonly node: ClusterNode
  readonly history: History
  /** Clock identifier of the TIDs of this node. No other node that has registered has the same one. */
  readonly clockId: number
  /**
   * By how many milliseconds the clock of this machine is wrong: ahead of most other clocks of the cluster, behind if
   * negative. 0 if it agrees with them, or they do not agree with each other.
   */
  readonly clockError: Millis
  /** What this node subtracts from the clock of its machine, in milliseconds, to get the time that all nodes share. */
  readonly clockCorrection: Millis
  /**
   * By how many milliseconds the time that this node uses is ahead of the database's clock; negative if it is behind.
   */
  readonly aheadOfDatabase: Millis
  /**
   * Registers this node, once the schema is there, so that others see it. Closing the database deletes its row.
   * `isAlone`: the server has locked the database, so all earlier nodes have ended.
   */
  join(version: string, options?: { isAlone?: boolean }): Promise<void>
  /** Nodes that registered and did not leave, oldest first. */
  nodes(): Promise<NodeState[]>
  /**
   * Wakes the listeners of a channel, on every node, once the transaction is durable. Carries no data, and costs the
   * transaction nothing: it is sent afterwards, many as one. It is lost if this node dies in between.
   */
  notify(tx: Pick<Tx, 'afterCommit'>, channel: string): void
  /**
   * Call `act` after each notification of a channel, and whenever listening begins, because notifications were lost
   * before. Returns the function that stops it. Poll as well if you must not miss a change: a dead connection is not
   * always detected.
   */
  listen(channel: string, act: () => void): () => void
  /**
   * Takes a lease, which one node at a time holds, until it is released. Returns null if another node holds it, or this
   * one already does. PostgreSQL ends it with the node's connection, which must send a heartbeat every few seconds.
   */
  take(lease: string): Promise<Lease | null>
  /**
   * Runs `work` on one node at a time: whenever this node gets the lease, which it asks for every second. `work` must
   * return when `lost` aborts. If it returns or throws earlier, the lease goes to the next node that asks. `report`
   * receives the errors that `work` throws. Returns a function that ends all this, and waits for `work`.
   */
  whileHolding(
    lease: string,
    work: (lease: Lease) => Promise<void>,
    report: (error: unknown) => void,
  ): () => Promise<void>
  /** Every lease that was ever taken, by name. */
  leases(): Promise<LeaseState[]>
  /**
   * Runs one statement, which may change something, as a transaction of its own that does not wait for others, and
   * returns its rows. It is for data that the nodes share for a while and that no transaction reads, such as counters.
   * A statement that fails may have taken effect all the same. Throws `DatabaseUnavailable`.
   */
  autocommit<Row>(query: Sql): Promise<Row[]>
}

export interface LogFollowing {
  /**
   * Starts a follower that reads the log after `position`; null: all that is not in the database file. It replaces the
   * previous follower. Returns null, and replaces nothing, if the log does not have the position.
   */
  begin(position: LogPosition | null): Promise<LogFollower | null>
  /** Has the follower read again all that is not in the database file, and runs `work` before anything is added. */
  rewind<T>(work: () => T): Promise<T>
  /** Resolves when the follower has noted all commits that were made before the call. */
  settle(): Promise<void>
  /** The database file, to which checkpoints copy the log. */
  readonly file: Pick<DatabaseFiles, 'bytes' | 'read'>
  end(): void
  /** Aborts `ended`, with the reason why the server has to stop. Nothing is acknowledged from now on. */
  abandon(reason: OperatorError): void
  readonly abandoned: OperatorError | null
}

/** What the nodes know about the copy of the database that answers them. */
export interface History {
  /**
   * Why the numbering of events is stopped: when this node joined, another copy answered than the one that the nodes
   * had agreed on, and they have not agreed on this one since. Null if it is not stopped.
   */
  readonly broken: HistoryLost | null
  /** What `broken` would be for a node that joins now. */
  found(): Promise<HistoryLost | null>
  /** Increases whenever the nodes continue with another copy. */
  readonly generation: number
  /** The newest event that was there when the nodes last continued with another copy. */
  readonly keptThrough: number | null
  /** Whether a connection was lost, and the copy that answers now has not been compared yet. Reads wait for that. */
  readonly isDoubtful: boolean
  /** An SQL condition that holds while the nodes agree on the copy that answers. */
  isWhole(): Sql
  /** Makes the nodes agree on the copy that answers. Returns false if another node was first. */
  agree(tx: Tx, keptThrough: number): Promise<boolean>
  /** Compares the copy that answers with what this node knows, soon. */
  doubt(): void
  /** Adds a check to the comparison: `missing` says what this node knows of and the copy lacks; null if nothing. */
  witness(missing: (reader: Reader) => Promise<string | null>): void
}

/** A process that uses the database. Every start is another node. */
export interface ClusterNode {
  readonly id: string
  /** For operators; other nodes may have the same one. */
  readonly name: string
}

export interface Lease {
  readonly name: string
  /** Greater than the fence of every earlier holder. */
  readonly fence: number
  /**
   * Aborts when the lease is lost or released. It may fire late, so call `guard` in every transaction that requires the
   * lease.
   */
  readonly lost: AbortSignal
  /**
   * Call it in each transaction that only the holder may run. Throws `LeaseLost` if another node has taken over;
   * otherwise, no other node takes over before the transaction ends.
   */
  guard(tx: Tx): Promise<void>
  release(): Promise<void>
}

/** Instants are milliseconds of the database's clock. */
export interface NodeState extends ClusterNode {
  version: string
  startedAt: number
  heartbeatAt: number
  /** Whether it has sent a heartbeat within the last `ALIVE_MILLIS`. */
  isAlive: boolean
  /** Its connections to the database, and how many of them are at work. */
  connections: number
  busyConnections: number
}

/** Three heartbeats, and some time for a busy machine. */
export const ALIVE_MILLIS = 15_000
/** On PostgreSQL: the clock of the server. */
export const nowMillis = sql`CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)`

export interface LeaseState {
  name: string
  fence: number
  /** Node that took it last. */
  holder: string
  takenAt: number
  isHeld: boolean
}

/** Whether a statement failed because a row with the same key exists. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  return (
    code === 'SQLITE_CONSTRAINT_PRIMARYKEY' ||
    code === 'SQLITE_CONSTRAINT_UNIQUE' ||
    code === '23505' ||
    errno === '23505'
  )
}

/** Yields pages of `size` rows; each page is read from the last row of the page before. */
export async function* inPages<Place, Row extends Place>(
  size: number,
  start: Place,
  read: (after: Place, limit: number) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let after = start; ;) {
    const rows = await read(after, size)
    yield rows
    if (rows.length < size) return
    after = rows.at(-1)!
  }
}

/**
 * As `inPages`, for rows of any size: a page has at most `most.bytes`, unless a single row is larger. `next.bytes`
 * returns the size of the next rows, which the database knows without reading the values.
 */
export async function* inBoundedPages<Place, Row extends Place>(
  most: { rows: number; bytes: number },
  start: Place,
  next: {
    bytes: (after: Place, limit: number) => Promise<number>
    read: (after: Place, limit: number) => Promise<Row[]>
  },
): AsyncGenerator<Row[]> {
  let limit = most.rows
  for (let after = start; ;) {
    const bytes = await next.bytes(after, limit)
    if (bytes > most.bytes && limit > 1) {
      limit = Math.max(1, Math.floor((limit * most.bytes) / bytes))
      continue
    }
    const rows = await next.read(after, limit)
    yield rows
    if (rows.length < limit) return
    after = rows.at(-1)!
    limit = Math.min(most.rows, limit * 2)
  }
}

/** Most bytes of a value that is not the first in its piece: see `valueInPiece`. */
const MAX_INNER_BYTES = 16 * 1024

/**
 * The column `value` in a query for values that are decoded in one turn of the event loop. Large values are null,
 * except in the row that `isFirst` selects. The database knows the length of a value without reading it.
 */
export const valueInPiece = (isFirst: Sql, { value, bytes } = { value: sql`value`, bytes: sql`length(value)` }): Sql =>
  sql`CASE WHEN ${bytes} <= ${MAX_INNER_BYTES} OR ${isFirst} THEN ${value} END AS value`

/** Returns the rows before the first one whose value was left out. `isEnd`: no rows follow them. */
export function pieceOf<Row extends { value: Uint8Array | null }>(
  rows: readonly Row[],
  limit: number,
): { rows: (Row & { value: Uint8Array })[]; isEnd: boolean } {
  const left = rows.findIndex(({ value }) => value === null)
  const read = left < 0 ? rows : rows.slice(0, left)
  return { rows: read as (Row & { value: Uint8Array })[], isEnd: left < 0 && rows.length < limit }
}

/** Most bytes of values to delete in one transaction, which reads every page of them: some 5 ms. */
export const BYTES_PER_DELETION = 1024 ** 2

/** The first keys of `query`, which has columns for `key` and `bytes`: as many as one transaction deletes. */
export const firstBytes = (key: Sql, query: Sql): Sql => sql`
  (SELECT ${key} FROM (SELECT ${key}, SUM(bytes) OVER (ORDER BY ${key}) - bytes AS before FROM (${query}) AS measured) AS placed
    WHERE before < ${BYTES_PER_DELETION})`

/** The sum of the column `bytes` of a query. */
export async function totalBytes(reader: Reader, query: Sql): Promise<number> {
  const row = await reader.get<{ bytes: number }>(
    sql`SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM (${query}) AS page`,
  )
  return row!.bytes
}

/**
 * Waits for statements of one transaction that do not need each other's results, so that a database server receives
 * them at once. If one of them fails, this still waits for the others, because none may run after the transaction has
 * ended. Rejects with the first error, in the order of the arguments.
 */
export async function together<Results extends readonly unknown[]>(
  ...statements: { readonly [I in keyof Results]: Promise<Results[I]> }
): Promise<Results> {
  // A statement may fail while an earlier one is awaited: that must not become an unhandled rejection.
  for (const statement of statements) statement.catch(reportedBelow)
  const results: unknown[] = []
  let fault: { error: unknown } | null = null
  for (const statement of statements) {
    try {
      results.push(await statement)
    } catch (error) {
      fault ??= { error }
    }
  }
  if (fault !== null) throw fault.error
  return results as unknown as Results
}

const reportedBelow = () => undefined
