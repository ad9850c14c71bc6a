/**
 * Checks what PostgreSQL does with its write-ahead log beyond its own disk: continuous archiving, without which it can
 * only be restored to a backup, and synchronous standbys, without which a lost machine loses its latest commits.
 *
 * An archive that another program fetches, as pg_receivewal does, cannot be seen from here.
 * https://www.postgresql.org/docs/current/continuous-archiving.html
 */
import { withDatabase } from '../../../platform/database/open-database.ts'
import { isPostgresUrl } from '../../../platform/database/database-url.ts'
import { sql, sqlList, type Database } from '../../../platform/database/database.ts'
import { fault, ok, warning, type Check, type Finding, type Patient } from './finding.ts'

export const logArchiveCheck: Check = { name: 'log-archive', needs: 'database', run: checkLogArchive }

/** Values of `synchronous_commit` with which a COMMIT waits for no standby. */
const waitsForNone: ReadonlySet<string | undefined> = new Set(['off', 'local'])

async function checkLogArchive({ config }: Patient): Promise<Finding> {
  if (!isPostgresUrl(config.databaseUrl)) return ok('only PostgreSQL archives its log')
  return withDatabase({ databaseUrl: config.databaseUrl, access: 'onlooker' }, async (db) => {
    const settings = await settingsOf(db)
    if (settings === null) return untold()
    const standbys = standbyWords(settings)
    if (settings['archive_mode'] === 'off')
      return config.backup.destination === null
        ? warning(
            `archive_mode is off, so PostgreSQL cannot be restored to a point in time; ${standbys}`,
            'set archive_mode and archive_command in postgresql.conf, or backup.destination',
          )
        : ok(`archive_mode is off: a restore returns to the newest backup; ${standbys}`)
    // Versions before 15 have no archive_library.
    if (!settings['archive_command'] && !settings['archive_library'])
      return fault(
        `archive_mode is ${settings['archive_mode']}, but archive_command is empty: the log grows until the disk is full`,
        'set archive_command in postgresql.conf, and reload PostgreSQL',
      )
    const failed = await readable(() => failedFile(db))
    if (failed === denied) return untold()
    return failed === null
      ? ok(`archive_mode is ${settings['archive_mode']}; ${standbys}`)
      : fault(
          `PostgreSQL fails to archive its log, at ${failed}: it grows until the disk is full`,
          "read PostgreSQL's own log for what archive_command reports",
        )
  })
}

const untold = (): Finding =>
  warning(
    'cannot tell whether PostgreSQL archives its log: the role of database.url may not read its settings and statistics',
    'grant it pg_monitor, and SELECT on pg_settings and pg_stat_archiver if that was revoked',
  )

const denied = Symbol('denied')
const INSUFFICIENT_PRIVILEGE = '42501'

async function readable<T>(read: () => Promise<T>): Promise<T | typeof denied> {
  try {
    return await read()
  } catch (error) {
    if ((error as { errno?: unknown }).errno === INSUFFICIENT_PRIVILEGE) return denied
    throw error
  }
}

const needed = ['archive_mode', 'archive_command', 'synchronous_standby_names', 'synchronous_commit'] as const

/** Returns null if the role may not read the settings: PostgreSQL omits settings that only other roles may read. */
async function settingsOf(db: Database): Promise<Partial<Record<string, string>> | null> {
  const rows = await readable(() =>
    db.all<{ name: string; setting: string }>(sql`
      SELECT name, setting FROM pg_settings WHERE name IN ${sqlList([...needed, 'archive_library'])}`),
  )
  if (rows === denied) return null
  const settings = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  return needed.every((name) => name in settings) ? settings : null
}

function standbyWords({
  synchronous_standby_names: names,
  synchronous_commit: commit,
}: Partial<Record<string, string>>): string {
  if (!names) return 'synchronous_standby_names is empty, so commits wait for no standby'
  return waitsForNone.has(commit)
    ? `synchronous_commit is ${commit}, so commits wait for no standby`
    : `commits wait for ${names}`
}

/** Returns the WAL file that the archive has refused, unless it has taken one since. */
async function failedFile(db: Database): Promise<string | null> {
  const row = await db.get<{ file: string }>(sql`
    SELECT last_failed_wal AS file FROM pg_stat_archiver
    WHERE last_failed_time > COALESCE(last_archived_time, '-infinity')`)
  return row?.file ?? null
}
