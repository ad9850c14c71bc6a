/**
 * The file that a repair makes before it changes anything: every row of the account that it may change, as it was. It
 * is a database of SQLite, whichever database the server uses, that only its owner can read.
 */
import { Database as SqliteFile } from 'bun:sqlite'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, SqlValue } from '../../../platform/database/database.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { changedShapes, changedTables, eventRows, rowsOf, type ChangedTable, type RawRow } from './row-store.ts'

const FOLDER = 'repairs'
const FORMAT = 1
const PAGE = 200

/** What the file says of the repair. */
export interface RepairNote {
  did: Did
  /** The number of the repository whose rows it has; null if there were none. */
  repoId: number | null
  /** The revision that the repair gives. */
  rev: Tid
  at: number
}

/** Writes the file, and returns its path once it is on the disk. */
export async function keepEvidence(ctx: Context, note: RepairNote, brokenEvents: readonly number[]): Promise<string> {
  const folder = join(ctx.config.dataDir, FOLDER)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const time = new Date(note.at).toISOString().replace(/[-:]|\.\d+/g, '')
  const path = join(folder, `${note.did.replaceAll(/[^a-z0-9]+/gi, '-')}-${time}-${note.rev}.db`)
  const part = `${path}.part`
  rmSync(part, { force: true })
  // Made first, so that it is private from its first byte on.
  closeSync(openSync(part, 'wx', 0o600))
  const file = new SqliteFile(part)
  try {
    file.run('PRAGMA journal_mode = OFF')
    const shapes = await changedShapes(ctx.db)
    await ctx.db.snapshot((reader) => copyOut(reader, file, shapes, note, brokenEvents))
  } finally {
    file.close()
  }
  sync(part)
  renameSync(part, path)
  sync(folder)
  return path
}

type Shapes = Awaited<ReturnType<typeof changedShapes>>

async function copyOut(
  reader: Reader,
  file: SqliteFile,
  shapes: Shapes,
  note: RepairNote,
  brokenEvents: readonly number[],
): Promise<void> {
  file.run('BEGIN')
  file.run('CREATE TABLE repair (format INTEGER, did TEXT, repo_id INTEGER, rev TEXT, at INTEGER)')
  file.query('INSERT INTO repair VALUES (?, ?, ?, ?, ?)').run(FORMAT, note.did, note.repoId, note.rev, note.at)
  for (const [name, shape] of shapes) {
    // Columns without a type keep every value as it is.
    file.run(`CREATE TABLE "${name}" (${shape.columns.map((column) => `"${column}"`).join(', ')})`)
    const insert = file.query<unknown, SqlValue[]>(
      `INSERT INTO "${name}" VALUES (${shape.columns.map(() => '?').join(', ')})`,
    )
    const keep = (rows: readonly RawRow[]) => {
      for (const row of rows) insert.run(...shape.columns.map((column) => row[column]!))
    }
    if (name === 'repo_seq')
      for (let at = 0; at < brokenEvents.length; at += PAGE)
        keep(await eventRows(reader, shape, brokenEvents.slice(at, at + PAGE)))
    else {
      const owner = changedTables[name] === 'did' ? note.did : note.repoId
      if (owner !== null) for await (const page of rowsOf(reader, shape, owner, PAGE)) keep(page)
    }
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

export class Evidence implements Disposable {
  readonly note: RepairNote
  readonly #file: SqliteFile

  /** Throws `OperatorError` if the file is none of a repair. */
  constructor(path: string) {
    if (!existsSync(path)) throw new OperatorError(`there is no file ${path}`)
    this.#file = new SqliteFile(path, { readonly: true })
    try {
      const row = this.#file
        .query<RepairNote & { format: number }, []>('SELECT format, did, repo_id AS "repoId", rev, at FROM repair')
        .get()
      if (row?.format !== FORMAT) throw new Error('another format')
      this.note = row
    } catch (error) {
      this.#file.close()
      throw new OperatorError(`${path} is not what a repair has kept (${(error as Error).message})`, { cause: error })
    }
  }

  /** Yields the rows of a table as they were, in pages. Columns that the file does not have are left out. */
  *rows(table: ChangedTable): Generator<RawRow[]> {
    const query = this.#file.query<RawRow, [number, number]>(
      `SELECT rowid AS "#", * FROM "${table}" WHERE rowid > ? ORDER BY rowid LIMIT ?`,
    )
    for (let last = 0; ;) {
      const page = query.all(last, PAGE)
      if (page.length === 0) return
      last = page.at(-1)!['#'] as number
      for (const row of page) delete (row as RawRow)['#']
      yield page
    }
  }

  [Symbol.dispose](): void {
    this.#file.close()
  }
}
