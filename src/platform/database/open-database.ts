/** From `database_url` to a database: a path, or a `sqlite:` URL of one, or a `postgres://` URL. */
import type { Database } from './database.ts'
import { isPostgresUrl, openPostgres } from './postgres.ts'
import { existingSqlitePath, openSqlite, sqlitePath } from './sqlite.ts'

export interface OpenOptions {
  databaseUrl: string
  /** Hold transactions to their contract, for tests. */
  strict?: boolean
  /** On a database server: be the only server on it. A file is in a directory that has a lock. */
  exclusive?: boolean
}

/** A file that is missing is made. Throws `OperatorError` when the database cannot be used. */
export async function openDatabase({ databaseUrl, strict, exclusive }: OpenOptions): Promise<Database> {
  return isPostgresUrl(databaseUrl) ? openPostgres({ url: databaseUrl, strict, exclusive }) : openSqlite({ path: sqlitePath(databaseUrl), strict })
}

/** Throws `OperatorError` where opening would make a database: commands would work on nothing, and find it well. */
export function requireDatabase(databaseUrl: string): void {
  if (!isPostgresUrl(databaseUrl)) existingSqlitePath(databaseUrl)
}
