/** Connections to SQLite, and the statements that they keep prepared. */
import type { Database as Connection, SQLQueryBindings, Statement } from 'bun:sqlite'
import { DatabaseUnavailable, type DatabaseCounters, type Reader, type Sql, type SqlValue } from './database.ts'

/** Prepared statements kept per connection; the oldest is dropped first. */
const MAX_STATEMENTS = 400
/** How long a statement waits for the lock of another process. */
const BUSY_TIMEOUT_MILLIS = 5000
/** Page cache of each connection. Pages beyond it are still in the operating system's cache. */
const CACHE_KIB = 16_384

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

  /** Begins a read transaction, and runs a statement: SQLite fixes the visible state at the first one, not at BEGIN. */
  beginReading(): void {
    this.command('BEGIN')
    this.command('SELECT 1 FROM sqlite_schema LIMIT 1')
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

/** Each statement runs on the connection that is there at the time. */
export const readerOf = (connection: () => Pick<Prepared, 'all' | 'get'>): Reader => ({
  all: <Row>(query: Sql) => answered(() => connection().all<Row>(query)),
  get: <Row>(query: Sql) => answered(() => connection().get<Row>(query)),
})

/** Does what `async` would do, for much less: the engine need not create a function that it can suspend and resume. */
export function answered<T>(work: () => T): Promise<T> {
  try {
    return Promise.resolve(work())
  } catch (error) {
    return Promise.reject(error as Error)
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
