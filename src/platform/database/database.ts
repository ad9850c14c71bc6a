/**
 * The database seam: `all`, `get`, `run`, `transaction` over sql`…` templates.
 *
 * What holds for every adapter:
 * - A transaction is durable when its promise resolves, and leaves nothing behind when it rejects.
 * - Transactions take effect as if they ran one after another: `work` sees all those before it and none beside it.
 * - `work` may be run more than once, and only its last run counts. So it touches nothing but `tx`, awaits nothing but
 *   `tx`, and leaves to `tx.afterCommit` what is to happen once the transaction is durable.
 * - An update of a row that was read earlier names what it was (`WHERE id = … AND rev = …`) and throws `WriteConflict`
 *   when the row is something else by now.
 * - `db.all` and `db.get` read what is committed. Inside a transaction read through `tx`.
 *
 * SQL is written in the subset that SQLite and PostgreSQL share. Column types in migrations are INTEGER (64 bit),
 * TEXT and BLOB; booleans are 0 and 1; instants are milliseconds. Sums are cast to BIGINT: PostgreSQL makes decimals of them.
 */

export type SqlValue = string | number | null | Uint8Array

/** A piece of SQL with its parameters. Made by the `sql` tag; may be nested in another one. */
export class Sql {
  constructor(
    /** One more text than there are values. With `raw`, as templates have it, the array is the same in every call. */
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
  /** Texts of what is nested; null for a parameter. */
  nested: readonly (readonly string[] | null)[]
  texts: readonly string[]
}

/** What templates came to with others in them: composing a text, and finding its statement by it, costs more than a small statement. */
const compositions = new WeakMap<TemplateStringsArray, Composition[]>()
/** Remembered per template; those that are used differ by a condition or two. */
const MAX_COMPOSITIONS = 8

function composed(strings: TemplateStringsArray, values: readonly (SqlValue | Sql)[]): readonly string[] {
  const known = compositions.get(strings) ?? []
  for (const { nested, texts } of known) if (isMadeOf(nested, values)) return texts
  const texts = spliced(strings, values)
  const nested = values.map(textsOf)
  // Lists of so many parameters are made for one call.
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

/** `(?, ?, ?)` for IN. An empty list matches nothing. */
export function sqlList(values: readonly SqlValue[]): Sql {
  if (values.length === 0) return new Sql(['(SELECT NULL WHERE 1 = 0)'], [])
  return new Sql(['(', ...Array<string>(values.length - 1).fill(', '), ')'], values)
}

/** `(?, ?), (?, ?)` for a multi-row VALUES. Rows must not be empty and must have one width. */
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

/** Rows of one statement at most. */
const MAX_ROWS = 64

/**
 * Rows in pieces for as many statements. A statement of thousands of rows, of a number that is never the same twice,
 * costs more to prepare than to run.
 */
export function* inPieces<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += MAX_ROWS) yield rows.slice(start, start + MAX_ROWS)
}

/** Rows in pages of a size, each read behind the last row of the one before. */
export async function* inPages<Place, Row extends Place>(size: number, start: Place, read: (after: Place, limit: number) => Promise<Row[]>): AsyncGenerator<Row[]> {
  for (let after = start; ; ) {
    const rows = await read(after, size)
    yield rows
    if (rows.length < size) return
    after = rows.at(-1)!
  }
}

/** Conditions that are all to hold; `true` when there are none. */
export function sqlAnd(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} AND ${one}`, sql`1 = 1`)
}

export interface Reader {
  all<Row>(query: Sql): Promise<Row[]>
  /** The first row, or null. */
  get<Row>(query: Sql): Promise<Row | null>
}

/** The database itself, where a statement is a transaction of its own, or a transaction. */
export interface Writer {
  /** How many rows the statement changed. */
  run(query: Sql): Promise<number>
}

/** PostgreSQL keeps no NUL in text. Where strangers choose a text, they are told so. */
export class TextNotStorable extends Error {
  override name = 'TextNotStorable'

  constructor() {
    super('text must not contain NUL characters')
  }
}

/** A row is not what the transaction has read. An adapter that runs transactions side by side runs this one again. */
export class WriteConflict extends Error {
  override name = 'WriteConflict'

  constructor(what: string) {
    super(`${what} was changed by another transaction`)
  }
}

export interface Tx extends Reader, Writer {
  /**
   * Do this once the transaction is durable, before anybody is told; never if it fails. In the order of transactions,
   * and all of those that become durable together in one go.
   */
  afterCommit(act: () => void): void
}

/** What differs between databases beneath the shared subset of SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** A statement of a migration in the types of this database. */
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
  /** What the database itself finds damaged, in words. */
  integrityFaults(): Promise<string[]>
  readonly counters: DatabaseCounters
  /** What kept the last transaction from the disk, other than the caller's own fault; null when it got there. */
  readonly writeFault: WriteFault | null
  close(): Promise<void>
}

export interface WriteFault {
  error: unknown
  /** On the monotonic clock. */
  at: number
}

/** What the database was asked for since it was opened; for metrics and for counting in tests. */
export interface DatabaseCounters {
  statements: number
  /** Rows inserted, changed or deleted. */
  rows: number
  transactions: number
  /** Durable commits; several transactions may share one. */
  commits: number
}

/** Whether a statement failed because a row with its key is there already. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  return code === 'SQLITE_CONSTRAINT_PRIMARYKEY' || code === 'SQLITE_CONSTRAINT_UNIQUE' || code === '23505' || errno === '23505'
}
