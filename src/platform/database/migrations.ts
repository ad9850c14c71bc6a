/**
 * The schema's history: numbered SQL files, embedded in the binary, each applied once and in one transaction.
 *
 * A file is never edited once released. An older binary refuses a database that a newer one has migrated.
 */
import type { Millis } from '../../protocol/identifiers.ts'
import { sql, Sql, type Database } from './database.ts'
import { OperatorError } from '../../base/operator-error.ts'

export interface Migration {
  number: number
  name: string
  /** Statements, each ended by a semicolon at the end of a line. */
  text: string
  /** What PostgreSQL runs instead, if the statements are outside the shared subset. */
  postgres?: string
}

export class SchemaTooNew extends OperatorError {}

/**
 * Bring the schema up to date. Calls `beforeFirst` first if the database has no schema yet. Returns the names of the
 * migrations that were applied. Throws `SchemaTooNew` if a newer version has migrated the database.
 */
export async function migrate(
  db: Database,
  migrations: readonly Migration[],
  now: Millis,
  beforeFirst: () => void = () => {},
  { isCopyTarget = false } = {},
): Promise<string[]> {
  const { dialect } = db
  await db.run(historyTable(db))
  const applied = new Set((await db.all<{ number: number }>(sql`SELECT number FROM schema_migration`)).map((row) => row.number))
  if (applied.delete(COPY_MARK) && !isCopyTarget)
    throw new OperatorError('a copy to this database has not ended: run "holdfast copy" again, which begins it anew')
  if (applied.size === 0) beforeFirst()
  const known = new Set(migrations.map((migration) => migration.number))
  if (known.size < migrations.length) throw new Error('two migrations have the same number')
  const foreign = [...applied].filter((number) => !known.has(number)).sort((a, b) => a - b)
  if (foreign.length > 0)
    throw new SchemaTooNew(
      `the database has migration ${foreign.join(', ')}, which this version does not know; start the newer version that wrote it`,
    )

  const missing = migrations.filter((migration) => !applied.has(migration.number)).sort((a, b) => a.number - b.number)
  for (const { number, name, text, postgres = text } of missing) {
    await db.transaction(async (tx) => {
      for (const statement of statements(dialect.name === 'postgres' ? postgres : text))
        await tx.run(new Sql([dialect.definition(statement)], []))
      await tx.run(sql`INSERT INTO schema_migration (number, name, applied_at) VALUES (${number}, ${name}, ${now})`)
    })
  }
  return missing.map((migration) => migration.name)
}

const historyTable = ({ dialect }: Pick<Database, 'dialect'>): Sql =>
  new Sql(
    [
      dialect.definition(
        'CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)',
      ),
    ],
    [],
  )

/** Number of no migration: versions that do not know it take it for that of a newer version, and refuse the database too. */
const COPY_MARK = 999_999_999

/** Mark an empty database as the target of a copy: no server starts with it until `unmarkCopy`. */
export async function markCopy(db: Database, now: Millis): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.run(historyTable(db))
    await tx.run(sql`INSERT INTO schema_migration (number, name, applied_at) VALUES (${COPY_MARK}, 'copy-under-way', ${now})`)
  })
}

export async function unmarkCopy(db: Database): Promise<void> {
  await db.run(sql`DELETE FROM schema_migration WHERE number = ${COPY_MARK}`)
}

/** Whether the database is the target of a copy that has not ended. It must have the table of migrations. */
export async function isCopyMarked(db: Database): Promise<boolean> {
  return (await db.get(sql`SELECT 1 FROM schema_migration WHERE number = ${COPY_MARK}`)) !== null
}

function statements(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
