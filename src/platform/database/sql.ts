/** Statements and fragments of SQL, written as sql`…` templates. */

export type SqlValue = string | number | null | Uint8Array

/** A fragment of SQL with its parameters, made by the `sql` tag. Fragments may be nested. */
export class Sql {
  constructor(
    /**
     * One text more than there are values. An array with `raw`, as templates have it, is the same object in every call.
     */
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

/**
 * Composed texts per template. Composing a text and looking up its prepared statement costs more than running a small
 * statement.
 */
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
  const composition = { nested, texts: fixed(texts) }
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

/** Texts of one row, by its number of values: always the same array, so that such statements are composed once. */
const rowTexts: (readonly string[])[] = []

function oneRow(values: readonly SqlValue[]): Sql {
  const texts = (rowTexts[values.length] ??= fixed(['(', ...Array<string>(values.length - 1).fill(', '), ')']))
  return new Sql(texts, values)
}

/** Marks texts as those of every call, as the texts of templates are. */
const fixed = (texts: string[]): readonly string[] => Object.assign(texts, { raw: texts })

/** Makes `(?, ?, ?)` for IN. An empty list matches nothing. */
export function sqlList(values: readonly SqlValue[]): Sql {
  if (values.length === 0) return new Sql(['(SELECT NULL WHERE 1 = 0)'], [])
  if (values.length === 1) return oneRow(values)
  return new Sql(['(', ...Array<string>(values.length - 1).fill(', '), ')'], values)
}

/**
 * Makes `(?, ?), (?, ?)` for a multi-row VALUES. There must be at least one row, and all rows must have the same
 * length.
 */
export function sqlRows(rows: readonly (readonly SqlValue[])[]): Sql {
  if (rows.length === 1) return oneRow(rows[0]!)
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
export function inPieces<Row>(rows: readonly Row[]): Iterable<readonly Row[]> {
  if (rows.length <= MAX_ROWS) return rows.length === 0 ? [] : [rows]
  return pieces(rows)
}

function* pieces<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += MAX_ROWS) yield rows.slice(start, start + MAX_ROWS)
}

/** Joins conditions with AND; always true if there are none. */
export function sqlAnd(conditions: readonly Sql[]): Sql {
  return conditions.reduce((all, one) => sql`${all} AND ${one}`, sql`1 = 1`)
}

/**
 * What a query reads along with a row, to save another statement. `columns` begins with a comma, and `tables` joins the
 * tables of these columns.
 */
export interface Beside {
  columns: Sql
  tables: Sql
}

export const nothingBeside: Beside = { columns: sql``, tables: sql`` }

export interface Reader {
  all<Row>(query: Sql): Promise<Row[]>
  /** Returns the first row, or null if there is none. */
  get<Row>(query: Sql): Promise<Row | null>
}
