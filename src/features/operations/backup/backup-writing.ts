/**
 * Make a backup while the server runs.
 *
 * A separate connection copies the database as of one instant (`instant-copy.ts`), so neither the server nor the backup
 * waits for the other. The copy blocks its thread; the backup therefore runs in its own process.
 *
 * Blobs are copied after the database. Every blob that the copy lists existed at its instant, because a blob's bytes
 * are written before its row. A blob that loses its last reference afterwards is kept for `blobs.temp_ttl_secs`, and in
 * a bucket for another hour. A backup that takes longer may miss it, and reports it as missing.
 */
import { existsSync, statSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { BACKUP_PREFIX, makeDataDirectory } from '../../../platform/files/data-directory.ts'
import { COMMIT_BYTES, NoRoom, whileRoom } from '../../../platform/files/free-space.ts'
import { requireDatabase } from '../../../platform/database/open-database.ts'
import type { Log } from '../../../platform/running/log.ts'
import { masterKeyFile } from '../../../platform/secrets/vault.ts'
import { VERSION } from '../../../base/version.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { DamagedOnTheWay, openStorageOf, type BlobStorage, type StoredBlob } from '../../data/blobs/blobs.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { bytesOf, readWhole, type Archive } from './archive.ts'
import { copyInstant, noRoom } from './instant-copy.ts'
import { sealOf, type Seal } from './sealing.ts'
import {
  beginSnapshot,
  BLOBS,
  blobName,
  inSnapshot,
  isOfAnother,
  linesOf,
  manifestName,
  snapshotFolder,
  snapshotMillis,
  snapshotsIn,
  type Begun,
  type Manifest,
  type Owner,
} from './snapshot.ts'

export interface BackupReport {
  snapshot: string
  databaseBytes: number
  blobsCopied: number
  blobsKept: number
  missingBlobs: number
  snapshotsDropped: number
}

export interface BackupOptions {
  /** Number of snapshots to keep, including the new one; null keeps all. */
  keep: number | null
  now: Date
  log: Log
}

const ABANDONED_MILLIS = DAY_MILLIS
/**
 * A snapshot that has been incomplete for longer was left by a killed backup. The first one to a bucket may take days.
 */
const ABANDONED_SNAPSHOT_MILLIS = 7 * DAY_MILLIS
/** Number of blobs to delete before checking again whether another backup has begun. */
const DELETED_BLOBS = 100

/**
 * Write a snapshot of the database and its blobs to an archive, then drop old snapshots.
 *
 * `missingBlobs` of the report counts blobs that the backup lacks because their files are missing or damaged. Throws if
 * the database does not exist or the archive cannot be written; the parts of the failed snapshot are then deleted.
 */
export async function makeBackup(
  config: Config,
  archive: Archive,
  { keep, now, log }: BackupOptions,
): Promise<BackupReport> {
  requireDatabase(config.databaseUrl)
  const seal = await sealOf(archive, { ...config.backup, trial: { known: null } }, now)
  makeDataDirectory(config)
  await clearCopies(config.dataDir, now)
  const copy = join(config.dataDir, `${BACKUP_PREFIX}${crypto.randomUUID()}.db`)
  const begun = await beginSnapshot(archive, now)
  const { snapshot } = begun
  const drop = async (error: unknown): Promise<never> => {
    // The incomplete snapshot is useless and must not take the space that the next one needs.
    await dropSnapshot(archive, snapshot).catch((cause: unknown) =>
      log.warn('could not delete the parts of a failed backup', { snapshot, error: cause }),
    )
    throw error
  }
  try {
    await copyInstant(config.databaseUrl, copy, now.getTime()).catch(drop)
    const database = new Database(copy, { readonly: true })
    try {
      const blobs = await writeSnapshot(config, archive, { begun, seal, copy, database, now, log }).catch(drop)
      const snapshotsDropped =
        keep === null
          ? 0
          : await dropOld(archive, { made: snapshot, keep, suffix: seal.suffix, database, now, owner: config })
      return {
        snapshot,
        databaseBytes: (await stat(copy)).size,
        blobsCopied: blobs.copied,
        blobsKept: blobs.kept,
        missingBlobs: blobs.missing.length,
        snapshotsDropped,
      }
    } finally {
      database.close()
    }
  } finally {
    for (const suffix of ['', '-wal', '-shm']) await rm(copy + suffix, { force: true })
  }
}

/** Delete the database copies of backups whose process was killed. Keeps recent copies, which may be in use. */
async function clearCopies(dataDir: string, now: Date): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(BACKUP_PREFIX)) continue
    const path = join(dataDir, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found && now.getTime() - found.mtimeMs > ABANDONED_MILLIS) await rm(path, { force: true })
  }
}

interface Parts {
  begun: Begun
  seal: Seal
  /** The path of the database copy. */
  copy: string
  database: Database
  now: Date
  log: Log
}

async function writeSnapshot(config: Config, archive: Archive, { begun, seal, copy, database, now, log }: Parts) {
  const { snapshot, mark } = begun
  await archive.write(inSnapshot(snapshot, 'database') + seal.suffix, await seal.close(copied(copy, config.dataDir)))
  const keyFile = masterKeyFile(config.dataDir)
  if (config.signingKeyMasterKey === null && existsSync(keyFile))
    await archive.write(inSnapshot(snapshot, 'master-key') + seal.suffix, await seal.close(Bun.file(keyFile).stream()))

  // Blobs in a bucket are already on other machines, and may be larger than any backup of a database.
  const blobs =
    config.blobs.store === 's3' && !config.backup.bucketBlobs
      ? { copied: 0, kept: 0, missing: [] }
      : await copyBlobs(database, openStorageOf(config, { clock: systemClock, log }), archive, seal, log)
  await archive.write(inSnapshot(snapshot, 'blobs') + seal.suffix, await seal.close(blobList(database)))
  const manifest: Manifest = {
    format: 1,
    createdAt: now.toISOString(),
    version: VERSION,
    publicUrl: config.publicUrl,
    serverDid: config.serverDid,
    headSeq: headOf(database),
    database: await fileDigest(copy),
    blobs: blobs.copied + blobs.kept,
    missingBlobs: blobs.missing,
  }
  if ((await readWhole(archive, mark)) === null)
    throw new OperatorError(`another backup mistook ${snapshot} for a killed one, and deleted its parts`)
  await archive.write(manifestName(snapshot), bytesOf(`${JSON.stringify(manifest, null, 2)}\n`))
  await archive.delete(mark)
  return blobs
}

/** Yields the database copy while the disk has room: on its way to a bucket, it is stored on this disk again. */
async function* copied(copy: string, dataDir: string): AsyncGenerator<Uint8Array> {
  try {
    yield* whileRoom(Bun.file(copy).stream(), dataDir, COMMIT_BYTES)
  } catch (error) {
    throw error instanceof NoRoom ? noRoom(dataDir) : error
  }
}

/** Delete a snapshot, its manifest first: if the deletion is interrupted, the rest must not look complete. */
async function dropSnapshot(archive: Archive, snapshot: string): Promise<void> {
  await archive.delete(manifestName(snapshot))
  await archive.deleteFolder(snapshotFolder(snapshot))
}

async function fileDigest(path: string): Promise<{ bytes: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return { bytes: (await stat(path)).size, sha256: hasher.digest('hex') }
}

const BLOB_PAGE = 1000

function* blobsIn(database: Database): Generator<StoredBlob> {
  const page = database.prepare<StoredBlob, [string]>(
    `SELECT cid, max(size) AS size FROM blob WHERE cid > ? GROUP BY cid ORDER BY cid LIMIT ${BLOB_PAGE}`,
  )
  for (let after = ''; ;) {
    const rows = page.all(after)
    yield* rows
    if (rows.length < BLOB_PAGE) return
    after = rows.at(-1)!.cid
  }
}

/** The CIDs of all blobs, one per line. */
export async function* blobList(database: Database): AsyncGenerator<Uint8Array> {
  for (const { cid } of blobsIn(database)) yield Buffer.from(`${cid}\n`)
}

async function copyBlobs(database: Database, storage: BlobStorage, archive: Archive, seal: Seal, log: Log) {
  const there = new Set<string>()
  for await (const name of archive.names(BLOBS)) there.add(name)
  const report = { copied: 0, kept: 0, missing: [] as string[] }
  const absent: StoredBlob[] = []
  const nameOf = ({ cid }: StoredBlob) => blobName(cid) + seal.suffix
  const copyOne = (blob: StoredBlob) =>
    copyBlob(blob, storage, (content) => writeSealed(archive, nameOf(blob), seal, content))
  for (const blob of blobsIn(database)) {
    const name = nameOf(blob)
    if (there.has(name)) {
      report.kept++
      continue
    }
    if (await copyOne(blob)) report.copied++
    else absent.push(blob)
  }
  // A machine that has just taken over fetches files from the mirror meanwhile, so try again.
  for (const blob of absent)
    if (await copyOne(blob)) report.copied++
    else {
      report.missing.push(blob.cid)
      log.warn('blob left out of the backup: it is missing or damaged', { cid: blob.cid })
    }
  return report
}

const writeSealed = async (archive: Archive, name: string, seal: Seal, content: AsyncIterable<Uint8Array>) =>
  archive.write(name, await seal.close(content))

/** Returns false if the blob is missing or damaged: the storage verifies its hash. */
async function copyBlob(
  blob: StoredBlob,
  storage: BlobStorage,
  write: (content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<boolean> {
  const body = await storage.open(blob)
  if (body === null) return false
  try {
    await write(new Response(body).body ?? bytesOf(''))
    return true
  } catch (error) {
    if (error instanceof DamagedOnTheWay) return false
    throw error
  }
}

interface Dropping {
  made: string
  keep: number
  suffix: string
  database: Database
  now: Date
  owner: Owner
}

/**
 * Delete old snapshots. Keeps `keep` of this server's, the new one included, and all of other servers; deletes those
 * that killed backups left incomplete. Then deletes the blobs that no remaining snapshot lists, unless another backup
 * is in progress, which may rely on any of them. Returns how many complete snapshots were deleted.
 */
async function dropOld(archive: Archive, { made, keep, suffix, database, now, owner }: Dropping): Promise<number> {
  await archive.deleteParts(BLOBS)
  const { complete, incomplete } = await snapshotsIn(archive)
  const isAbandoned = (snapshot: string) =>
    Math.abs(now.getTime() - snapshotMillis(snapshot)) > ABANDONED_SNAPSHOT_MILLIS
  for (const snapshot of incomplete.filter(isAbandoned)) await dropSnapshot(archive, snapshot)
  // A snapshot named later than the new one was made while the clock was wrong. Treat it as older than all others.
  const others = complete
    .filter((snapshot) => snapshot !== made)
    .toReversed()
    .toSorted((a, b) => Number(a > made) - Number(b > made))
  if (others.length < keep) return 0
  const foreign: string[] = []
  for (const snapshot of others) if (await isOfAnother(archive, snapshot, owner)) foreign.push(snapshot)
  const own = others.filter((snapshot) => !foreign.includes(snapshot))
  const kept = [...own.slice(0, keep - 1), ...foreign]
  const old = own.slice(keep - 1)
  if (old.length === 0) return 0
  for (const snapshot of old) await dropSnapshot(archive, snapshot)
  if (!incomplete.every(isAbandoned)) return old.length
  // The blob lists of other encrypted snapshots cannot be read without the passphrase. Blobs of an encrypted archive
  // are therefore deleted only if no snapshot other than the new one remains; its database is at hand.
  const needed = new Set<string>()
  for (const { cid } of blobsIn(database)) needed.add(cid)
  for (const snapshot of kept) {
    if (suffix !== '') return old.length
    const list = await archive.read(inSnapshot(snapshot, 'blobs'))
    if (list !== null) for await (const cid of linesOf(list)) needed.add(cid)
  }
  const remaining = [made, ...kept]
  for await (const page of unneededBlobs(archive, needed)) {
    // A backup that has begun since the first look may rely on any of them.
    const found = await snapshotsIn(archive)
    if ([...found.complete, ...found.incomplete].some((snapshot) => !remaining.includes(snapshot))) break
    for (const name of page) await archive.delete(name)
  }
  return old.length
}

/** Yields, in pages, the names of blobs whose CIDs are not in `needed`. */
async function* unneededBlobs(archive: Archive, needed: ReadonlySet<string>): AsyncGenerator<string[]> {
  let page: string[] = []
  for await (const name of archive.names(BLOBS)) {
    if (!needed.has(name.slice(name.lastIndexOf('/') + 1).replace(/\.age$/, ''))) page.push(name)
    if (page.length < DELETED_BLOBS) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

/** Returns the highest sequence number that the event log has used. */
function headOf(database: Database): number {
  return database
    .query<{ head: number }, []>(
      'SELECT max(coalesce((SELECT max(seq) FROM repo_seq), 0), spent_through) AS head FROM repo_seq_past',
    )
    .get()!.head
}
