/** Statements on a connection or a pool of PostgreSQL: texts, parameters and values as the database seam has them. */
import type { SQL } from 'bun'
import { TextNotStorable, type Reader, type Sql, type SqlValue } from './database.ts'

interface Text {
  /** With numbered parameters (`$1`). */
  text: string
  /** Whether the statement changes nothing. */
  isRead: boolean
}

/** By the strings of their template. */
const known = new WeakMap<readonly string[], Text>()

function textOf({ texts }: Sql): Text {
  const before = known.get(texts)
  if (before !== undefined) return before
  const text = texts.reduce((all, piece, i) => `${all}$${i}${piece}`).replaceAll(' AS BLOB)', ' AS BYTEA)')
  const made = { text, isRead: /^\s*SELECT\b/.test(text) }
  if ('raw' in texts) known.set(texts, made)
  return made
}

/**
 * Without this check, `undefined` would silently be bound as NULL, and numbers beyond 2^53 would silently lose digits.
 */
function parameterOf(value: SqlValue): SqlValue | bigint {
  if (value === undefined) throw new TypeError('undefined is not an SQL value')
  if (typeof value === 'string' && value.includes('\0')) throw new TextNotStorable()
  if (typeof value !== 'number' || (value | 0) === value) return value
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not an SQL integer`)
  // The driver would send it as a floating-point number, for which PostgreSQL does not use an index on integers.
  return BigInt(value)
}

type Row = Record<string, unknown>
export type Rows = Row[] & { count: number; command: string }

/** Converts 64-bit integers, which arrive as bigints, and bytes, which arrive as buffers. */
function decoded(row: Row): Row {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = safeNumber(value)
    // Creating a view of the same bytes would take several times as long as replacing the prototype.
    else if (value instanceof Buffer) Object.setPrototypeOf(value, Uint8Array.prototype)
  }
  return row
}

function safeNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number))
    throw new RangeError(`${value} is beyond the integers that a number can represent exactly`)
  return number
}

export interface Statement extends Text {
  values: (SqlValue | bigint)[]
}

/** Throws if a value cannot be stored. */
export function statementOf(query: Sql): Statement {
  const { text, isRead } = textOf(query)
  return { text, isRead, values: query.values.map(parameterOf) }
}

export const send = (connection: SQL, { text, values }: Statement): Promise<Rows> => connection.unsafe(text, values)

/**
 * Commands of transactions, as templates. The driver prepares a template and sends it along with other statements. It
 * sends a plain text without parameters alone, after everything before it has been answered.
 */
export const commands = {
  BEGIN: (connection: SQL): Promise<Rows> => connection`BEGIN`,
  /** `READ WRITE`: a standby, which may lack what was committed last, refuses it. */
  'BEGIN SNAPSHOT': (connection: SQL): Promise<Rows> => connection`BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE`,
  COMMIT: (connection: SQL): Promise<Rows> => connection`COMMIT`,
  ROLLBACK: (connection: SQL): Promise<Rows> => connection`ROLLBACK`,
  SAVEPOINT: (connection: SQL): Promise<Rows> => connection`SAVEPOINT work`,
  'ROLLBACK TO': (connection: SQL): Promise<Rows> => connection`ROLLBACK TO work`,
  RELEASE: (connection: SQL): Promise<Rows> => connection`RELEASE work`,
} as const
export type Command = keyof typeof commands

export const allOf = <T>(rows: Rows): T[] => rows.map(decoded) as T[]

export function firstOf<T>(rows: Rows): T | null {
  const [row] = rows
  return row === undefined ? null : (decoded(row) as T)
}

export const readerOn = (ask: (query: Sql) => Promise<Rows>): Reader => ({
  all: async <T>(query: Sql) => allOf<T>(await ask(query)),
  get: async <T>(query: Sql) => firstOf<T>(await ask(query)),
})
