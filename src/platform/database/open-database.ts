/** Opens the database that `database_url` names: a path, a `sqlite:` URL or a `postgres://` URL. */
import type { Database } from './database.ts'
import type { Access } from './postgres-connection.ts'
import { isPostgresUrl, openPostgres } from './postgres.ts'
import { existingSqlitePath, openSqlite, sqlitePath } from './sqlite.ts'

export interface OpenOptions {
  databaseUrl: string
  /** Hold transactions to their contract, for tests. */
  strict?: boolean
  /** On PostgreSQL: who else may use the database. A SQLite file is protected by the lock of its directory. */
  access?: Access
}

/** Creates a missing file. Throws `OperatorError` if the database cannot be used. */
export async function openDatabase({ databaseUrl, strict, access }: OpenOptions): Promise<Database> {
  return isPostgresUrl(databaseUrl)
    ? openPostgres({ url: databaseUrl, strict, access })
    : openSqlite({ path: sqlitePath(databaseUrl), strict })
}

/** Throws `OperatorError` if the file does not exist. Opening would create it, and a command would report an empty database as sound. */
export function requireDatabase(databaseUrl: string): void {
  if (!isPostgresUrl(databaseUrl)) existingSqlitePath(databaseUrl)
}
