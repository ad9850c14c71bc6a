/** Opens the database that `database_url` names: a path, a `sqlite:` URL or a `postgres://` URL. */
import type { Config } from '../configuration/config.ts'
import { inWordsIfAny, OperatorError } from '../../base/operator-error.ts'
import type { Database } from './database.ts'
import { explainDatabase } from './database-words.ts'
import { isPostgresUrl } from './database-url.ts'
import type { PostgresOptions } from './postgres.ts'
import { existingSqlitePath, openSqlite, sqlitePath } from './sqlite.ts'

/** A SQLite file is protected by the lock of its directory, so only `strict` matters to it. */
export interface OpenOptions extends Omit<PostgresOptions, 'url'> {
  databaseUrl: string
}

/** Creates a missing file. Throws `OperatorError` if the database cannot be used. */
export async function openDatabase({ databaseUrl, strict, ...options }: OpenOptions): Promise<Database> {
  if (!isPostgresUrl(databaseUrl)) return openSqlite({ path: sqlitePath(databaseUrl), strict })
  if (!URL.canParse(databaseUrl))
    throw new OperatorError(
      'the address of the database is malformed: its form is postgres://user:password@host:port/database',
    )
  // Imported here, so that servers on SQLite do not load it.
  const { openPostgres } = await import('./postgres.ts')
  try {
    return await openPostgres({ url: databaseUrl, strict, ...options })
  } catch (error) {
    throw inWordsIfAny(explainDatabase(error, databaseUrl), error)
  }
}

/** Open a database, as `openDatabase` does, for as long as `work` runs. */
export async function withDatabase<T>(options: OpenOptions, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase(options)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/**
 * Whether several servers may use the database: it is on PostgreSQL, and they can read each other's keys and blobs. A
 * server that may not share it refuses to run beside another one.
 */
export const sharesDatabase = ({
  databaseUrl,
  signingKeyMasterKey,
  blobs,
}: Pick<Config, 'databaseUrl' | 'signingKeyMasterKey' | 'blobs'>): boolean =>
  isPostgresUrl(databaseUrl) && signingKeyMasterKey !== null && blobs.store === 's3'

/**
 * Throws `OperatorError` if the file does not exist. Opening would create it, and a command would report an empty
 * database as sound.
 */
export function requireDatabase(databaseUrl: string): void {
  if (!isPostgresUrl(databaseUrl)) existingSqlitePath(databaseUrl)
}
