/**
 * Opens the SQLite files of a reference PDS without changing them or the files beside them.
 *
 * A database without a write-ahead log is read in place, as a file that does not change. A database with a log is
 * copied into a private folder, together with its log, and read there: reading a log in place would create or change
 * files.
 */
import { Database as Connection, constants } from 'bun:sqlite'
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { OperatorError } from '../../../base/operator-error.ts'
import { requireReadable } from './reference-access.ts'

/** The files that SQLite keeps beside a database, and that belong to its content. */
const journals = ['-wal', '-journal'] as const

/** Migrations of the reference whose tables this version can read, by name of the database. */
const knownSchemas = {
  account: { oldest: 5, newest: 7 },
  sequencer: { oldest: 1, newest: 1 },
  actor: { oldest: 1, newest: 1 },
} as const
export type ReferenceSchema = keyof typeof knownSchemas

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Open a database for reading. Throws `OperatorError` if it is missing, damaged, or of another version. */
export function openReferenceDatabase(path: string, schema: ReferenceSchema): ReferenceDatabase {
  for (const suffix of ['', ...journals]) requireReadable(path + suffix)
  if (sizeOf(path) === 0) throw new OperatorError(`${path} is missing: the folder is incomplete. Copy all of it`)
  const hasLog = journals.some((suffix) => sizeOf(path + suffix) > 0)
  const database = hasLog ? openCopy(path) : new ReferenceDatabase(path, inPlace(path))
  try {
    database.requireSchema(schema)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const inPlace = (path: string): Connection =>
  new Connection(`${pathToFileURL(path)}?immutable=1`, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI)

/**
 * Open a copy, and delete its files once it is open: they hold the secrets of all accounts, and nothing would delete
 * them if the command were killed.
 */
function openCopy(path: string): ReferenceDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-reading-'))
  const copy = join(folder, 'database')
  const drop = () => rmSync(folder, { recursive: true, force: true })
  try {
    for (const suffix of ['', ...journals].filter((each) => existsSync(path + each))) {
      copyFileSync(path + suffix, copy + suffix)
      chmodSync(copy + suffix, 0o600)
    }
    foldLog(path, copy)
    const database = new ReferenceDatabase(path, inPlace(copy), canDeleteOpen ? undefined : drop)
    if (canDeleteOpen) drop()
    return database
  } catch (error) {
    drop()
    throw error
  }
}

const canDeleteOpen = process.platform !== 'win32'

/** Merge the log into the database, which is all that is read afterwards. */
function foldLog(path: string, copy: string): void {
  const database = new ReferenceDatabase(path, new Connection(copy, { readwrite: true }))
  try {
    database.get('PRAGMA journal_mode = DELETE')
  } finally {
    database.close()
  }
}

type Value = string | number | bigint | Uint8Array | null

export class ReferenceDatabase {
  constructor(
    readonly path: string,
    readonly connection: Connection,
    readonly drop: () => void = () => {},
  ) {}

  all<Row>(text: string, ...values: Value[]): Row[] {
    return this.#words(() => this.connection.query(text).all(...values) as Row[])
  }

  get<Row>(text: string, ...values: Value[]): Row | null {
    return this.#words(() => this.connection.query(text).get(...values) as Row | null)
  }

  /** Throws `OperatorError` unless the last migration is one that this version knows. */
  requireSchema(schema: ReferenceSchema): void {
    const { oldest, newest } = knownSchemas[schema]
    const row = this.get<{ name: string | null }>('SELECT max(name) AS name FROM kysely_migration')
    const number = Number(row?.name ?? Number.NaN)
    if (number > newest)
      throw new OperatorError(
        `${this.path} is of a newer version of the reference (migration ${row!.name}, and this version reads up to ${newest}): upgrade Holdfast`,
      )
    if (!(number >= oldest))
      throw new OperatorError(
        `${this.path} is of an older version of the reference (migration ${row?.name ?? 'none'}, and this version reads from ${oldest}): upgrade the reference and start it once`,
      )
  }

  close(): void {
    this.connection.close()
    this.drop()
  }

  #words<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      const { message, code } = error as { message?: string; code?: string }
      if (!code?.startsWith('SQLITE_')) throw error
      throw new OperatorError(`${this.path} is damaged (${message}): copy it again, or restore a backup of it`, {
        cause: error,
      })
    }
  }
}
