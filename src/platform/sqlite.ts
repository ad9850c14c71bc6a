/**
 * The SQLite adapter: one file, one writer connection behind a queue, one connection that only reads.
 *
 * Group commit: transactions that wait in the queue run one after another inside one BEGIN … COMMIT, each in a
 * savepoint of its own, and every caller is answered after the COMMIT. A failed one rolls back alone.
 */
import { Database as Connection, type SQLQueryBindings, type Statement } from 'bun:sqlite'
import type { Database, DatabaseCounters, Reader, Sql, SqlValue, Tx } from './database.ts'

/** Transactions that may share one COMMIT, so that the first of them is not kept waiting. */
const MAX_GROUP = 512
/** Prepared statements kept per connection; the oldest goes first. */
const MAX_STATEMENTS = 400
/** How long a statement waits for another process's lock. */
const BUSY_TIMEOUT_MILLIS = 5000
/** Page cache of each connection. */
const CACHE_KIB = 65_536
/** Page cache of a connection for snapshots. */
const SNAPSHOT_CACHE_KIB = 32_768
/** Connections for snapshots that are kept open while nobody uses them. */
const MAX_IDLE_SNAPSHOTS = 2

export interface SqliteOptions {
  path: string
  /** Refuse transactions that wait for anything but the database. For tests: it costs a timer per transaction. */
  strict?: boolean
}

/** `database_url` is a path, or a `sqlite:` URL of one. */
export const sqlitePath = (databaseUrl: string): string => databaseUrl.replace(/^sqlite:(\/\/)?/, '')

export function openSqlite({ path, strict = false }: SqliteOptions): Database {
  const counters: DatabaseCounters = { statements: 0, transactions: 0, commits: 0 }
  const writer = new Prepared(new Connection(path, { create: true, strict: true }), counters)
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']) writer.connection.run(`PRAGMA ${pragma}`)
  const reader = new Prepared(new Connection(path, { readonly: true, strict: true }), counters)
  const queue = new WriterQueue(writer, counters, strict)
  const snapshots = new Snapshots(() => new Prepared(new Connection(path, { readonly: true, strict: true }), counters, SNAPSHOT_CACHE_KIB))

  return {
    counters,
    all: async <Row>(query: Sql) => reader.all<Row>(query),
    get: async <Row>(query: Sql) => reader.get<Row>(query),
    run: (query) => queue.enter((tx) => tx.run(query)),
    transaction: (work) => queue.enter(work),
    snapshot: (work) => snapshots.read(work),
    async close() {
      await queue.drained()
      snapshots.close()
      reader.close()
      writer.connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
      writer.close()
    },
  }
}

/** A connection with its prepared statements. */
class Prepared {
  readonly #statements = new Map<string, Statement>()

  constructor(
    readonly connection: Connection,
    readonly counters: DatabaseCounters,
    cacheKib = CACHE_KIB,
  ) {
    connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MILLIS}`)
    connection.run(`PRAGMA cache_size = -${cacheKib}`)
  }

  all<Row>(query: Sql): Row[] {
    return this.#statement(query).all(...bindings(query.values)) as Row[]
  }

  get<Row>(query: Sql): Row | null {
    return this.#statement(query).get(...bindings(query.values)) as Row | null
  }

  run(query: Sql): number {
    return this.#statement(query).run(...bindings(query.values)).changes
  }

  #statement(query: Sql): Statement {
    this.counters.statements++
    const text = query.texts.length === 1 ? query.texts[0]! : query.texts.join('?')
    const kept = this.#statements.get(text)
    if (kept) return kept
    const made = this.connection.prepare(text)
    if (this.#statements.size >= MAX_STATEMENTS) {
      const [oldest, statement] = this.#statements.entries().next().value!
      this.#statements.delete(oldest)
      statement.finalize()
    }
    this.#statements.set(text, made)
    return made
  }

  close() {
    for (const statement of this.#statements.values()) statement.finalize()
    this.#statements.clear()
    this.connection.close()
  }
}

/** Connections that each hold one state of the database while they are read from. */
class Snapshots {
  readonly #idle: Prepared[] = []
  #isClosed = false

  constructor(readonly open: () => Prepared) {}

  async read<T>(work: (reader: Reader) => Promise<T>): Promise<T> {
    const prepared = this.#idle.pop() ?? this.open()
    prepared.connection.run('BEGIN')
    try {
      return await work({ all: async <Row>(query: Sql) => prepared.all<Row>(query), get: async <Row>(query: Sql) => prepared.get<Row>(query) })
    } finally {
      prepared.connection.run('ROLLBACK')
      if (!this.#isClosed && this.#idle.length < MAX_IDLE_SNAPSHOTS) this.#idle.push(prepared)
      else prepared.close()
    }
  }

  close(): void {
    this.#isClosed = true
    for (const prepared of this.#idle.splice(0)) prepared.close()
  }
}

/** `undefined` would be bound as NULL and numbers beyond 2^53 would lose digits, both in silence. */
function bindings(values: readonly SqlValue[]): SQLQueryBindings[] {
  for (const value of values) {
    if (value === undefined) throw new TypeError('undefined is no SQL value')
    if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new TypeError(`${value} is no SQL integer`)
  }
  return values as SQLQueryBindings[]
}

interface Waiting {
  work: (tx: Tx) => Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

class WriterQueue {
  readonly #waiting: Waiting[] = []
  #running: Promise<void> | null = null
  readonly #tx: Tx

  constructor(
    readonly writer: Prepared,
    readonly counters: DatabaseCounters,
    readonly strict: boolean,
  ) {
    this.#tx = {
      all: async <Row>(query: Sql) => writer.all<Row>(query),
      get: async <Row>(query: Sql) => writer.get<Row>(query),
      run: async (query) => writer.run(query),
    }
  }

  enter<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject })
    // A turn of the event loop lets the requests of one tick share a commit.
    this.#running ??= new Promise((start) => setImmediate(start)).then(() => this.#drain())
    return promise
  }

  async drained(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#group()
    this.#running = null
  }

  /** One BEGIN … COMMIT. Its members are answered only after the COMMIT. */
  async #group(): Promise<void> {
    const { connection } = this.writer
    const members: { waiting: Waiting; outcome: Outcome }[] = []
    try {
      connection.run('BEGIN IMMEDIATE')
      while (this.#waiting.length > 0 && members.length < MAX_GROUP) {
        const waiting = this.#waiting.shift()!
        const outcome = await this.#member(waiting.work)
        members.push({ waiting, outcome })
        // Some faults (a full disk) end the whole transaction, and with it what earlier members did.
        if (!connection.inTransaction) throw outcome.ok ? new Error('the transaction ended early') : outcome.error
      }
      connection.run('COMMIT')
    } catch (error) {
      if (connection.inTransaction) connection.run('ROLLBACK')
      if (members.length === 0) this.#waiting.shift()?.reject(error)
      for (const { waiting } of members) waiting.reject(error)
      return
    }
    this.counters.commits++
    for (const { waiting, outcome } of members) {
      if (outcome.ok) waiting.resolve(outcome.value)
      else waiting.reject(outcome.error)
    }
  }

  async #member(work: Waiting['work']): Promise<Outcome> {
    const { connection } = this.writer
    this.counters.transactions++
    connection.run('SAVEPOINT member')
    try {
      const value = await (this.strict ? withoutWaiting(work(this.#tx)) : work(this.#tx))
      connection.run('RELEASE member')
      return { ok: true, value }
    } catch (error) {
      if (connection.inTransaction) {
        connection.run('ROLLBACK TO member')
        connection.run('RELEASE member')
      }
      return { ok: false, error }
    }
  }
}

/** Work that awaits only the database settles within the current turn of the event loop. */
function withoutWaiting<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<T>()
  const late = setImmediate(() => reject(new Error('a transaction waited for something other than its database')))
  return Promise.race([work, promise]).finally(() => clearImmediate(late))
}
