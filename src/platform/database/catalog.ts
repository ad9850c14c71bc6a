/** The tables of a database, for code that treats all of them alike. */
import { Sql, sql, type Database, type Reader } from './database.ts'

export interface TableShape {
  name: string
  columns: readonly string[]
  /** Columns of the primary key, in its order; empty if there is none. */
  key: readonly string[]
  /** Columns of text and bytes, whose values may be long. */
  wide: readonly string[]
}

/** An identifier, as a part of a statement. */
export const sqlName = (name: string): Sql => new Sql([`"${name.replaceAll('"', '""')}"`], [])

/** Identifiers with commas in between. */
export const sqlNames = (names: readonly string[]): Sql =>
  new Sql([names.map((name) => sqlName(name).texts[0]).join(', ')], [])

interface ColumnRow {
  table: string
  column: string
  /** Place in the primary key, from 1; 0 if it is not part of it. */
  place: number
  isWide: number
}

const columnsQuery = {
  sqlite: sql`
    SELECT t.name AS "table", c.name AS "column", c.pk AS place, c.type IN ('TEXT', 'BLOB') AS "isWide"
    FROM sqlite_schema t, pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid`,
  // Partitions are read through their table.
  postgres: sql`
    SELECT t.relname AS "table", c.attname AS "column", COALESCE(array_position(CAST(k.indkey AS SMALLINT[]), c.attnum) + 1, 0) AS place,
      CASE WHEN c.atttypid IN (CAST('text' AS REGTYPE), CAST('bytea' AS REGTYPE)) THEN 1 ELSE 0 END AS "isWide"
    FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
    LEFT JOIN pg_index k ON k.indrelid = t.oid AND k.indisprimary
    WHERE t.relnamespace = CAST(current_schema() AS REGNAMESPACE) AND t.relkind IN ('r', 'p') AND NOT t.relispartition
    ORDER BY t.relname, c.attnum`,
}

/** Returns all tables by name. */
export async function tablesOf(db: Pick<Database, 'all' | 'dialect'>): Promise<Map<string, TableShape>> {
  const rows = await db.all<ColumnRow>(columnsQuery[db.dialect.name])
  const tables = [...Map.groupBy(rows, ({ table }) => table)].map(([name, columns]): TableShape => {
    const key = columns.filter(({ place }) => place > 0).toSorted((a, b) => a.place - b.place)
    const wide = columns.filter(({ isWide }) => isWide === 1)
    return { name, columns: namesOf(columns), key: namesOf(key), wide: namesOf(wide) }
  })
  return new Map(tables.map((table) => [table.name, table]))
}

const namesOf = (rows: readonly ColumnRow[]): string[] => rows.map(({ column }) => column)

export async function isTableEmpty(reader: Reader, table: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM ${sqlName(table)} LIMIT 1`)) === null
}

/**
 * Has the identity columns of PostgreSQL continue above the numbers of the rows that were inserted with explicit ones.
 * Does nothing on SQLite.
 */
export async function continueIdentities(db: Database): Promise<void> {
  if (db.dialect.name === 'sqlite') return
  const identities = await db.all<{ table: string; column: string }>(sql`
    SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_identity = 'YES'`)
  for (const { table, column } of identities)
    await db.run(sql`
      SELECT setval(pg_get_serial_sequence(${`"${table}"`}, ${column}), COALESCE(MAX(${sqlName(column)}), 0) + 1, FALSE) FROM ${sqlName(table)}`)
}

/** By declared type: what SQLite stores in such a column, if nothing is wrong. */
const storedTypes: Readonly<Record<string, string>> = { INTEGER: 'integer', TEXT: 'text', BLOB: 'blob' }

interface TypedColumn {
  table: string
  column: string
  type: string
}

/**
 * Returns, in words, which columns have values of another type than their own, or integers that are not exact here.
 * SQLite takes any value in any column; PostgreSQL refuses such values. Reads every row, but no long values.
 */
export async function misfits(db: Pick<Database, 'all' | 'get' | 'dialect'>): Promise<string[]> {
  if (db.dialect.name === 'postgres') return []
  const columns = await db.all<TypedColumn>(sql`
    SELECT t.name AS "table", c.name AS "column", c.type AS type FROM sqlite_schema t, pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type IN ('INTEGER', 'TEXT', 'BLOB') ORDER BY t.name, c.cid`)
  const faults: string[] = []
  for (const [table, its] of Map.groupBy(columns, (column) => column.table)) {
    const counts = its.map(countMisfits).reduce((all, one) => sql`${all}, ${one}`)
    const found = (await db.get<Record<string, number>>(sql`SELECT ${counts} FROM ${sqlName(table)}`))!
    for (const { column, type } of its)
      if (found[column]! > 0)
        faults.push(
          `${found[column]} rows of the table ${table} have a value in the column ${column} that is not ${type}`,
        )
  }
  return faults
}

function countMisfits({ column, type }: TypedColumn): Sql {
  const name = sqlName(column)
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number
  const isInexact =
    type === 'INTEGER' ? sql` OR ${name} NOT BETWEEN ${MIN_SAFE_INTEGER} AND ${MAX_SAFE_INTEGER}` : sql``
  return sql`count(CASE WHEN typeof(${name}) NOT IN ('null', ${storedTypes[type]!})${isInexact} THEN 1 END) AS ${name}`
}
