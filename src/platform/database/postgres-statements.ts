/** Statements on a connection or a pool of PostgreSQL: texts, parameters and values as the database seam has them. */
import type { SQL } from 'bun'
import { TextNotStorable, type DatabaseCounters, type Reader, type Sql, type SqlValue } from './database.ts'

/** Statement texts with numbered parameters (`$1`), by the texts of their template. */
const numbered = new WeakMap<readonly string[], string>()

function textOf({ texts }: Sql): string {
  const known = numbered.get(texts)
  if (known !== undefined) return known
  const text = texts.reduce((all, piece, i) => `${all}$${i}${piece}`).replaceAll(' AS BLOB)', ' AS BYTEA)')
  if ('raw' in texts) numbered.set(texts, text)
  return text
}

/** Without this check, `undefined` would silently be bound as NULL, and numbers beyond 2^53 would silently lose digits. */
function parameterOf(value: SqlValue): SqlValue | bigint {
  if (value === undefined) throw new TypeError('undefined is not an SQL value')
  if (typeof value === 'string' && value.includes('\0')) throw new TextNotStorable()
  if (typeof value !== 'number' || (value | 0) === value) return value
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not an SQL integer`)
  // The driver would send it as a floating-point number, for which PostgreSQL does not use an index on integers.
  return BigInt(value)
}

type Row = Record<string, unknown>
type Rows = Row[] & { count: number }

/** Converts 64-bit integers, which arrive as bigints, and bytes, which arrive as buffers. */
function decoded(row: Row): Row {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'bigint') row[name] = safeNumber(value)
    else if (value instanceof Buffer) row[name] = new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }
  return row
}

function safeNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is beyond the integers that a number can represent exactly`)
  return number
}

export async function ask(connection: SQL, query: Sql, counters: DatabaseCounters): Promise<Rows> {
  counters.statements++
  return connection.unsafe(textOf(query), query.values.map(parameterOf))
}

export function readerOn(connection: SQL, counters: DatabaseCounters): Reader {
  return {
    all: async <T>(query: Sql) => (await ask(connection, query, counters)).map(decoded) as T[],
    async get<T>(query: Sql) {
      const [row] = await ask(connection, query, counters)
      return row === undefined ? null : (decoded(row) as T)
    },
  }
}
