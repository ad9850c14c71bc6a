/**
 * Copies all tables of a database into another one with the same schema; each may be SQLite or PostgreSQL. The code
 * knows no table by its meaning: it takes columns and keys from what the databases list.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import {
  continueIdentities,
  isTableEmpty,
  sqlName,
  sqlNames,
  tablesOf,
  type TableShape,
} from '../../../platform/database/catalog.ts'
import { Sql, sql, sqlRows, type Database, type SqlValue, type Writer } from '../../../platform/database/database.ts'
import { isStorageOutage } from '../../../http/errors.ts'

/** Tables that the target's migrations write, or that only concern the servers that use a database. */
const notCopied = new Set(['schema_migration', 'node', 'commit_mark', 'database_history'])
const MAX_PAGE_ROWS = 500
/** Most values in one statement; SQLite allows 32,766. */
const MAX_VALUES = 30_000
/** Most bytes of text and blobs in a page of several rows. */
const PAGE_BYTES = 4 * 1024 ** 2
/** Most rows of a table without a primary key. Such tables hold a row or two. */
const MAX_KEYLESS_ROWS = 100

type Row = Record<string, SqlValue>

/** A database, or a snapshot of one. */
export type Source = Pick<Database, 'all' | 'get' | 'dialect'>

/** Called after each page. `rows` is how many rows of the table were copied. */
export type Progress = (table: string, rows: number) => void

/** The source cannot be read. The reason is the cause. */
export class SourceFault extends Error {
  constructor(cause: unknown) {
    super('the source cannot be read', { cause })
  }
}

/**
 * Returns the number of rows. Throws `OperatorError` if the source lacks a table, or has data that the target cannot
 * hold, and `SourceFault` if the source cannot be read.
 */
export async function copyTables(from: Source, to: Database, onProgress: Progress): Promise<number> {
  const [source, target] = [await tablesOf(from).catch(blameSource), await tablesOf(to)]
  const lacking = [...target.keys()].filter((name) => !source.has(name))
  if (lacking.length > 0)
    throw new OperatorError(`the source is damaged: it lacks the tables ${lacking.join(', ')}. Restore a backup of it`)
  for (const table of source.values()) await checkTable(from, table, target.get(table.name)).catch(blameSource)
  let rows = 0
  for (const table of source.values()) {
    const known = target.get(table.name)
    if (known === undefined || notCopied.has(table.name)) continue
    // The migrations of the target have inserted rows.
    await to.run(sql`DELETE FROM ${sqlName(table.name)}`)
    rows += await copyTable(
      from,
      to,
      { ...table, columns: table.columns.filter((column) => known.columns.includes(column)) },
      onProgress,
    )
  }
  await continueIdentities(to)
  return rows
}

/** Throws `OperatorError` if a table or column that only the source has is not empty. */
async function checkTable(from: Source, { name, columns }: TableShape, known: TableShape | undefined): Promise<void> {
  if (notCopied.has(name)) return
  if (known === undefined) {
    if (await isTableEmpty(from, name)) return
    throw new OperatorError(`the table ${name} has rows, and the other database has no such table`)
  }
  for (const column of columns.filter((each) => !known.columns.includes(each))) {
    const used = await from.get(sql`SELECT 1 FROM ${sqlName(name)} WHERE ${sqlName(column)} IS NOT NULL LIMIT 1`)
    if (used !== null)
      throw new OperatorError(`the column ${column} of ${name} is used, and the other database has no such column`)
  }
}

async function copyTable(from: Source, to: Database, table: TableShape, onProgress: Progress): Promise<number> {
  let copied = 0
  for (const pages = pagesOf(from, table); ;) {
    const { done, value: page } = await pages.next().catch(blameSource)
    if (done) return copied
    await insert(to, table, page).catch(async (error: unknown) => {
      throw isStorageOutage(error) ? error : await rowFault(to, table, page, error)
    })
    copied += page.length
    onProgress(table.name, copied)
  }
}

const insert = (to: Writer, { name, columns }: TableShape, page: readonly Row[]): Promise<number> =>
  to.run(
    sql`INSERT INTO ${sqlName(name)} (${sqlNames(columns)}) VALUES ${sqlRows(page.map((row) => columns.map((column) => row[column]!)))}`,
  )

function blameSource(error: unknown): never {
  throw new SourceFault(error)
}

/** Names the row that made the target reject a page. Nothing of the page was inserted. */
async function rowFault(to: Database, table: TableShape, page: readonly Row[], fault: unknown): Promise<OperatorError> {
  for (const row of page) {
    try {
      await insert(to, table, [row])
    } catch (error) {
      const key = table.key.map((column) => `${column} = ${shown(row[column]!)}`).join(', ')
      return new OperatorError(
        `the row ${key} of the table ${table.name} is damaged (${(error as Error).message}): correct it at the source, or restore a backup`,
        { cause: error },
      )
    }
  }
  return new OperatorError(`rows of the table ${table.name} cannot be copied: ${(fault as Error).message}`, {
    cause: fault,
  })
}

const shown = (value: SqlValue): string =>
  value instanceof Uint8Array ? `x'${Buffer.from(value).toString('hex')}'` : String(value)

/** Yields all rows in the order of the key, in pages of bounded size. */
async function* pagesOf(from: Source, table: TableShape): AsyncGenerator<Row[]> {
  const { name, columns, key } = table
  const wanted = sqlNames([...new Set([...columns, ...key])])
  if (key.length === 0) {
    const rows = await from.all<Row>(sql`SELECT ${wanted} FROM ${sqlName(name)} LIMIT ${MAX_KEYLESS_ROWS + 1}`)
    if (rows.length > MAX_KEYLESS_ROWS) throw new Error(`the table ${name} has many rows and no primary key`)
    if (rows.length > 0) yield rows
    return
  }
  const mostRows = Math.min(MAX_PAGE_ROWS, Math.floor(MAX_VALUES / columns.length))
  let last: Row | null = null
  for (;;) {
    const after: Sql =
      last === null ? sql`1 = 1` : sql`(${sqlNames(key)}) > ${sqlRows([key.map((column) => last![column]!)])}`
    const place: Sql = sql`FROM ${sqlName(name)} WHERE ${after} ORDER BY ${sqlNames(key)}`
    const limit = await fittingRows(from, table, place, mostRows)
    const rows: Row[] = await from.all<Row>(sql`SELECT ${wanted} ${place} LIMIT ${limit}`)
    if (rows.length > 0) yield rows
    if (rows.length < limit) return
    last = rows.at(-1)!
  }
}

/** Returns how many of the next rows fit into a page, at least one. Databases report lengths without reading values. */
async function fittingRows(from: Source, { wide }: TableShape, place: Sql, mostRows: number): Promise<number> {
  if (wide.length === 0) return mostRows
  const lengths = wide.map((column) => sql`COALESCE(octet_length(${sqlName(column)}), 0)`)
  const total = lengths.reduce((sum, length) => sql`${sum} + ${length}`)
  const rows = await from.all<{ bytes: number }>(sql`SELECT ${total} AS bytes ${place} LIMIT ${mostRows}`)
  let bytes = 0
  const tooMany = rows.findIndex((row) => (bytes += row.bytes) > PAGE_BYTES)
  return tooMany < 0 ? mostRows : Math.max(1, tooMany)
}
