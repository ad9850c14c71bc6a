/**
 * Restore a backup in two steps: fetch the snapshot, then continue the event log. The caller verifies everything in
 * between.
 *
 * The network may have seen events that the backup lacks. The event log therefore continues above any sequence number
 * that can have been used since the backup, every repository is signed again with a new revision, and the state of
 * every account is announced again. A relay that is ahead of the backup can then follow, and learns what the server
 * holds.
 */
import { existsSync, readFileSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { makeDataDirectory, restoringPath, syncFolder } from '../../../platform/files/data-directory.ts'
import { inPages, type Tx } from '../../../platform/database/database.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { isDatabaseThere, sqlitePath } from '../../../platform/database/sqlite.ts'
import { systemClock } from '../../../platform/running/clock.ts'
import { processLog } from '../../../platform/running/log.ts'
import { masterKeyFile, writeKeyFile } from '../../../platform/secrets/vault.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { isSigningHeld, signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { openStorageOf, type BlobStorage } from '../../data/blobs/blobs.ts'
import {
  headSeq,
  raiseSeq,
  sentEventsOf,
  sequenceEvents,
  type RepoEvent,
  type Sent,
} from '../../data/firehose/firehose.ts'
import { deleteAllClaims } from '../../identity/handles/handles.ts'
import { repoHeads, resignHead } from '../../data/repo/repo.ts'
import { skipSenderKeyNumbers } from '../../push/notifications/notifications.ts'
import { DamagedObject, spool, type Archive } from './archive.ts'
import type { Unseal } from './sealing.ts'
import { blobName, inSnapshot, linesOf, readManifest } from './snapshot.ts'

/** Most accounts that are announced before the server starts. */
const MAX_BEFORE_START = 1000
/** Number of accounts per transaction. */
const BATCH = 50
/** Minimum gap in sequence numbers, for a log whose numbers already exceed the clock in milliseconds. */
const MIN_SEQ_GAP = 1_000_000
/**
 * Most push keys that the server may have made since the backup. Devices may know them, so their numbers are not
 * reused.
 */
const MAX_LOST_SENDER_KEYS = 100

export interface Fetched {
  /** The path of the fetched database, which does not have its final name yet. */
  databasePath: string
  /** CIDs of the blobs that neither the storage nor any of the backups has undamaged. */
  missingBlobs: string[]
}

/** Other backups, which may have blobs that the restored one lacks. */
export interface OtherBackups {
  archive: Archive
  unseal: Unseal
}

/**
 * Fetch a snapshot into the data directory of `config`, whose database is a file. Blobs that its archive lacks come
 * from `others`.
 *
 * `onDatabase` is called with the path of the database, before the blobs are fetched.
 *
 * Throws OperatorError if the directory already holds a database or another master key, or the snapshot is incomplete
 * or damaged. Missing blobs are no error: the result lists them.
 */
export async function fetchSnapshot(
  config: Config,
  archive: Archive,
  unseal: Unseal,
  snapshot: string,
  {
    others = null,
    onDatabase = async () => {},
  }: { others?: OtherBackups | null; onDatabase?: (path: string) => Promise<void> } = {},
): Promise<Fetched> {
  requireEmpty(config)
  const manifest = await readManifest(archive, snapshot)
  if (manifest === null) throw new OperatorError(`there is no complete backup named ${snapshot}`)
  const part = partOf(archive, unseal)
  makeDataDirectory(config)
  const databasePath = restoringPath(config)
  await fetchDatabase(databasePath, () => part(inSnapshot(snapshot, 'database')), manifest.database.sha256)
  await onDatabase(databasePath)
  const masterKey = await part(inSnapshot(snapshot, 'master-key'))
  if (masterKey !== null && config.signingKeyMasterKey === null)
    await placeMasterKey(masterKeyFile(config.dataDir), masterKey)
  const blobs = await part(inSnapshot(snapshot, 'blobs'))
  if (blobs === null) throw new OperatorError('the backup lacks its list of blobs: copy it again')
  return { databasePath, missingBlobs: await fetchBlobs(config, blobs, part, others) }
}

/**
 * Read single parts of a backup. `fetchDatabase` throws OperatorError if there is no such snapshot, or it is damaged.
 * `blob` returns the bytes that the backup has of a blob, without comparing them with its CID, or null.
 */
export const partsOf = (archive: Archive, unseal: Unseal) => ({
  async fetchDatabase(snapshot: string, path: string): Promise<void> {
    const manifest = await readManifest(archive, snapshot)
    if (manifest === null) throw new OperatorError(`there is no complete backup named ${snapshot}`)
    const read = () => partOf(archive, unseal)(inSnapshot(snapshot, 'database'))
    await fetchDatabase(path, read, manifest.database.sha256)
  },
  blob: (cid: string) => blobOf(partOf(archive, unseal), cid),
})

/** Returns the bytes of a blob, which may be damaged; null if the backup lacks it. */
async function blobOf(part: Part, cid: string): Promise<AsyncIterable<Uint8Array> | null> {
  const content = await part(blobName(cid))
  return content && untilDamaged(content)
}

/** Yields the content up to the place where the object is damaged. */
async function* untilDamaged(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (error) {
    if (!(error instanceof DamagedObject)) throw error
  }
}

/** Returns an unsealed part of the backup, or null if it is missing. Reading it throws `DamagedObject`. */
export type Part = (name: string) => Promise<AsyncIterable<Uint8Array> | null>

export const partOf =
  (archive: Archive, unseal: Unseal): Part =>
  async (part) => {
    const name = part + unseal.suffix
    const content = await archive.read(name)
    return content && unseal.open(name, content)
  }

/**
 * Throws `OperatorError` if there is a database, or a write-ahead log without one: SQLite would apply that log to the
 * next database of its name.
 */
export function requireEmpty({ databaseUrl }: Pick<Config, 'databaseUrl'>): void {
  const databasePath = sqlitePath(databaseUrl)
  for (const path of [databasePath, `${databasePath}-wal`])
    if (isDatabaseThere(path)) throw new OperatorError(`${path} exists; a restore needs an empty data directory`)
}

async function fetchDatabase(path: string, read: () => ReturnType<Part>, expectedSha256: string): Promise<void> {
  for (const left of [`${path}-wal`, `${path}-shm`]) await rm(left, { force: true })
  // An earlier restore that ended while it fetched blobs has left the database.
  if (existsSync(path) && (await digestOfFile(path)) === expectedSha256) return
  const content = await read()
  if (content === null) throw new OperatorError('the backup lacks its database')
  const { sha256 } = await spool(path, content)
  if (sha256 !== expectedSha256)
    throw new OperatorError('the backup is damaged: its database does not match the manifest')
}

async function digestOfFile(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return hasher.digest('hex')
}

/** Fetch the listed blobs that are not in the storage. Returns those that are missing or damaged everywhere. */
export async function fetchBlobs(
  config: Config,
  list: AsyncIterable<Uint8Array>,
  part: Part,
  others: OtherBackups | null,
): Promise<string[]> {
  const parts = others === null ? [part] : [part, partOf(others.archive, others.unseal)]
  const storage = openStorageOf(config, { clock: systemClock, log: processLog(config) })
  await storage.prepare()
  const missing: string[] = []
  for await (const cid of linesOf(list)) {
    // A blob in a bucket counts if its size is known. A folder may have blobs of an interrupted restore: verify them.
    if (storage.isShared ? (await storage.sizeOf(cid)) !== null : (await storage.digest(cid))?.cid === cid) continue
    if (!(await placeFrom(parts, storage, cid))) missing.push(cid)
  }
  return missing
}

/** Store the first undamaged copy of a blob. Returns false if there is none. */
async function placeFrom(parts: readonly Part[], storage: BlobStorage, cid: string): Promise<boolean> {
  for (const part of parts) {
    const content = await blobOf(part, cid)
    if (content !== null && (await placeBlob(storage, cid, content))) return true
  }
  return false
}

/** Never overwrites a different key: it may be the only one that opens some other database. */
export async function placeMasterKey(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const key = Buffer.concat(await Array.fromAsync(content))
  if (existsSync(path) && !readFileSync(path).equals(key))
    throw new OperatorError(`${path} holds a different key than the backup; a restore needs an empty data directory`)
  writeKeyFile(path, key)
}

/** Store the content of a blob. Returns false, and stores nothing, if the content has another CID. */
async function placeBlob(storage: BlobStorage, cid: string, content: AsyncIterable<Uint8Array>): Promise<boolean> {
  await using incoming = await storage.receive(content)
  if (incoming.cid !== cid) return false
  await incoming.place()
  return true
}

/**
 * Rename the verified database to its final name. Close its context first. Throws `OperatorError` if its write-ahead
 * log was not merged into it: the log would keep the former name, and the database would lack what the restore has
 * changed.
 */
export async function installDatabase(config: Config, { databasePath }: Fetched): Promise<void> {
  const log = `${databasePath}-wal`
  if (isDatabaseThere(log))
    throw new OperatorError(
      `${log} could not be copied into the database: make room on the disk, close what else has the file open, and run the same command again. Nothing was restored`,
    )
  const path = sqlitePath(config.databaseUrl)
  await rename(databasePath, path)
  syncFolder(dirname(path))
  // With a continuous backup, the database keeps its log, which is empty now, and the index of that log.
  for (const left of [log, `${databasePath}-shm`]) await rm(left, { force: true })
}

/**
 * Continue the event log above any sequence number that the network can have seen, and announce every account again.
 *
 * `sentThrough`: a number that is known to have been used. `seq` of the result is the first sequence number after the
 * gap; `accounts` is how many accounts were announced.
 */
export async function continueSequence(ctx: Context, sentThrough = 0): Promise<{ seq: number; accounts: number }> {
  const seq = await leaveGap(ctx, sentThrough)
  return { seq: seq + 1, accounts: await announceAll(ctx) }
}

/** Let servers use this copy of the database, which has lost nothing. Returns the newest event number. */
export const agreeOnDatabase = ({ db }: Context): Promise<number> =>
  db.transaction(async (tx) => {
    const head = await headSeq(tx)
    await db.cluster?.history.agree(tx, head)
    return head
  })

/**
 * Leave a gap in the event numbers. Returns the newest number of the gap. On a cluster, the nodes then agree on this
 * copy of the database; if another node has done so already, there is nothing to do.
 */
async function leaveGap(ctx: Context, sentThrough: number): Promise<number> {
  const { clock, db } = ctx
  return db.transaction(async (tx) => {
    const head = await headSeq(tx)
    // Counting events cannot have brought the log up to the clock in milliseconds, however many the backup missed.
    const seq = Math.max(clock.now(), Math.max(head, sentThrough) + MIN_SEQ_GAP)
    const isFirst = (await db.cluster?.history.agree(tx, head)) ?? true
    if (!isFirst) return head
    await raiseSeq(tx, seq)
    // Claims that were open at the time of the backup have ended since. Their identities may have accounts by now.
    await deleteAllClaims(tx)
    await skipSenderKeyNumbers(tx, MAX_LOST_SENDER_KEYS, clock.now())
    return seq
  })
}

/** Returns how many accounts were announced. */
async function announceAll(ctx: Context): Promise<number> {
  const start: { did: Did | null } = { did: null }
  let accounts = 0
  for await (const page of inPages(BATCH, start, ({ did }, limit) => repoHeads(ctx.db, did, limit)))
    accounts += await announce(
      ctx,
      page.map(({ did }) => did),
    )
  return accounts
}

const announce = (ctx: Context, dids: readonly Did[]): Promise<number> =>
  ctx.db.transaction(async (tx) => {
    let accounts = 0
    for (const did of dids) if (await announceAgain(ctx, tx, did)) accounts++
    return accounts
  })

/**
 * Continue with this copy of the database, if the nodes have not agreed on it yet, and re-announce accounts whose state
 * differs from the events in `sent`, which this node had sent before its restart. An account about which no living node
 * had sent such an event is announced with its next commit. Throws `HistoryLost` if the operator has to decide.
 */
export async function continueHistory(ctx: Context, sent: Sent | null): Promise<void> {
  const { config, db, log } = ctx
  if (db.cluster === null) return
  const { history } = db.cluster
  const { broken } = history
  const sentNow = sentEventsOf(ctx)!
  sentNow.raise(sent?.head ?? 0)
  if (broken !== null) {
    if (config.database.afterFailover === 'stop') throw broken
    const seq = await leaveGap(ctx, sentNow.head)
    log.warn('continued with another copy of the database', { reason: broken.why, seq })
  }
  // Remember the gap: another failover may lose it from the database after nodes have sent events above it.
  sentNow.raise(await headSeq(db))
  if (sent === null || history.generation === sent.generation) return
  // If this node has missed a change of generations, it does not know what was kept.
  const kept = history.generation === sent.generation + 1 ? (history.keptThrough ?? 0) : 0
  const differing = sent.accountsAfter(kept)
  const work = async () => {
    let accounts = 0
    if (differing === null) accounts = await announceAll(ctx)
    else
      for (let i = 0; i < differing.length; i += BATCH) accounts += await announce(ctx, differing.slice(i, i + BATCH))
    log.info('accounts announced again', { accounts })
  }
  // If this takes only seconds, do it before the port opens: `#sync` then comes before the next commit of the account.
  if (differing !== null && differing.length <= MAX_BEFORE_START) await work()
  else ctx.background.run('announcement of accounts', work)
}

/**
 * Sign the repository again and announce the account. Returns false if the repository has no account or no signing key.
 */
async function announceAgain(ctx: Context, tx: Tx, did: Did): Promise<boolean> {
  const account = await accountOf(tx, did)
  const key = account && (await signingKeyOf(ctx, tx, did))
  if (account === null || key === null) return false
  const status = statusOf(account)
  const identity: RepoEvent = { type: 'identity', did, ...(account.handle === null ? {} : { handle: account.handle }) }
  // While a new key waits for the directory, nothing is signed. If it replaces the old key, its `#sync` follows.
  const heads = (await isSigningHeld(tx, did)) ? [] : [await resignHead(ctx, tx, did, key)]
  await sequenceEvents(ctx, tx, [identity, { type: 'account', did, status }, ...(status === 'active' ? heads : [])])
  return true
}
