/**
 * Making a backup while the server runs.
 *
 * The database is copied as of one instant by a reader of its own, so the server neither waits nor is waited for; that
 * is also why this runs in a process of its own. Blobs follow: what a record of the snapshot refers to is not collected
 * before its grace is over.
 */
import { existsSync, statSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import type { Config } from '../../platform/configuration/config.ts'
import { BACKUP_PREFIX } from '../../platform/files/data-directory.ts'
import type { Log } from '../../platform/running/log.ts'
import { existingSqlitePath } from '../../platform/database/sqlite.ts'
import { masterKeyFile } from '../../platform/secrets/vault.ts'
import { VERSION } from '../../base/version.ts'
import { blobFilesIn, type BlobFiles } from '../blobs/blobs.ts'
import { bytesOf, type Archive } from './archive.ts'
import { sealOf, type Seal } from './sealing.ts'
import { BLOBS, blobName, inSnapshot, linesOf, listSnapshots, manifestName, snapshotName, type Manifest } from './snapshot.ts'

export interface BackupReport {
  snapshot: string
  databaseBytes: number
  blobsCopied: number
  blobsKept: number
  missingBlobs: number
  snapshotsDropped: number
}

export interface BackupOptions {
  passphrase: string | null
  /** Snapshots to keep, this one included; null keeps all. */
  keep: number | null
  now: Date
  log: Log
}

const ABANDONED_MILLIS = 86_400_000

export async function makeBackup(config: Config, archive: Archive, { passphrase, keep, now, log }: BackupOptions): Promise<BackupReport> {
  const source = existingSqlitePath(config.databaseUrl)
  const seal = await sealOf(archive, passphrase)
  const snapshot = snapshotName(now)
  await clearCopies(config.dataDir, now)
  const copy = join(config.dataDir, `${BACKUP_PREFIX}${crypto.randomUUID()}.db`)
  try {
    copyDatabase(source, copy)
    const database = new Database(copy, { readonly: true })
    try {
      const blobs = await writeSnapshot(config, archive, { snapshot, seal, copy, database, now, log }).catch(async (error: unknown) => {
        // It does not count, and must not take the room of the next one.
        await dropSnapshot(archive, snapshot).catch((cause: unknown) =>
          log.warn('parts of a failed backup stay', { snapshot, error: cause }),
        )
        throw error
      })
      const snapshotsDropped = keep === null ? 0 : await dropOld(archive, { made: snapshot, keep, suffix: seal.suffix, database })
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
    await rm(copy, { force: true })
  }
}

/** Copies that were left behind by backups which ended with their process. A younger one may be in use. */
async function clearCopies(dataDir: string, now: Date): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(BACKUP_PREFIX)) continue
    const path = join(dataDir, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found && now.getTime() - found.mtimeMs > ABANDONED_MILLIS) await rm(path, { force: true })
  }
}

interface Parts {
  snapshot: string
  seal: Seal
  /** The path of the database as of one instant. */
  copy: string
  database: Database
  now: Date
  log: Log
}

async function writeSnapshot(config: Config, archive: Archive, { snapshot, seal, copy, database, now, log }: Parts) {
  await archive.write(inSnapshot(snapshot, 'database') + seal.suffix, await seal.close(Bun.file(copy).stream()))
  const keyFile = masterKeyFile(config.dataDir)
  if (config.signingKeyMasterKey === null && existsSync(keyFile))
    await archive.write(inSnapshot(snapshot, 'master-key') + seal.suffix, await seal.close(Bun.file(keyFile).stream()))

  const blobs = await copyBlobs(database, blobFilesIn(config.dataDir), archive, seal, log)
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
  await archive.write(manifestName(snapshot), bytesOf(`${JSON.stringify(manifest, null, 2)}\n`))
  return blobs
}

/** The manifest first: what is left of a snapshot that is being dropped must not look complete. */
async function dropSnapshot(archive: Archive, snapshot: string): Promise<void> {
  await archive.delete(manifestName(snapshot))
  for await (const name of archive.names(inSnapshot(snapshot))) await archive.delete(name)
}

/** One instant of a database that others write to. */
function copyDatabase(source: string, target: string): void {
  const reader = new Database(source, { readonly: true })
  try {
    reader.run(`VACUUM INTO '${target.replaceAll("'", "''")}'`)
  } finally {
    reader.close()
  }
}

async function fileDigest(path: string): Promise<{ bytes: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return { bytes: (await stat(path)).size, sha256: hasher.digest('hex') }
}

const BLOB_PAGE = 1000

function* blobCids(database: Database): Generator<string> {
  const page = database.prepare<{ cid: string }, [string]>(`SELECT DISTINCT cid FROM blob WHERE cid > ? ORDER BY cid LIMIT ${BLOB_PAGE}`)
  for (let after = ''; ;) {
    const rows = page.all(after)
    for (const { cid } of rows) yield cid
    if (rows.length < BLOB_PAGE) return
    after = rows.at(-1)!.cid
  }
}

async function* blobList(database: Database): AsyncGenerator<Uint8Array> {
  for (const cid of blobCids(database)) yield Buffer.from(`${cid}\n`)
}

async function copyBlobs(database: Database, files: BlobFiles, archive: Archive, seal: Seal, log: Log) {
  const there = new Set<string>()
  for await (const name of archive.names(BLOBS)) there.add(name)
  const report = { copied: 0, kept: 0, missing: [] as string[] }
  for (const cid of blobCids(database)) {
    const name = blobName(cid) + seal.suffix
    if (there.has(name)) {
      report.kept++
      continue
    }
    // Hashed before it is copied: a damaged file must not become the good copy of later days.
    const file = await files.readable(cid)
    if (file === null) {
      report.missing.push(cid)
      log.warn('blob is missing or damaged and not in the backup', { cid })
      continue
    }
    await archive.write(name, await seal.close(file.stream()))
    report.copied++
  }
  return report
}

/**
 * Keep the snapshot that was just made, and of the others the newest ones. Drop the rest, and the blobs that no snapshot
 * speaks of any more. Returns how many snapshots were deleted.
 */
async function dropOld(
  archive: Archive,
  { made, keep, suffix, database }: { made: string; keep: number; suffix: string; database: Database },
): Promise<number> {
  // A clock that was wrong names snapshots too: what claims to be newer than the newest is older than the rest.
  const others = (await listSnapshots(archive))
    .filter((snapshot) => snapshot !== made)
    .toReversed()
    .toSorted((a, b) => Number(a > made) - Number(b > made))
  const kept = others.slice(0, keep - 1)
  const old = others.slice(keep - 1)
  if (old.length === 0) return 0
  for (const snapshot of old) await dropSnapshot(archive, snapshot)
  // The lists of other sealed snapshots cannot be read without the passphrase. So blobs of a sealed archive go only when
  // the new snapshot, whose database is at hand, is the only one left.
  const needed = new Set(blobCids(database))
  for (const snapshot of kept) {
    if (suffix !== '') return old.length
    const list = await archive.read(inSnapshot(snapshot, 'blobs'))
    if (list !== null) for await (const cid of linesOf(list)) needed.add(cid)
  }
  for await (const name of archive.names(BLOBS))
    if (!needed.has(name.slice(name.lastIndexOf('/') + 1).replace(/\.age$/, ''))) await archive.delete(name)
  return old.length
}

/** The highest number of the event log. */
function headOf(database: Database): number {
  return database
    .query<{ head: number }, []>('SELECT max(coalesce((SELECT max(seq) FROM repo_seq), 0), spent_through) AS head FROM repo_seq_past')
    .get()!.head
}
