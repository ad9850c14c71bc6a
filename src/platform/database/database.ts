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

export type SqlValue = string | number | null | Uint8Array

/** A fragment of SQL with its parameters, made by the `sql` tag. Fragments may be nested. */
export class Sql {
  constructor(
    /** One text more than there are values. An array with `raw`, as templates have it, is the same object in every call. */
    readonly texts: readonly string[],
    readonly values: readonly SqlValue[],
  ) {}
}

/** sql`SELECT cid FROM blob WHERE did = ${did}`: every value becomes a parameter, a nested `Sql` is spliced in. */
export function sql(strings: TemplateStringsArray, ...values: (SqlValue | Sql)[]): Sql {
  if (areFlat(values)) return new Sql(strings, values)
  const flat: SqlValue[] = []
  for (const value of values) {
    if (value instanceof Sql) flat.push(...value.values)
    else flat.push(value)
  }
  return new Sql(composed(strings, values), flat)
}

interface Composition {
  /** Texts of each nested fragment; null for a parameter. */
  nested: readonly (readonly string[] | null)[]
  texts: readonly string[]
}

/** Composed texts per template. Composing a text and looking up its prepared statement costs more than running a small statement. */
const compositions = new WeakMap<TemplateStringsArray, Composition[]>()
/** Compositions kept per template. Real uses of a template differ by a condition or two. */
const MAX_COMPOSITIONS = 8

function composed(strings: TemplateStringsArray, values: readonly (SqlValue | Sql)[]): readonly string[] {
  const known = compositions.get(strings) ?? []
  for (const { nested, texts } of known) if (isMadeOf(nested, values)) return texts
  const texts = spliced(strings, values)
  const nested = values.map(textsOf)
  // Fragments without `raw` are parameter lists of one call, and not worth remembering.
  if (known.length >= MAX_COMPOSITIONS || !nested.every((piece) => piece === null || 'raw' in piece)) return texts
  const composition = { nested, texts: Object.assign(texts, { raw: texts }) }
  compositions.set(strings, [...known, composition])
  return composition.texts
}

function isMadeOf(nested: Composition['nested'], values: readonly (SqlValue | Sql)[]): boolean {
  for (let i = 0; i < values.length; i++) if (nested[i] !== textsOf(values[i]!)) return false
  return true
}

const textsOf = (value: SqlValue | Sql): readonly string[] | null => (value instanceof Sql ? value.texts : null)

function spliced(strings: TemplateStringsArray, values: readonly (SqlValue | Sql)[]): string[] {
  const texts = [strings[0]!]
  values.forEach((value, i) => {
    const after = strings[i + 1]!
    if (value instanceof Sql) {
      texts[texts.length - 1] += value.texts[0]!
      texts.push(...value.texts.slice(1))
      texts[texts.length - 1] += after
    } else texts.push(after)
  })
  return texts
}

function areFlat(values: readonly (SqlValue | Sql)[]): values is readonly SqlValue[] {
  for (const value of values) if (value instanceof Sql) return false
  return true
}

/** Makes `(?, ?, ?)` for IN. An empty list matches nothing. */
export function sqlList(values: readonly SqlValue[]): Sql {
  if (values.length === 0) return new Sql(['(SELECT NULL WHERE 1 = 0)'], [])
  return new Sql(['(', ...Array<string>(values.length - 1).fill(', '), ')'], values)
}

/** Makes `(?, ?), (?, ?)` for a multi-row VALUES. There must be at least one row, and all rows must have the same length. */
export function sqlRows(rows: readonly (readonly SqlValue[])[]): Sql {
  const texts = ['(']
  const values: SqlValue[] = []
  rows.forEach((row, r) => {
    row.forEach((value, c) => {
      values.push(value)
      texts.push(c < row.length - 1 ? ', ' : r < rows.length - 1 ? '), (' : ')')
    })
  })
  return new Sql(texts, values)
}

/** Most rows in one statement. */
const MAX_ROWS = 64

/**
 * Splits rows into pieces, one per statement. A statement with thousands of rows, whose number is never the same twice,
 * takes longer to prepare than to run.
 */
export function* inPieces<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += MAX_ROWS) yield rows.slice(start, start + MAX_ROWS)
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

/** Joins conditions with AND; always true if there are none. */
export function sqlAnd(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} AND ${one}`, sql`1 = 1`)
}

export interface Reader {
  all<Row>(query: Sql): Promise<Row[]>
  /** Returns the first row, or null if there is none. */
  get<Row>(query: Sql): Promise<Row | null>
}

/** The database, where each statement is its own transaction, or an open transaction. */
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

/** A row has changed since the transaction read it. An adapter that runs transactions concurrently runs this one again. */
export class WriteConflict extends Error {
  override name = 'WriteConflict'

  constructor(what: string) {
    super(`${what} was changed by another transaction`)
  }
}

export interface Tx extends Reader, Writer {
  /**
   * Calls `act` once the transaction is durable and before its promise resolves; never if the transaction fails. Calls
   * are made in the order of transactions, and in one go for those that become durable together.
   */
  afterCommit(act: () => void): void
}

/** Differences between the databases beneath the shared subset of SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Translates a migration's statement to the types of this database. */
  definition(statement: string): string
}

export interface Database extends Reader, Writer {
  readonly dialect: Dialect
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Run reads that all see one state of the database, on a connection of their own. `work` may yield to other work, but
   * must not wait for anything outside the process: the write-ahead log grows until it ends.
   */
  snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T>
  /** A snapshot on the shared read connection, for `work` that awaits nothing but its own few reads. */
  shortSnapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T>
  /** Returns the damage that the database itself reports, in words; empty if there is none. */
  integrityFaults(): Promise<string[]>
  readonly counters: DatabaseCounters
  /** Why the last transaction could not be made durable, other than by the caller's own fault; null if it was. */
  readonly writeFault: WriteFault | null
  close(): Promise<void>
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
}

/** Whether a statement failed because a row with the same key exists. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  return code === 'SQLITE_CONSTRAINT_PRIMARYKEY' || code === 'SQLITE_CONSTRAINT_UNIQUE' || code === '23505' || errno === '23505'
}
