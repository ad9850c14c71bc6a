/**
 * Copies a database into one file of SQLite, as of one instant, while servers use it.
 *
 * A PostgreSQL database is read table by table in one transaction that sees one state (REPEATABLE READ), as `holdfast
 * copy` does. A backup therefore needs none of PostgreSQL's programs, has the same form for both databases, and can be
 * restored into either. The transaction blocks no writer, but PostgreSQL keeps old versions of rows until it ends.
 */
import { Database as SqliteFile } from 'bun:sqlite'
import { dirname } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import { tablesOf } from '../../../platform/database/catalog.ts'
import { isPostgresUrl, withoutPassword } from '../../../platform/database/database-url.ts'
import { sql, type Database } from '../../../platform/database/database.ts'
import { inDatabaseWords } from '../../../platform/database/database-words.ts'
import { migrations } from '../../../platform/database/embedded-migrations.ts'
import { appliedNumbers, hasHistory, isCopyMarked, migrate } from '../../../platform/database/migrations.ts'
import { withDatabase } from '../../../platform/database/open-database.ts'
import { existingSqlitePath } from '../../../platform/database/sqlite.ts'
import { COMMIT_BYTES, hasRoomFor } from '../../../platform/files/free-space.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { copyTables, SourceFault } from './table-copy.ts'

/** Throws `OperatorError` if there is no server's database, if it cannot be read to the end, or if there is no room. */
export async function copyInstant(databaseUrl: string, target: string, now: Millis): Promise<void> {
  if (!isPostgresUrl(databaseUrl)) return copyFile(existingSqlitePath(databaseUrl), target)
  await withDatabase({ databaseUrl, access: 'onlooker' }, async (source) => {
    try {
      await copyRows(source, target, withoutPassword(databaseUrl), now)
    } catch (error) {
      throw error instanceof SourceFault ? inDatabaseWords(error.cause, databaseUrl) : error
    }
  })
}

export const noRoom = (folder: string): OperatorError =>
  new OperatorError(`${folder} has no room for a copy of the database: free some space`)

async function copyFile(source: string, target: string): Promise<void> {
  const reader = new SqliteFile(source, { readonly: true })
  try {
    const { bytes } = reader
      .query<{ bytes: number }, []>(
        `SELECT (page_count - freelist_count) * page_size AS bytes
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
      )
      .get()!
    const folder = dirname(target)
    if (!(await hasRoomFor(folder, bytes, COMMIT_BYTES))) throw noRoom(folder)
    reader.run(`VACUUM INTO '${target.replaceAll("'", "''")}'`)
  } finally {
    reader.close()
  }
}

async function copyRows(source: Database, target: string, name: string, now: Millis): Promise<void> {
  if (!(await hasHistory(source, await tablesOf(source)))) throw new OperatorError(`no server has used ${name}`)
  if (await isCopyMarked(source)) throw new OperatorError(`${name} holds an unfinished copy or restore`)
  await withDatabase({ databaseUrl: target }, async (file) => {
    // Apply only the migrations that the source has: servers of an earlier version may still use it.
    const applied = await appliedNumbers(source)
    await migrate(
      file,
      migrations.filter(({ number }) => applied.has(number)),
      now,
    )
    const { dialect } = source
    await source.snapshot(({ all, get }) => copyTables({ all, get, dialect }, file, () => {}))
    // SQLite gives these events no numbers. A restore announces every account again, which covers what they said.
    await file.run(sql`DELETE FROM unnumbered_event`)
  })
}
