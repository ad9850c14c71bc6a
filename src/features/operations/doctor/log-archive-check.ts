/**
 * Checks what PostgreSQL does with its write-ahead log beyond its own disk: continuous archiving, without which it can
 * only be restored to a backup, and synchronous standbys, without which a lost machine loses its latest commits.
 *
 * An archive that another program fetches, as pg_receivewal does, cannot be seen from here.
 * https://www.postgresql.org/docs/current/continuous-archiving.html
 */
import { openDatabase } from '../../../platform/database/open-database.ts'
import { isPostgresUrl } from '../../../platform/database/database-url.ts'
import { sql, type Database } from '../../../platform/database/database.ts'
import { fault, ok, warning, type Check, type Finding, type Patient } from './finding.ts'

export const logArchiveCheck: Check = { name: 'log-archive', needs: 'database', run: checkLogArchive }

/** Values of `synchronous_commit` with which COMMIT waits for no standby. */
const waitsForNone: ReadonlySet<string | undefined> = new Set(['off', 'local'])

async function checkLogArchive({ config }: Patient): Promise<Finding> {
  if (!isPostgresUrl(config.databaseUrl)) return ok('only PostgreSQL archives its log')
  const db = await openDatabase({ databaseUrl: config.databaseUrl, access: 'onlooker' })
  try {
    const settings = await settingsOf(db)
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
    const failed = await failedFile(db)
    return failed === null
      ? ok(`archive_mode is ${settings['archive_mode']}; ${standbys}`)
      : fault(
          `PostgreSQL fails to archive its log, at ${failed}: it grows until the disk is full`,
          "read PostgreSQL's own log for what archive_command reports",
        )
  } finally {
    await db.close()
  }
}

async function settingsOf(db: Database): Promise<Partial<Record<string, string>>> {
  const rows = await db.all<{ name: string; setting: string }>(sql`
    SELECT name, setting FROM pg_settings
    WHERE name IN ('archive_mode', 'archive_command', 'archive_library', 'synchronous_standby_names',
      'synchronous_commit')`)
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
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

/** The file of the log that the archive refused last, unless it has taken one since. */
async function failedFile(db: Database): Promise<string | null> {
  const row = await db.get<{ file: string }>(sql`
    SELECT last_failed_wal AS file FROM pg_stat_archiver
    WHERE last_failed_time > COALESCE(last_archived_time, '-infinity')`)
  return row?.file ?? null
}
