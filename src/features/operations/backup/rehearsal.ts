/**
 * Rehearses a restore: does everything short of taking effect, in a scratch folder that is deleted afterwards.
 * Announces nothing, opens no port, and reads live data only to compare it with the backup.
 */
import { Database as SqliteFile } from 'bun:sqlite'
import { lstatSync } from 'node:fs'
import { mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { concurrently } from '../../../base/concurrently.ts'
import { DAY_MILLIS } from '../../../base/durations.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { isPostgresUrl } from '../../../platform/database/database-url.ts'
import { sql, type Reader } from '../../../platform/database/database.ts'
import { withDatabase } from '../../../platform/database/open-database.ts'
import { isDatabaseThere, sqlitePath } from '../../../platform/database/sqlite.ts'
import { storageFaultOf } from '../../../platform/files/storage-faults.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import type { Log } from '../../../platform/running/log.ts'
import { openBlobBucket } from '../../data/blobs/blobs.ts'
import { bytesOf, DamagedObject, jsonObject, readWhole, type Archive } from './archive.ts'
import { fetchSnapshot } from './restoring.ts'
import type { Unseal } from './sealing.ts'
import { readManifest, type Manifest } from './snapshot.ts'
import { verifyEverything } from './verification.ts'

const REHEARSAL_FILE = 'rehearsal.json'
const SCRATCH_PREFIX = 'holdfast-rehearsal-'
const BUCKET_REQUESTS_AT_ONCE = 8
const ABANDONED_MILLIS = DAY_MILLIS
/** Space that a rehearsal leaves on the disk, on which a server may be running. */
const RESERVED_BYTES = 512 * 1024 ** 2
/** Most faults, and most missing blobs, that a report names. */
const MAX_NAMED = 100

interface Counts {
  accounts: number
  records: number
  blobs: number
  /** Number of the newest event. */
  newestEvent: number
}

export interface Rehearsal {
  snapshot: string
  /** Time of the backup, in RFC 3339 format. */
  createdAt: string
  /** Whether the backup has everything that it should. */
  ok: boolean
  databaseBytes: number
  /** Blobs that were restored from the backup. */
  blobBytes: number
  restoreSecs: number
  verifySecs: number
  restored: Counts
  /** Counts of the configured server; null if it has no database here, or the database does not answer. */
  live: Counts | null
  faultCount: number
  /** The first of them. */
  faults: string[]
  missingBlobCount: number
  missingBlobs: string[]
  /** What a restore needs that is in no backup. */
  needed: string[]
}

/** The result of the last rehearsal, which is kept beside the backups. */
export interface LastRehearsal {
  snapshot: string
  /** Time in RFC 3339 format. */
  at: string
  ok: boolean
}

export interface RehearsalOptions {
  config: Config
  archive: Archive
  unseal: Unseal
  snapshot: string
  /** The folder in which the scratch folder is made. */
  scratch: string
  /** Gets the scratch folder, to delete it if the process ends early. Returns what to call once it is deleted. */
  onFolder(path: string): () => void
  /** As of `verifyEverything`. */
  quick: boolean
  now: Date
  log: Log
  /** Runs `work` with the context of a restored server that is not started. */
  withContext(config: Config, work: (ctx: Context) => Promise<void>): Promise<void>
}

/**
 * Restore a snapshot into a new folder in `scratch`, verify everything, and delete the folder. Notes the result beside
 * the backups. Throws `OperatorError` if it cannot be restored, or there is too little space.
 */
export async function rehearse(options: RehearsalOptions): Promise<Rehearsal> {
  const { archive, snapshot, now, scratch, log, onFolder } = options
  const note = (ok: boolean) =>
    noteRehearsal(archive, { snapshot, at: now.toISOString(), ok }).catch((error: unknown) =>
      log.warn('could not store the result of the rehearsal beside the backups', { error }),
    )
  const manifest = await readManifest(archive, snapshot).catch(async (error: unknown) => {
    if (error instanceof DamagedObject) await note(false)
    throw error
  })
  // A wrong name says nothing about the backups, so it is not noted.
  if (manifest === null) throw new OperatorError(`there is no complete backup named ${snapshot}`)
  await clearScratch(scratch, now)
  const dir = join(scratch, SCRATCH_PREFIX + crypto.randomUUID())
  const release = onFolder(dir)
  try {
    await mkdir(dir, { mode: 0o700 })
    const report = await rehearseIn(dir, manifest, options)
    await note(report.ok)
    return report
  } catch (error) {
    // A full disk or an unreachable destination says nothing about the backup.
    if (error instanceof OperatorError && !(error instanceof TooLittleSpace)) await note(false)
    throw error
  } finally {
    await rm(dir, { recursive: true, force: true })
    release()
  }
}

class TooLittleSpace extends OperatorError {}

/** Delete the folders of rehearsals that were killed. */
async function clearScratch(scratch: string, now: Date): Promise<void> {
  for (const name of await readdir(scratch)) {
    if (!name.startsWith(SCRATCH_PREFIX)) continue
    const path = join(scratch, name)
    // Other users may put anything into a temporary folder, and remove it.
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found && now.getTime() - found.mtimeMs > ABANDONED_MILLIS && found.uid === process.getuid?.())
      await rm(path, { recursive: true, force: true })
  }
}

async function rehearseIn(
  dir: string,
  manifest: Manifest,
  { config, archive, unseal, snapshot, quick, log, withContext }: RehearsalOptions,
): Promise<Rehearsal> {
  await requireSpace(dir, manifest.database.bytes)
  const restored: Config = {
    ...config,
    dataDir: dir,
    databaseUrl: join(dir, 'holdfast.db'),
    // Leave the bucket alone: restore the backup's blobs into the folder.
    blobs: { ...config.blobs, store: 'folder' },
    blobMirror: { ...config.blobMirror, bucket: null },
    telemetry: { ...config.telemetry, enabled: false },
  }
  let blobBytes = 0
  const began = performance.now()
  const onDatabase = async (path: string) => {
    if (areBlobsLeft(config)) return
    blobBytes = blobBytesIn(path)
    await requireSpace(dir, blobBytes)
  }
  const fetching = fetchSnapshot(restored, archive, unseal, snapshot, { onDatabase })
  const { databasePath, missingBlobs } = await fetching.catch((error: unknown) => {
    throw storageFaultOf(error) === null ? error : tooLittleSpace(dir)
  })
  const missing = await lackingInBucket(config, missingBlobs, log)
  const fetched = performance.now()
  const faults: string[] = []
  let faultCount = 0
  let counts: Counts | undefined
  await withContext({ ...restored, databaseUrl: databasePath }, async (ctx) => {
    const report = await verifyEverything(ctx, {
      lostBlobs: new Set(missingBlobs),
      quick,
      onFault(fault) {
        if (faults.length < MAX_NAMED) faults.push(fault)
      },
    })
    faultCount = report.faults
    counts = await countsOf(ctx.db)
  })
  return {
    snapshot,
    createdAt: manifest.createdAt,
    ok: faultCount === 0 && missing.length === 0,
    databaseBytes: manifest.database.bytes,
    blobBytes,
    restoreSecs: secs(fetched - began),
    verifySecs: secs(performance.now() - fetched),
    restored: counts!,
    live: await liveCounts(config, log),
    faultCount,
    faults,
    missingBlobCount: missing.length,
    missingBlobs: missing.slice(0, MAX_NAMED),
    needed: neededBeside(config, unseal),
  }
}

const secs = (millis: number): number => Math.round(millis / 100) / 10

async function requireSpace(dir: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir)
  if (bavail * bsize < bytes + RESERVED_BYTES) throw tooLittleSpace(dir, bytes)
}

const tooLittleSpace = (dir: string, bytes?: number) =>
  new TooLittleSpace(
    `there is too little space in ${dir}${bytes === undefined ? '' : ` for ${(bytes / 1e9).toFixed(1)} GB`}: name another folder with --scratch`,
  )

function blobBytesIn(databasePath: string): number {
  using database = new SqliteFile(databasePath, { readonly: true })
  return database
    .query<{ bytes: number }, []>(
      'SELECT coalesce(sum(size), 0) AS bytes FROM (SELECT max(size) AS size FROM blob GROUP BY cid)',
    )
    .get()!.bytes
}

/** Returns those of the blobs that the bucket lacks too, if blobs are in one. */
async function lackingInBucket(config: Config, cids: readonly string[], log: Log): Promise<string[]> {
  const bucket = openBlobBucket(config, { clock: systemClock, log })
  if (bucket === null) return [...cids]
  const lacking: string[] = []
  await concurrently(cids, BUCKET_REQUESTS_AT_ONCE, async (cid) => {
    if ((await bucket.sizeOf(cid)) === null) lacking.push(cid)
  })
  return lacking
}

const countsQuery = sql`
  SELECT (SELECT count(*) FROM account) AS accounts,
    (SELECT count(*) FROM record JOIN repo ON repo.id = record.repo_id WHERE repo.did IS NOT NULL) AS records,
    (SELECT count(DISTINCT cid) FROM blob) AS blobs,
    (SELECT max(seq) FROM (SELECT max(seq) AS seq FROM repo_seq UNION ALL SELECT spent_through FROM repo_seq_past) numbers) AS "newestEvent"`

const countsOf = async (reader: Reader): Promise<Counts> => (await reader.get<Counts>(countsQuery))!

/** Counts of a server that may be running, on connections that only read. */
async function liveCounts({ databaseUrl }: Config, log: Log): Promise<Counts | null> {
  try {
    if (!isPostgresUrl(databaseUrl)) {
      const path = sqlitePath(databaseUrl)
      if (!isDatabaseThere(path)) return null
      using database = new SqliteFile(path, { readonly: true })
      return database.query<Counts, []>(countsQuery.texts.join('')).get()
    }
    return await withDatabase({ databaseUrl, access: 'onlooker' }, countsOf)
  } catch (error) {
    log.warn('could not compare the live database with the backup', { error })
    return null
  }
}

/** Whether blobs are in a bucket that backups leave out. */
const areBlobsLeft = ({ blobs, backup }: Config): boolean => blobs.store === 's3' && !backup.bucketBlobs

function neededBeside(config: Config, { suffix }: Unseal): string[] {
  const needed = ['the configuration, with its admin token and all other secrets']
  if (suffix !== '') needed.push('the passphrase of the backups (SERVICE_BACKUP_PASSPHRASE)')
  if (config.signingKeyMasterKey !== null)
    needed.push('the master key (SERVICE_SIGNING_KEY_MASTER_KEY), which decrypts the keys of all accounts')
  if (areBlobsLeft(config))
    needed.push(`the bucket ${config.blobs.s3Bucket} with its older versions: its blobs are in no backup`)
  return needed
}

const noteRehearsal = (archive: Archive, rehearsal: LastRehearsal): Promise<void> =>
  archive.write(REHEARSAL_FILE, bytesOf(`${JSON.stringify(rehearsal, null, 2)}\n`))

/** Returns null if no restore was rehearsed at this destination. Throws `DamagedObject`. */
export async function lastRehearsal(archive: Archive): Promise<LastRehearsal | null> {
  const bytes = await readWhole(archive, REHEARSAL_FILE)
  return bytes && jsonObject<LastRehearsal>(REHEARSAL_FILE, bytes, isRehearsal)
}

const isRehearsal = ({ snapshot, at, ok }: Partial<LastRehearsal>): boolean =>
  typeof snapshot === 'string' && typeof at === 'string' && typeof ok === 'boolean'
