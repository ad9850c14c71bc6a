/** Checks of the data: disk space, file owners and modes, the database, the master key and the backups. */
import { closeSync, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Database as Connection } from 'bun:sqlite'
import { HOUR_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Secret } from '../../../base/secret.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import {
  blobsFolder,
  databaseFiles,
  exposedPaths,
  ownersOf,
  sharedFolderOf,
  shareFault,
  tracesOf,
} from '../../../platform/files/data-directory.ts'
import { sql, type Sql, type SqlValue } from '../../../platform/database/database.ts'
import { freeBytesOf } from '../../../platform/files/free-space.ts'
import { openNameless, writeAt } from '../../../platform/files/nameless-file.ts'
import { explainDatabase } from '../../../platform/database/database-words.ts'
import { withDatabase } from '../../../platform/database/open-database.ts'
import { isPostgresUrl, withoutPassword } from '../../../platform/database/database-url.ts'
import { isDatabaseThere, sqlitePath } from '../../../platform/database/sqlite.ts'
import { fileFault, explain, userName } from '../../../platform/files/system-faults.ts'
import { masterKeyFault, secretsQuery } from '../../../platform/secrets/vault.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { createLog } from '../../../platform/running/log.ts'
import { openBlobBucket } from '../../data/blobs/blobs.ts'
import {
  lastRehearsal,
  leaseSeenFrom,
  newestSnapshots,
  openArchive,
  readManifest,
  requirePassphrase,
  sealOf,
  snapshotName,
} from '../backup/backup.ts'
import {
  fault,
  followerHere,
  hasTable,
  ok,
  skipped,
  warning,
  wordsOf,
  type Check,
  type Finding,
  type Patient,
} from './finding.ts'

const DISK_FAULT_BYTES = 256 * 1024 ** 2
const GIB = 1024 ** 3
/**
 * A backup is late after this many intervals: it takes time, and after a restart the first one waits for a whole
 * interval.
 */
const LATE_INTERVALS = 2
/** Age at which to warn if no interval is configured: something other than the server then schedules the backups. */
const UNSCHEDULED_WARNING_HOURS = 7 * 24

export const dataChecks: readonly Check[] = [
  { name: 'disk', run: checkDisk },
  { name: 'network-share', run: checkShare },
  { name: 'owners', run: checkOwners },
  { name: 'privacy', run: checkPrivacy },
  { name: 'database', run: checkDatabase },
  { name: 'master-key', needs: 'database', run: checkMasterKey },
  { name: 'repositories', needs: 'database', run: checkRepositories },
  { name: 'blobs', run: checkBlobs },
  { name: 'backups', run: checkBackups },
  { name: 'passphrase', needs: 'backups', run: checkPassphrase },
  { name: 'continuous', run: checkContinuousPassphrase },
  { name: 'rehearsal', run: checkRehearsal },
]

async function checkDisk({ config }: Patient): Promise<Finding> {
  const { dataDir } = config
  try {
    statSync(dataDir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      return fault(
        `${dataDir} is not accessible to this user`,
        'run the doctor as the user that the server runs as, or as root',
      )
    return fault(`${dataDir} does not exist`, 'create it, or set data_dir to the folder that holds the data')
  }
  const unwritable = writeFault(config)
  if (unwritable !== null) return unwritable
  const free = await freeBytesOf(dataDir)
  const text = `${(free / GIB).toFixed(1)} GiB free at ${dataDir}`
  if (free < DISK_FAULT_BYTES) return fault(text, 'free some space: writes fail when the disk is full')
  return free < config.alerts.diskFreeBytes
    ? warning(text, 'free some space before uploads and the event log fill the disk')
    : ok(text)
}

/**
 * Test each folder by writing to it: nothing else shows that it is writable. The nameless test file leaves nothing
 * behind.
 */
function writeFault({ dataDir, databaseUrl }: Config): Finding | null {
  const folders = [dataDir, ...databaseFiles(databaseUrl).map((path) => dirname(path)), blobsFolder(dataDir)]
  for (const folder of folders.filter((each) => existsSync(each))) {
    try {
      const file = openNameless(folder)
      try {
        writeAt(file, new Uint8Array(4096), 0)
      } finally {
        closeSync(file)
      }
    } catch (error) {
      const { what, remedy } = explain(error, { path: folder, folder: dataDir }) ?? {
        what: `${folder} is not writable: ${wordsOf(error)}`,
        remedy: 'make sure that the disk is healthy and mounted for writing',
      }
      return fault(what, remedy)
    }
  }
  return null
}

async function checkShare({ config }: Patient): Promise<Finding> {
  const share = sharedFolderOf(config)
  if (share === null) return ok('the data is not on a network share')
  const { what, remedy } = shareFault(share)
  return config.networkShareAllowed
    ? warning(what, 'move the data to a disk of this machine, and keep good backups until then')
    : fault(what, remedy)
}

/**
 * A command that ran as root leaves files that the server cannot write. The server fails only when it has to write
 * them.
 */
async function checkOwners({ config }: Patient): Promise<Finding> {
  const owners = ownersOf(config)
  if (owners.size < 2) return ok('all data belongs to one user')
  const examples = [...owners].map(([owner, path]) => `${path} to ${userName(owner)}`)
  return fault(
    `the data belongs to several users: ${examples.join(', ')}`,
    `give all of it to the user that the server runs as ("chown -R … ${config.dataDir}"), and run commands as that user`,
  )
}

/** At start, the server restricts the modes of its own files. It cannot restrict files that belong to other users. */
async function checkPrivacy({ config, settings = [] }: Patient): Promise<Finding> {
  // The group of a configuration may be that of the server.
  const open = settings.filter((path) => isOpenToAll(path)).map((path) => ({ path, mode: 'o=' }))
  const exposed = [...exposedPaths(config).map(({ path, mode }) => ({ path, mode: mode.toString(8) })), ...open]
  if (exposed.length === 0) return ok('no other user of this machine can access the data')
  const remedy = exposed.map(({ path, mode }) => `chmod ${mode} ${path}`).join('; ')
  return warning(`other users of this machine can access ${exposed.map(({ path }) => path).join(', ')}`, remedy)
}

/** A file in a folder that this user may not enter counts as absent. */
const isOpenToAll = (path: string): boolean =>
  process.getuid !== undefined && existsSync(path) && (statSync(path).mode & 0o007) !== 0

async function checkDatabase(patient: Patient): Promise<Finding> {
  const { config } = patient
  if (isPostgresUrl(config.databaseUrl)) {
    return withDatabase(config, async () => ok(`${withoutPassword(config.databaseUrl)} answers`)).catch(
      (error: unknown) => {
        const found = explainDatabase(error, config.databaseUrl)
        return fault(found?.what ?? wordsOf(error), found?.remedy ?? 'make sure that database_url is correct')
      },
    )
  }
  const path = sqlitePath(config.databaseUrl)
  if (!isDatabaseThere(path)) {
    const follower = await followerHere(patient)
    if (follower !== null) return skipped(follower.reason)
    const traces = tracesOf(config)
    if (traces.length > 0)
      return fault(
        `${path} is missing or empty, but a server has used this folder (${traces.join(', ')})`,
        'restore a backup with "holdfast restore"',
      )
    return warning(`no database at ${path} yet`, 'start the server once: it creates the database')
  }
  try {
    const row = reading(path, (database) => database.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get())
    return row?.quick_check === 'ok'
      ? ok('intact')
      : fault(`damaged: ${row?.quick_check}`, 'stop the server, keep a copy, and restore a backup ("holdfast restore")')
  } catch (error) {
    const { what, remedy } = explain(error, { path, folder: config.dataDir }) ?? {
      what: wordsOf(error),
      remedy: 'read the message, and restore a backup ("holdfast restore") if the file is damaged',
    }
    return fault(what, remedy)
  }
}

function reading<T>(path: string, work: (database: Connection) => T): T {
  const database = new Connection(path, { readonly: true })
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** Returns the rows of a query; none if the database does not have the table yet. */
async function rowsIn<Row>(config: Config, table: string, query: Sql): Promise<Row[]> {
  if (isPostgresUrl(config.databaseUrl))
    return withDatabase(config, async (db) => ((await hasTable(db, table)) ? db.all<Row>(query) : []))
  const path = sqlitePath(config.databaseUrl)
  if (!isDatabaseThere(path)) return []
  return reading(path, (database) =>
    database.query('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) === null
      ? []
      : database.query<Row, SqlValue[]>(query.texts.join('?')).all(...query.values),
  )
}

async function checkMasterKey({ config }: Patient): Promise<Finding> {
  const secrets = (await rowsIn<{ wrapped: string }>(config, 'server_secret', secretsQuery)).map(
    ({ wrapped }) => wrapped,
  )
  const found = masterKeyFault(config, secrets)
  if (found !== null) return fault(found.what, found.remedy)
  if (secrets.length === 0) return ok('nothing is encrypted yet')
  return ok(
    `${config.signingKeyMasterKey === null ? 'the key in master.key' : 'the configured key'} decrypts the secrets in the database`,
  )
}

interface Findings {
  count: number
  did: string | null
  fault: string | null
  completedAt: number | null
}

/** Counts the damaged repositories, and names the oldest fault as an example. */
const findings = sql`
  SELECT (SELECT count(DISTINCT did) FROM integrity_finding) AS count, first.did AS did, first.fault AS fault,
    (SELECT completed_at FROM integrity_round) AS "completedAt"
  FROM (SELECT 1 AS one) AS always LEFT JOIN (SELECT did, fault FROM integrity_finding ORDER BY found_at, did, fault LIMIT 1) AS first ON 1 = 1`

/** Reports what the running check of the server has found. Other checks tell whether that server runs. */
async function checkRepositories({ config }: Patient): Promise<Finding> {
  if (!isPostgresUrl(config.databaseUrl) && !isDatabaseThere(sqlitePath(config.databaseUrl)))
    return ok('there are no repositories yet')
  const [found] = await rowsIn<Findings>(config, 'integrity_finding', findings)
  if (found === undefined) return ok('no repository has been checked yet')
  if (found.count > 0)
    return fault(
      `${found.count} damaged repositories; of ${found.did}, ${found.fault}`,
      'keep a copy of the database, list all with "holdfast integrity", and see docs/repair.md',
    )
  if (config.integrity.roundSecs === 0)
    return warning('repositories are not checked while the server runs', 'set integrity.round_secs')
  return ok(
    found.completedAt === null
      ? 'no damage was found so far; the first round through all repositories is under way'
      : `no damage was found; the last round through all ended on ${new Date(found.completedAt).toISOString().slice(0, 10)}`,
  )
}

const silent = createLog({ format: 'text', level: 'error', now: Date.now, write: () => {} })

/** Try what uploads need, as the server does when it starts. */
async function checkBlobs({ config }: Patient): Promise<Finding> {
  const bucket = openBlobBucket(config, { clock: systemClock, log: silent })
  if (bucket === null) return ok('blobs are in the data directory')
  try {
    await bucket.probe()
    return ok(`${bucket.place} can be written, listed and deleted from`)
  } catch (error) {
    return fault(
      `${bucket.place} is unavailable: ${wordsOf((error as Error).cause ?? error)}`,
      'make sure that the store is running, and that blobs.s3_* are correct; uploads and downloads fail until then',
    )
  }
}

async function checkBackups(patient: Patient): Promise<Finding> {
  const { backup, blobs, databaseUrl } = patient.config
  if (backup.destination === null && isPostgresUrl(databaseUrl))
    return warning(
      "no backups are configured, and those of PostgreSQL's own tools are not checked here",
      `set backup.destination and backup.interval_secs, or make sure that the others run, and that ${blobs.store === 's3' ? 'versioning is on for the blob bucket' : 'the data directory is copied after each of them'}`,
    )
  if (backup.destination === null)
    return warning(
      'no backups are configured',
      'set backup.destination and backup.interval_secs, or run "holdfast backup" from a timer of your own',
    )
  try {
    const finding = await examineArchive(patient, backup.destination)
    if (finding.state !== 'ok' || backup.destination.startsWith('s3://') || !(await hasSeveralNodes(patient)))
      return finding
    return warning(
      `${finding.text}, in a folder of this machine, although several servers make backups in turn`,
      'let backup.destination be a bucket, or a folder that all of them share',
    )
  } catch (error) {
    const { what, remedy } = fileFault(error) ?? { what: wordsOf(error), remedy: 'fix what the message says' }
    return fault(`backups to ${backup.destination} fail: ${what}`, `${remedy}, then try "holdfast backup"`)
  }
}

/** Whether several servers use the database now. Any of them may make the next scheduled backup. */
async function hasSeveralNodes({ config }: Patient): Promise<boolean> {
  if (!isPostgresUrl(config.databaseUrl)) return false
  const nodes = await withDatabase(config, (db) => db.cluster!.nodes())
  return nodes.filter(({ isAlive }) => isAlive).length > 1
}

/** Whether a backup may have been made there. Throws if a folder may be there that its user cannot look at. */
const hasBegun = (destination: string): boolean =>
  destination.startsWith('s3://') || statSync(destination, { throwIfNoEntry: false }) !== undefined

/** Returns how recent and complete the newest backup is. Throws the error that would prevent a new one. */
async function examineArchive({ config, now }: Patient, destination: string): Promise<Finding> {
  const { intervalSecs } = config.backup
  const none = warning(
    `there is no backup of this server in ${destination} yet`,
    intervalSecs > 0
      ? 'run "holdfast backup", or wait for the first one'
      : 'run "holdfast backup", and set backup.interval_secs',
  )
  // Do not create the folder: only a backup creates it.
  if (!hasBegun(destination)) return none
  const archive = openArchive(destination, config)
  // Ignore snapshots dated in the future, which got their names while the clock was wrong: they would count as the
  // newest for years.
  const latest = snapshotName(new Date(now()))
  const { own: newest } = await newestSnapshots(archive, config, { now: now(), latest })
  if (newest === undefined) return none
  await sealOf(archive, config.backup, new Date(now()))
  if (!destination.startsWith('s3://')) closeSync(openNameless(destination))

  const manifest = await readManifest(archive, newest)
  const ageHours = (now() - Date.parse(manifest!.createdAt)) / HOUR_MILLIS
  const text = `the newest backup is ${ageHours < 1 ? 'less than an hour' : `${Math.floor(ageHours)} hours`} old`
  if (intervalSecs > 0 && ageHours > (LATE_INTERVALS * intervalSecs) / HOUR_SECS)
    return fault(
      `${text}, but one is due every ${(intervalSecs / HOUR_SECS).toFixed(1)} hours`,
      'run "holdfast backup" and read its output; the server logs "sweep failed" with the reason',
    )
  if (intervalSecs === 0 && ageHours > UNSCHEDULED_WARNING_HOURS)
    return warning(text, 'set backup.interval_secs, or find out why the timer that runs "holdfast backup" has stopped')
  if (manifest!.missingBlobs.length > 0)
    return warning(
      `${text}, and it lacks ${manifest!.missingBlobs.length} blobs that were missing or damaged`,
      'run "holdfast sweep blob-scrub" and look at its report',
    )
  return ok(text)
}

/**
 * Try the passphrase, so that a wrong one is found before the next backup or a restore needs it. Its key takes a second
 * and 256 MiB to derive.
 */
async function checkPassphrase({ config, now }: Patient): Promise<Finding> {
  const { destination, continuous, passphrase } = config.backup
  if (destination === null || passphrase === null) return ok('backups have no passphrase')
  if (destination === continuous) return ok('backups have the passphrase of the continuous backup')
  if (!hasBegun(destination)) return ok('there is no backup yet')
  const archive = openArchive(destination, config)
  const { own } = await newestSnapshots(archive, config, { now: now(), latest: snapshotName(new Date(now())) })
  if (own === undefined) return ok('there is no backup yet')
  const found = await passphraseFault(archive, destination, passphrase)
  return found ?? ok('the configured passphrase decrypts the backups')
}

async function checkContinuousPassphrase({ config }: Patient): Promise<Finding> {
  const { continuous, passphrase } = config.backup
  if (continuous === null || passphrase === null) return ok('there is no continuous backup with a passphrase')
  const archive = openArchive(continuous, config)
  if ((await leaseSeenFrom(config, archive)) === null) return ok('no server has used the continuous backup yet')
  const found = await passphraseFault(archive, continuous, passphrase)
  return found ?? ok('the configured passphrase decrypts the continuous backup')
}

/** Returns null if the passphrase decrypts the backups there. */
async function passphraseFault(
  archive: ReturnType<typeof openArchive>,
  place: string,
  passphrase: Secret<string>,
): Promise<Finding | null> {
  try {
    await requirePassphrase(archive, passphrase)
    return null
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return fault(
      `${place}: ${error.message}`,
      'bring back the passphrase with which the first backup there was made, or name an empty destination',
    )
  }
}

/** An operator, or a timer of theirs, rehearses restores. The result is kept beside the backups. */
async function checkRehearsal({ config }: Patient): Promise<Finding> {
  const { destination } = config.backup
  if (destination === null) return ok('there are no backups of which to rehearse a restore')
  const rehearsal = await lastRehearsal(openArchive(destination, config)).catch((error: unknown) => wordsOf(error))
  if (typeof rehearsal === 'string')
    return warning(
      `the last rehearsal cannot be read: ${rehearsal}`,
      'make sure that backup.destination is correct, and run "holdfast restore --rehearse" again',
    )
  if (rehearsal === null)
    return ok('no restore was rehearsed yet: "holdfast restore --rehearse" shows what a backup is worth')
  const day = rehearsal.at.slice(0, 10)
  return rehearsal.ok
    ? ok(`a restore was last rehearsed on ${day}, of the backup ${rehearsal.snapshot}`)
    : fault(
        `the restore of the backup ${rehearsal.snapshot} failed when it was rehearsed on ${day}`,
        'run "holdfast restore --rehearse" again, and read its output',
      )
}
