/**
 * The file that a repair writes before it changes anything: every row of the account that it may change, as it was. The
 * file is a SQLite database, whichever database the server uses, and readable only by its owner.
 */
import { Database as SqliteFile } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import type { TableShape } from '../../../platform/database/catalog.ts'
import { inDatabaseWords } from '../../../platform/database/database-words.ts'
import { sql, sqlList, type Reader, type SqlValue } from '../../../platform/database/database.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import { nextTid } from '../../../protocol/tid.ts'
import {
  boundedPages,
  changedShapes,
  changedTables,
  isOwnedBy,
  maxPage,
  rowsOf,
  shapesOf,
  spaceTables,
  type ChangedTable,
  type RawRow,
  type SpaceTable,
} from './row-store.ts'
import { isOfSpace } from './space-row-store.ts'

/** The folder of the files, in the data directory. */
export const REPAIRS = 'repairs'
/** Suffix of a file that is not complete yet. */
export const PART = '.part'
const FORMAT = 1

/** What the file says about the repair. */
export interface RepairNote {
  did: Did
  /** Number of the repository whose rows the file has; null if there were none. */
  repoId: number | null
  /** The revision that the repair sets. */
  rev: Tid
  at: number
}

/** A repository in a space, and its revision after the repair; empty if there is no revision. */
export interface RepairedSpace {
  id: number
  space: SpaceUri
  rev: Tid | ''
}

/** The rows of a table, in pages. */
type Rows = [TableShape, AsyncIterable<RawRow[]>]

/** Write the file, and return its path once it is on the disk. */
export async function keepEvidence(ctx: Context, note: RepairNote, brokenEvents: readonly number[]): Promise<string> {
  const shapes = await changedShapes(ctx.db)
  return writeFile(ctx, note, [], function* (reader): Generator<Rows> {
    for (const [name, shape] of shapes) {
      const owner = changedTables[name] === 'did' ? note.did : note.repoId
      if (name === 'repo_seq') yield [shape, eventPages(reader, shape, brokenEvents)]
      else yield [shape, owner === null ? nothing() : rowsOf(reader, shape, isOwnedBy(name, owner))]
    }
  })
}

async function* eventPages(reader: Reader, shape: TableShape, seqs: readonly number[]): AsyncGenerator<RawRow[]> {
  for (let at = 0; at < seqs.length; at += maxPage.rows)
    yield* rowsOf(reader, shape, sql`seq IN ${sqlList(seqs.slice(at, at + maxPage.rows))}`)
}

async function* nothing(): AsyncGenerator<RawRow[]> {}

/** As `keepEvidence`, for repositories in spaces. */
export async function keepSpaceEvidence(
  ctx: Context,
  { did, at }: { did: Did; at: number },
  spaces: readonly RepairedSpace[],
): Promise<string> {
  const shapes = await shapesOf(ctx.db, spaceTables)
  const note = { did, repoId: null, rev: nextTid(null, at * 1000, 0), at }
  return writeFile(ctx, note, spaces, function* (reader): Generator<Rows> {
    for (const [name, shape] of shapes) yield [shape, spacePages(reader, shape, name, did, spaces)]
  })
}

async function* spacePages(
  reader: Reader,
  shape: TableShape,
  name: SpaceTable,
  did: Did,
  spaces: readonly RepairedSpace[],
): AsyncGenerator<RawRow[]> {
  for (const space of spaces) yield* rowsOf(reader, shape, isOfSpace(name, did, space))
}

async function writeFile(
  ctx: Context,
  note: RepairNote,
  spaces: readonly RepairedSpace[],
  tables: (reader: Reader) => Iterable<Rows>,
): Promise<string> {
  const folder = join(ctx.config.dataDir, REPAIRS)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const time = new Date(note.at).toISOString().replace(/[-:]|\.\d+/g, '')
  const kind = spaces.length > 0 ? '-spaces' : ''
  const path = join(folder, `${note.did.replaceAll(/[^a-z0-9]+/gi, '-')}-${time}-${note.rev}${kind}.db`)
  const part = `${path}${PART}`
  rmSync(part, { force: true })
  // Create the file first, so that it is private from its first byte.
  closeSync(openSync(part, 'wx', 0o600))
  const file = new SqliteFile(part)
  try {
    file.run('PRAGMA journal_mode = OFF')
    await ctx.db.snapshot((reader) => copyOut(file, note, spaces, tables(reader)))
  } catch (error) {
    throw inDatabaseWords(error, part)
  } finally {
    file.close()
  }
  sync(part)
  renameSync(part, path)
  sync(folder)
  return path
}

async function copyOut(
  file: SqliteFile,
  note: RepairNote,
  spaces: readonly RepairedSpace[],
  tables: Iterable<Rows>,
): Promise<void> {
  file.run('BEGIN')
  file.run('CREATE TABLE repair (format INTEGER, did TEXT, repo_id INTEGER, rev TEXT, at INTEGER)')
  file.query('INSERT INTO repair VALUES (?, ?, ?, ?, ?)').run(FORMAT, note.did, note.repoId, note.rev, note.at)
  file.run('CREATE TABLE repaired_space (id INTEGER, space TEXT, rev TEXT)')
  for (const { id, space, rev } of spaces) file.query('INSERT INTO repaired_space VALUES (?, ?, ?)').run(id, space, rev)
  for (const [{ name, columns }, pages] of tables) {
    // Columns without a type keep every value as it is.
    file.run(`CREATE TABLE "${name}" (${columns.map((column) => `"${column}"`).join(', ')})`)
    const insert = file.query<unknown, SqlValue[]>(
      `INSERT INTO "${name}" VALUES (${columns.map(() => '?').join(', ')})`,
    )
    for await (const page of pages) for (const row of page) insert.run(...columns.map((column) => row[column]!))
  }
  file.run('COMMIT')
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

const bytesOfRow = (row: RawRow): number =>
  Object.values(row).reduce<number>(
    (sum, value) => sum + (value instanceof Uint8Array || typeof value === 'string' ? value.length : 0),
    0,
  )

export class Evidence implements Disposable {
  readonly note: RepairNote
  readonly #file: SqliteFile

  /** Throws `OperatorError` if the file is not from a repair. */
  constructor(path: string) {
    if (!existsSync(path)) throw new OperatorError(`there is no file ${path}`)
    this.#file = new SqliteFile(path, { readonly: true })
    try {
      const row = this.#file
        .query<RepairNote & { format: number }, []>('SELECT format, did, repo_id AS "repoId", rev, at FROM repair')
        .get()
      if (row?.format !== FORMAT) throw new Error('its format is unknown')
      this.note = row
    } catch (error) {
      this.#file.close()
      throw new OperatorError(`${path} is not a file that a repair has kept (${(error as Error).message})`, {
        cause: error,
      })
    }
  }

  /** Returns the repositories in spaces whose rows the file has. Empty for the file of a public repository. */
  spaces(): RepairedSpace[] {
    if (!this.#has('repaired_space')) return []
    return this.#file.query<RepairedSpace, []>('SELECT id, space, rev FROM repaired_space').all()
  }

  #has(table: string): boolean {
    return this.#file.query('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== null
  }

  /**
   * Yields the rows of a table as they were, in pages. Leaves out columns and tables that a file of an earlier version
   * does not have.
   */
  *rows(table: ChangedTable | SpaceTable): Generator<RawRow[]> {
    if (!this.#has(table)) return
    const rows = this.#file.query<RawRow, []>(`SELECT * FROM "${table}" ORDER BY rowid`)
    yield* boundedPages(rows.iterate(), bytesOfRow)
  }

  [Symbol.dispose](): void {
    this.#file.close()
  }
}
