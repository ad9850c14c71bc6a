/**
 * The schema's history: numbered SQL files, embedded in the binary, each applied once and in one transaction. A new
 * SQLite database gets all of them in a single transaction.
 *
 * A file is never edited once released. An older binary refuses a database that a newer one has migrated, unless
 * servers share the database and are upgraded one after another: then it runs if the newer migrations only added
 * something.
 */
import type { Millis } from '../../protocol/identifiers.ts'
import { sql, Sql, type Database, type Dialect, type Tx } from './database.ts'
import { sqlName, tablesOf } from './catalog.ts'
import { OperatorError } from '../../base/operator-error.ts'

export interface Migration {
  number: number
  name: string
  /** Statements, each ended by a semicolon at the end of a line. */
  text: string
  /** What PostgreSQL runs instead, if the statements are outside the shared subset. */
  postgres?: string
  /**
   * For a migration that takes something away: the number of the migration whose version stopped using that. A server
   * must know it to use the schema after this one. The column `needs` exists since migration 115.
   */
  needs?: number
}

export class SchemaTooNew extends OperatorError {}

export interface MigrateOptions {
  /** Called first if the database has no schema yet. */
  beforeFirst?: () => void
  /** Servers of the next version may use the database too, and have migrated it already. */
  isShared?: boolean
  /** Open the target of an unfinished copy. */
  isCopyTarget?: boolean
  /** Name of the database, for messages. */
  name?: string
}

/**
 * Bring the schema up to date; several servers may do it at once. Returns the names of the migrations that were
 * applied.
 *
 * Throws `OperatorError` if running servers could not use the schema afterwards, and `SchemaTooNew` if a newer version
 * has migrated the database. A shared database may have migrations that this version does not know, as long as none of
 * them `needs` another unknown one.
 */
export async function migrate(
  db: Database,
  migrations: readonly Migration[],
  now: Millis,
  { beforeFirst, isShared = false, isCopyTarget = false, name = 'of this server' }: MigrateOptions = {},
): Promise<string[]> {
  const { dialect } = db
  await db.transaction((tx) => tx.run(historyTable(db)))
  // All columns, because the newest one was added by a migration.
  const rows = await db.all<Applied>(sql`SELECT * FROM schema_migration`)
  const applied = rows.filter(({ number }) => number !== COPY_MARK)
  if (applied.length < rows.length && !isCopyTarget)
    throw new OperatorError(
      `the database ${name} holds an unfinished copy: run "holdfast copy" or "holdfast restore" again, as before, to restart it`,
    )
  if (applied.length === 0) beforeFirst?.()
  refuseNewer(applied, migrations, isShared)

  const done = new Set(applied.map(({ number }) => number))
  const pending = migrations.filter(({ number }) => !done.has(number)).toSorted((a, b) => a.number - b.number)
  if (isShared) await refuseSkipping(db, pending)
  // A new SQLite database waits for the disk once, not once for each migration. On PostgreSQL, another server that
  // starts too would wait for all of them, and give up.
  const isNew = applied.length === 0 && dialect.name === 'sqlite'
  const steps = isNew ? [pending] : pending.map((migration) => [migration])
  const names: string[] = []
  for (const step of steps) names.push(...(await db.transaction((tx) => applyAll(tx, dialect, step, now))))
  return names
}

async function applyAll(tx: Tx, dialect: Dialect, step: readonly Migration[], now: Millis): Promise<string[]> {
  const names: string[] = []
  for (const migration of step) if (await apply(tx, dialect, migration, now)) names.push(migration.name)
  return names
}

interface Applied {
  number: number
  /** Missing before the migration that adds it. */
  needs?: number
}

/** Most numbers of migrations that a message lists. */
const MAX_LISTED = 5

/** Numbers of migrations, in words. */
export const migrationsIn = (numbers: readonly number[]): string =>
  `migration ${numbers
    .toSorted((a, b) => a - b)
    .slice(0, MAX_LISTED)
    .join(', ')}${numbers.length > MAX_LISTED ? ' and others' : ''}`

function refuseNewer(applied: readonly Applied[], migrations: readonly Migration[], isShared: boolean): void {
  const known = new Set(migrations.map(({ number }) => number))
  if (known.size < migrations.length) throw new Error('two migrations have the same number')
  const unusable = ({ number, needs = 0 }: Applied) =>
    !known.has(number) && (!isShared || (needs > 0 && !known.has(needs)))
  const foreign = applied.filter(unusable).map(({ number }) => number)
  if (foreign.length > 0)
    throw new SchemaTooNew(
      `the database has ${migrationsIn(foreign)}, which this version does not know: start the newer version that wrote it, or return to a backup that was made before that version started (docs/upgrade.md, "Downgrade")`,
    )
}

/**
 * Running servers know none of the pending migrations. They could not use the schema if one of these took away what
 * another one of them stopped using: a version in between would be skipped.
 */
async function refuseSkipping(db: Database, pending: readonly Migration[]): Promise<void> {
  const numbers = new Set(pending.map(({ number }) => number))
  const skips = pending.some(({ needs }) => needs !== undefined && numbers.has(needs))
  if (!skips || db.cluster === null || !(await tablesOf(db)).has('node')) return
  const running = (await db.cluster.nodes()).filter(({ isAlive }) => isAlive)
  if (running.length > 0)
    throw new OperatorError(
      `${running.map(({ name, version }) => `${name} (version ${version})`).join(', ')} could not use the database after this upgrade: stop all servers first, or upgrade them to the versions in between`,
    )
}

/** Returns false if another server has applied it meanwhile. */
async function apply(
  tx: Tx,
  dialect: Dialect,
  { number, name, text, postgres = text, needs }: Migration,
  now: Millis,
): Promise<boolean> {
  if ((await tx.get(sql`SELECT 1 FROM schema_migration WHERE number = ${number}`)) !== null) return false
  for (const statement of dialect.beforeMigration) await tx.run(plain(statement))
  for (const statement of statementsIn(dialect.name === 'postgres' ? postgres : text))
    await tx.run(plain(dialect.definition(statement)))
  await tx.run(sql`INSERT INTO schema_migration (number, name, applied_at) VALUES (${number}, ${name}, ${now})`)
  if (needs !== undefined) await tx.run(sql`UPDATE schema_migration SET needs = ${needs} WHERE number = ${number}`)
  return true
}

const plain = (text: string) => new Sql([text], [])

const historyTable = ({ dialect }: Pick<Database, 'dialect'>): Sql =>
  plain(
    dialect.definition(
      'CREATE TABLE IF NOT EXISTS schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)',
    ),
  )

/** Whether a server has ever used the database. Changes nothing. */
export async function hasHistory(db: Database, tables: ReadonlyMap<string, unknown>): Promise<boolean> {
  return tables.has('schema_migration') && (await db.get(sql`SELECT 1 FROM schema_migration LIMIT 1`)) !== null
}

/** Returns the numbers of the migrations that were applied to a database with a history. */
export const appliedNumbers = async (db: Pick<Database, 'all'>): Promise<Set<number>> =>
  new Set((await db.all<Applied>(sql`SELECT number FROM schema_migration`)).map(({ number }) => number))

/**
 * A number that no migration has. Versions that do not know this mark take it for a migration of a newer version, and
 * refuse the database too.
 */
const COPY_MARK = 999_999_999

/**
 * Make a database the empty target of a copy: no server starts with it until `unmarkCopy`. Deletes all tables, which an
 * interrupted copy has left. The mark never goes without them: a kill in between would leave a database that no copy
 * takes for its own.
 */
export async function markCopy(db: Database, now: Millis): Promise<void> {
  const tables = await tablesOf(db)
  await db.transaction(async (tx) => {
    for (const name of tables.keys()) await tx.run(sql`DROP TABLE ${sqlName(name)}`)
    await tx.run(historyTable(db))
    await tx.run(
      sql`INSERT INTO schema_migration (number, name, applied_at) VALUES (${COPY_MARK}, 'copy-under-way', ${now})`,
    )
  })
}

export async function unmarkCopy(db: Database): Promise<void> {
  await db.run(sql`DELETE FROM schema_migration WHERE number = ${COPY_MARK}`)
}

/** Whether the database is the target of an unfinished copy. It must have the table of migrations. */
export async function isCopyMarked(db: Database): Promise<boolean> {
  return (await db.get(sql`SELECT 1 FROM schema_migration WHERE number = ${COPY_MARK}`)) !== null
}

/** The statements of a migration, without its comments. */
export function statementsIn(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('--'))
    .join('\n')
    .split(/;\s*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
