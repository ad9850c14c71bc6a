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
 * The database, where each statement is its own transaction and runs beside those with locks, or an open transaction.
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

/** The same of a change that may have been made, or may still be. The message says so. */
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

/** The database lacks what it had acknowledged: another copy of it answers, which was promoted or restored. */
export class HistoryLost extends OperatorError {
  override name = 'HistoryLost'

  constructor(readonly why: string) {
    super(
      `the database may have lost changes that it had acknowledged (${why}): stop all nodes and run "holdfast restore --database-restored", or set database.after_failover = "continue"; docs/cluster.md explains both`,
    )
  }
}

/** Other nodes have continued with another copy of the database. A server that restarts may use it. */
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
   * Gives requests that read a turn of the event loop. For a transaction with thousands of rows, after every few
   * thousand: others that write still wait for all of it.
   */
  turn(): Promise<void>
  /**
   * Numbers that the transactions before this one in its group read or wrote, by name, so that this one need not read
   * them. Empty when a group begins, and whenever changes are undone; on PostgreSQL, in every transaction. Whatever
   * changes the rows that a number stands for sets or deletes it.
   */
  readonly known: Map<string, number>
}

/** Differences between the databases beneath the shared subset of SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Statements that a transaction with a migration begins with. */
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
   * Like `transaction`, but runs beside others of this kind that name other locks. It must then decide by, and change,
   * only rows that its locks stand for, except where a single statement decides: a unique key, `ON CONFLICT`, `DELETE …
   * RETURNING`, an `UPDATE` whose condition says what it expects. An empty list asserts that every statement decides by
   * itself.
   *
   * What such transactions read of other rows, like the status of an account, is only changed in `transaction`, which
   * runs alone. SQLite runs one transaction at a time anyway.
   */
  transactionOn<T>(lock: Lock | readonly Lock[], work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Run reads that all see one state of the database: one that includes all that was committed before. Their connection
   * serves nothing but snapshots, and several of them at a time if they see the same state. `work` may yield to other
   * work, but must not wait for anything outside the process: the write-ahead log grows until it ends. On SQLite, it
   * begins up to five seconds later if the log is already very long.
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
  /** Write a little, to learn whether that works again: `writeFault` says so. Throws the fault if it does not. */
  retryWriting(): Promise<void>
  /**
   * Aborts if this process may no longer use the database, with an `OperatorError` as its reason. Everything that is
   * asked from then on fails with `DatabaseUnavailable`.
   */
  readonly ended: AbortSignal
  close(): Promise<void>
}

export interface ThreadReading {
  readonly path: string
  /** Note commits on a board, once no earlier commit is on its way to the disk; null: on none, from now on. */
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
  /**
   * What this node takes from the clock of its machine, in milliseconds, so that it has the time that all nodes have.
   */
  readonly clockCorrection: Millis
  /** By how many milliseconds the time that this node goes by is ahead of that of the database; behind if negative. */
  readonly aheadOfDatabase: Millis
  /**
   * Register this node, once the schema is there, so that others see it. Its row is deleted by `close` of the database.
   * `isAlone`: the server has locked the database, so that all nodes before it are gone.
   */
  join(version: string, options?: { isAlone?: boolean }): Promise<void>
  /** Nodes that registered and did not leave, oldest first. */
  nodes(): Promise<NodeState[]>
  /**
   * Wake the listeners of a channel, on every node, after the transaction is durable. Carries no data, and costs the
   * transaction nothing: it is sent afterwards, and many become one. It is lost if this node ends in between.
   */
  notify(tx: Pick<Tx, 'afterCommit'>, channel: string): void
  /**
   * Call `act` after each notification of a channel, and whenever listening begins, because notifications were lost
   * before. Returns the function that stops it. Poll as well if you must not miss a change: a dead connection is not
   * always detected.
   */
  listen(channel: string, act: () => void): () => void
  /**
   * Take a lease, which one node at a time holds, until it is released. Returns null if another node holds it, or this
   * one. PostgreSQL ends it with the connection of the node, which must send a heartbeat every few seconds.
   */
  take(lease: string): Promise<Lease | null>
  /**
   * Do `work` on one node at a time: whenever this node gets the lease. Tried every second. `work` returns when `lost`
   * aborts; if it returns or throws earlier, the lease goes to the next node that asks. `report` receives what it
   * throws. Returns the function that ends it, and waits for `work`.
   */
  whileHolding(
    lease: string,
    work: (lease: Lease) => Promise<void>,
    report: (error: unknown) => void,
  ): () => Promise<void>
  /** Every lease that was ever taken, by name. */
  leases(): Promise<LeaseState[]>
  /**
   * Run one statement, a change too, as a transaction of its own that does not wait for others, and return its rows.
   * For what the nodes remember together for a while, such as counters, and no transaction reads. It may have run
   * although it fails. Throws `DatabaseUnavailable`.
   */
  autocommit<Row>(query: Sql): Promise<Row[]>
}

export interface LogFollowing {
  /**
   * Read what follows a place in the log; null: all that it has. Ends what read it before. Returns null, and ends
   * nothing, if the log does not have the place.
   */
  begin(position: LogPosition | null): Promise<LogFollower | null>
  /** Read again all that is not in the file of the database, and do `work` before anything is added. */
  rewind<T>(work: () => T): Promise<T>
  /** Resolves when all commits that had been made by the time of the call are noted. */
  settle(): Promise<void>
  /** The file of the database, to which checkpoints copy the log. */
  readonly file: Pick<DatabaseFiles, 'bytes' | 'read'>
  end(): void
  /** Nothing is acknowledged from now on: the server has to stop, for this reason. Aborts `ended`. */
  abandon(reason: OperatorError): void
  readonly abandoned: OperatorError | null
}

/** What the nodes know of the copy of the database that answers them. */
export interface History {
  /**
   * Why numbering is stopped: when this node joined, a different copy answered than the one that the nodes had agreed
   * on, and they have not agreed on this one since.
   */
  readonly broken: HistoryLost | null
  /** What `broken` would be for a node that joins now. */
  found(): Promise<HistoryLost | null>
  /** Increases whenever the nodes continue with another copy. */
  readonly generation: number
  /** The newest event that was there when they did so last. */
  readonly keptThrough: number | null
  /** Whether a connection was lost, and what answers now has not been compared yet. Reads wait until it has. */
  readonly isDoubtful: boolean
  /** A condition that holds while the nodes agree on the copy that answers. */
  isWhole(): Sql
  /** Agree on the copy that answers. Returns false if another node was first. */
  agree(tx: Tx, keptThrough: number): Promise<boolean>
  /** Compare what answers with what this node knows, soon. */
  doubt(): void
  /** Add to what is compared: `missing` returns what is not there although this node knows of it, in words, or null. */
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
  /** Greater than that of every holder before. */
  readonly fence: number
  /**
   * Aborts when the lease is lost or released. It may fire late, so call `guard` in every transaction that requires the
   * lease.
   */
  readonly lost: AbortSignal
  /**
   * Call in each transaction that only the holder may do. Throws `LeaseLost` if another node has taken over; otherwise
   * none takes over before the transaction ends.
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

/** Bytes of a value that is not the first of a piece. */
const MAX_INNER_BYTES = 16 * 1024

/**
 * The column `value` in a query for values that are decoded in one turn of the event loop: null for a large one, of
 * which the database knows the length without reading it, except in the row that `isFirst` selects.
 */
export const valueInPiece = (isFirst: Sql, { value, bytes } = { value: sql`value`, bytes: sql`length(value)` }): Sql =>
  sql`CASE WHEN ${bytes} <= ${MAX_INNER_BYTES} OR ${isFirst} THEN ${value} END AS value`

/** The rows before the first one without a value. `isEnd`: there are no others after them. */
export function pieceOf<Row extends { value: Uint8Array | null }>(
  rows: readonly Row[],
  limit: number,
): { rows: (Row & { value: Uint8Array })[]; isEnd: boolean } {
  const left = rows.findIndex(({ value }) => value === null)
  const read = left < 0 ? rows : rows.slice(0, left)
  return { rows: read as (Row & { value: Uint8Array })[], isEnd: left < 0 && rows.length < limit }
}

/** Bytes of values that are deleted in one transaction, which reads every page of them: some 5 ms. */
export const BYTES_PER_DELETION = 1024 ** 2

/** The first values of `key` in a query that has `bytes` beside it, of which one deletion takes these. */
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
 * Waits for statements of a transaction that need no results of each other, which a database server then receives at
 * once. Also waits if one fails, because no part of a transaction may run after it. Rejects with the first error, in
 * the order of the arguments.
 */
export async function together<Results extends readonly unknown[]>(
  ...statements: { readonly [I in keyof Results]: Promise<Results[I]> }
): Promise<Results> {
  // One that fails while another is waited for is no unhandled rejection.
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
