/** Opens the database that `database_url` names: a path, a `sqlite:` URL or a `postgres://` URL. */
import type { Config } from '../configuration/config.ts'
import { inWords, OperatorError } from '../../base/operator-error.ts'
import type { Database } from './database.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { explainDatabase } from './database-words.ts'
import type { Access } from './postgres-connection.ts'
import { isPostgresUrl } from './database-url.ts'
import { existingSqlitePath, openSqlite, sqlitePath } from './sqlite.ts'

export interface OpenOptions {
  databaseUrl: string
  /** Hold transactions to their contract, for tests. */
  strict?: boolean
  /** On PostgreSQL: who else may use the database. A SQLite file is protected by the lock of its directory. */
  access?: Access
  /** As in `PostgresOptions`. */
  nodeName?: string | null
  /** As in `PostgresOptions`. */
  pace?: number
  /** As in `PostgresOptions`. */
  machineNow?: () => Millis
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
    const found = explainDatabase(error, databaseUrl)
    throw found === null ? error : inWords(found, error)
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
