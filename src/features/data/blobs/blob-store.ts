/** The SQL of table `blob`: the uploads that accounts own. */
import type { Context } from '../../../platform/context.ts'
import type { StoredBlob } from './blob-storage.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { setImmediate } from 'node:timers/promises'
import { maxBlobBytesOf } from '../../identity/quotas/quotas.ts'
import { deleteQuarantines, endQuarantine, QUARANTINE, storedTakedown } from './blob-quarantine.ts'
import { insertRemovals } from './removal-store.ts'
import { deleteAllSpaceReferences, isHeldBySpace, isHeldIfOn } from './space-reference-store.ts'
import {
  inPieces,
  sql,
  sqlList,
  sqlRows,
  type Database,
  type Reader,
  type Sql,
  type Tx,
  type Writer,
} from '../../../platform/database/database.ts'

export interface BlobRow {
  did: Did
  cid: string
  mimeType: string
  size: number
}

export interface ClaimedBlob {
  cid: string
  mimeType: string
  size: number
  /** Whether a record already referred to it. */
  isPermanent: boolean
}

const isReferenced = (): Sql => sql`EXISTS (SELECT 1 FROM blob_reference r WHERE r.did = blob.did AND r.cid = blob.cid)`

/**
 * Stop the grace clock of blobs that records are about to refer to. Returns the blobs that exist and are not taken
 * down, including those in quarantine.
 */
export async function claimBlobs(tx: Tx, did: Did, cids: readonly string[]): Promise<ClaimedBlob[]> {
  const rows = await tx.all<Omit<ClaimedBlob, 'isPermanent'> & { referenced: number }>(sql`
    UPDATE blob SET unreferenced_at = NULL
    WHERE did = ${did} AND cid IN ${sqlList(cids)} AND (takedown_ref IS NULL OR takedown_ref = ${QUARANTINE})
    RETURNING cid, mime_type AS "mimeType", size, CASE WHEN ${isReferenced()} THEN 1 ELSE 0 END AS referenced`)
  return rows.map(({ referenced, ...blob }) => ({ ...blob, isPermanent: referenced === 1 }))
}

/** Rows looked up by key before requests that read get a turn. */
const KEYS_PER_TURN = 512

/**
 * Returns the blobs with these CIDs that the account has and that are not taken down. For records in spaces, which do
 * not make their blobs public.
 */
export async function findOwned(tx: Tx, did: Did, cids: readonly string[]): Promise<ClaimedBlob[]> {
  const found: ClaimedBlob[] = []
  for await (const piece of inTurns(tx, cids)) {
    const rows = await tx.all<Omit<ClaimedBlob, 'isPermanent'> & { referenced: number }>(sql`
      SELECT cid, mime_type AS "mimeType", size, CASE WHEN ${isReferenced()} THEN 1 ELSE 0 END AS referenced FROM blob
      WHERE did = ${did} AND cid IN ${sqlList(piece)} AND (takedown_ref IS NULL OR takedown_ref = ${QUARANTINE})`)
    found.push(...rows.map(({ referenced, ...blob }) => ({ ...blob, isPermanent: referenced === 1 })))
  }
  return found
}

/** Restart the grace of blobs to which a record in a space no longer refers, unless a public record refers to them. */
export async function restartClocks(tx: Tx, did: Did, cids: readonly string[], now: Millis): Promise<void> {
  for await (const piece of inTurns(tx, [...new Set(cids)]))
    await tx.run(sql`
      UPDATE blob SET unreferenced_at = ${now}
      WHERE did = ${did} AND cid IN ${sqlList(piece)} AND unreferenced_at IS NOT NULL`)
}

async function* inTurns(tx: Tx, cids: readonly string[]): AsyncGenerator<readonly string[]> {
  let keys = 0
  for (const piece of inPieces(cids)) {
    if (keys >= KEYS_PER_TURN) {
      await tx.turn()
      keys = 0
    }
    keys += piece.length
    yield piece
  }
}

/** Start the grace clock of those `cids` to which no record refers any more. Returns how many. */
export function releaseUnreferenced(tx: Tx, did: Did, cids: readonly string[], now: Millis): Promise<number> {
  return tx.run(sql`
    UPDATE blob SET unreferenced_at = ${now}
    WHERE did = ${did} AND cid IN ${sqlList(cids)} AND unreferenced_at IS NULL AND NOT ${isReferenced()}`)
}

/** Rows changed before requests that read get a turn: these take some 20 ms. */
const ROWS_PER_TURN = 5000

/**
 * Start or stop every grace clock of the account according to its references. A clock that runs, and should, keeps its
 * start.
 */
export async function correctClocks(tx: Tx, did: Did, now: Millis): Promise<{ stopped: number; started: number }> {
  const corrected = { stopped: 0, started: 0 }
  for (let after = ''; ;) {
    const last = await tx.get<{ cid: string }>(sql`
      SELECT cid FROM blob WHERE did = ${did} AND cid > ${after} ORDER BY cid LIMIT 1 OFFSET ${ROWS_PER_TURN - 1}`)
    const some = sql`did = ${did} AND cid > ${after} AND ${last === null ? sql`1 = 1` : sql`cid <= ${last.cid}`}`
    corrected.stopped += await tx.run(sql`
      UPDATE blob SET unreferenced_at = NULL WHERE ${some} AND unreferenced_at IS NOT NULL AND ${isReferenced()}`)
    corrected.started += await tx.run(sql`
      UPDATE blob SET unreferenced_at = ${now} WHERE ${some} AND unreferenced_at IS NULL AND NOT ${isReferenced()}`)
    if (last === null) return corrected
    after = last.cid
    await tx.turn()
  }
}

/**
 * A page of the account's blobs, ascending, after `after`. `isWrong`: `correctClocks` would start or stop the clock.
 */
export async function listClocks(
  reader: Reader,
  did: Did,
  after: string,
  limit: number,
): Promise<{ cid: string; isWrong: boolean }[]> {
  const rows = await reader.all<{ cid: string; runs: number; referenced: number }>(sql`
    SELECT cid, CASE WHEN unreferenced_at IS NULL THEN 0 ELSE 1 END AS runs, CASE WHEN ${isReferenced()} THEN 1 ELSE 0 END AS referenced
    FROM blob WHERE did = ${did} AND cid > ${after} ORDER BY cid LIMIT ${limit}`)
  return rows.map(({ cid, runs, referenced }) => ({ cid, isWrong: runs === referenced }))
}

/** The media type that one of the owners gave the blob; null if it has no owner. */
export async function findMimeType(reader: Reader, cid: string): Promise<string | null> {
  const row = await reader.get<{ mimeType: string }>(
    sql`SELECT mime_type AS "mimeType" FROM blob WHERE cid = ${cid} LIMIT 1`,
  )
  return row && row.mimeType
}

/** What the rows of all owners say about a blob. */
export interface Ownership {
  /**
   * Whether another account may be given the blob because its records refer to it. Not if operators withhold the blob
   * from the readers of any owner, and not if all owners keep it to themselves, in spaces or in uploads without
   * references: otherwise, anyone who knows its CID could read it.
   */
  isFree: boolean
  size: number
}

/** By CID. Blobs without an owner are missing. */
export async function ownershipsOf(reader: Reader, cids: readonly string[]): Promise<Map<string, Ownership>> {
  const rows = await reader.all<{ cid: string; withheld: number; open: number; size: number }>(sql`
    SELECT cid, COUNT(takedown_ref) AS withheld, COUNT(CASE WHEN unreferenced_at IS NULL THEN 1 END) AS "open",
      MAX(size) AS size FROM blob WHERE cid IN ${sqlList(cids)} GROUP BY cid`)
  return new Map(rows.map(({ cid, withheld, open, size }) => [cid, { isFree: withheld === 0 && open > 0, size }]))
}

/** Whether operators withhold the blob from the readers of any owner. */
export const isWithheld = async (reader: Reader, cid: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 AS one FROM blob WHERE cid = ${cid} AND takedown_ref IS NOT NULL LIMIT 1`)) !== null

/** By account, the revision at which references were last compared with records. */
export async function findReconciled(reader: Reader, dids: readonly Did[]): Promise<Map<Did, string>> {
  const rows = await reader.all<{ did: Did; rev: string }>(
    sql`SELECT did, rev FROM blob_reconciled WHERE did IN ${sqlList(dids)}`,
  )
  return new Map(rows.map(({ did, rev }) => [did, rev]))
}

/** `accounts` must not be empty. */
export async function upsertReconciled(tx: Tx, accounts: readonly { did: Did; rev: string }[]): Promise<void> {
  const rows = accounts.map(({ did, rev }) => [did, rev])
  await tx.run(
    sql`INSERT INTO blob_reconciled (did, rev) VALUES ${sqlRows(rows)} ON CONFLICT (did) DO UPDATE SET rev = excluded.rev`,
  )
}

/** Delete all blobs of an account. Returns the CIDs that now have no owner; their files must be removed. */
export async function deleteAllBlobs(tx: Tx, did: Did, now: Millis): Promise<string[]> {
  await tx.run(sql`DELETE FROM blob_reconciled WHERE did = ${did}`)
  await deleteQuarantines(tx, did)
  await deleteAllSpaceReferences(tx, did)
  const removals: string[] = []
  const some = sql`(SELECT cid FROM blob WHERE did = ${did} LIMIT ${ROWS_PER_TURN})`
  for (;;) {
    const deleted = await tx.all<{ cid: string }>(
      sql`DELETE FROM blob WHERE did = ${did} AND cid IN ${some} RETURNING cid`,
    )
    removals.push(...(await recordRemovals(tx, deleted, now)))
    if (deleted.length < ROWS_PER_TURN) return removals
    await tx.turn()
  }
}

export interface ExpiredBlob {
  did: Did
  cid: string
  unreferencedAt: Millis
}

/** Sorts before every expired blob. */
export const beforeExpired: ExpiredBlob = { unreferencedAt: -1, did: '' as Did, cid: '' }

/**
 * A page of blobs whose grace clock started at `until` or before, oldest first, after `after`. Blobs that are taken
 * down, or to which records in spaces refer, are kept (`isKept`). They stay in this list, in any number.
 */
export async function listExpired(
  reader: Reader,
  until: Millis,
  after: ExpiredBlob,
  limit: number,
): Promise<(ExpiredBlob & { isKept: boolean })[]> {
  const rows = await reader.all<ExpiredBlob & { kept: number }>(sql`
    SELECT did, cid, unreferenced_at AS "unreferencedAt",
      CASE WHEN takedown_ref IS NOT NULL OR ${isHeldBySpace()} THEN 1 ELSE 0 END AS kept FROM blob
    WHERE unreferenced_at IS NOT NULL AND unreferenced_at <= ${until}
      AND (unreferenced_at, did, cid) > (${after.unreferencedAt}, ${after.did}, ${after.cid})
    ORDER BY unreferenced_at, did, cid LIMIT ${limit}`)
  return rows.map(({ kept, ...blob }) => ({ ...blob, isKept: kept === 1 }))
}

/** Delete those blobs that are still expired and unreferenced. `blobs` must not be empty. */
export async function deleteExpired(
  tx: Tx,
  blobs: readonly ExpiredBlob[],
  { until, now }: { until: Millis; now: Millis },
): Promise<{ deleted: number; removals: string[] }> {
  const deleted = await tx.all<{ cid: string }>(sql`
    DELETE FROM blob
    WHERE (did, cid) IN (VALUES ${sqlRows(blobs.map(({ did, cid }) => [did, cid]))})
      AND unreferenced_at <= ${until} AND takedown_ref IS NULL AND NOT ${isReferenced()} AND NOT ${isHeldBySpace()}
    RETURNING cid`)
  return { deleted: deleted.length, removals: await recordRemovals(tx, deleted, now) }
}

async function recordRemovals(tx: Tx, deleted: readonly { cid: string }[], now: Millis): Promise<string[]> {
  if (deleted.length === 0) return []
  const cids = deleted.map(({ cid }) => cid)
  const owned = await ownedAmong(tx, cids)
  const removals = cids.filter((cid) => !owned.has(cid))
  await insertRemovals(tx, removals, now)
  return removals
}

/** Set or clear the takedown, which ends a quarantine. Returns false if the account has no such blob. */
export async function setBlobTakedown(
  tx: Tx,
  { did, cid, ref: given }: { did: Did; cid: string; ref: string | null },
): Promise<boolean> {
  const ref = storedTakedown(given)
  await endQuarantine(tx, did, cid, ref)
  return (await tx.run(sql`UPDATE blob SET takedown_ref = ${ref} WHERE did = ${did} AND cid = ${cid}`)) > 0
}

export function blobTakedown(reader: Reader, did: Did, cid: string): Promise<{ ref: string | null } | null> {
  return reader.get(sql`SELECT takedown_ref AS ref FROM blob WHERE did = ${did} AND cid = ${cid}`)
}

/**
 * Restart the grace of a blob that the account has, unless a record refers to it. Returns false if the account has no
 * such blob.
 */
export async function renewGrace(db: Database, did: Did, cid: string, now: Millis): Promise<boolean> {
  const owned = await db.get<{ unreferencedAt: Millis | null }>(
    sql`SELECT unreferenced_at AS "unreferencedAt" FROM blob WHERE did = ${did} AND cid = ${cid}`,
  )
  if (owned === null) return false
  if (owned.unreferencedAt === null) return true
  const renewed = await db.run(sql`
    UPDATE blob SET unreferenced_at = CASE WHEN unreferenced_at IS NULL THEN NULL ELSE ${now} END
    WHERE did = ${did} AND cid = ${cid}`)
  return renewed > 0
}

/** Total bytes of the account's blobs, and their number without those to which only records in spaces refer. */
export async function blobUsage(
  { db, config }: Pick<Context, 'db' | 'config'>,
  did: Did,
): Promise<{ count: number; bytes: number }> {
  return (await db.get<{ count: number; bytes: number }>(sql`
    SELECT COUNT(CASE WHEN unreferenced_at IS NOT NULL AND ${isHeldIfOn(config)} THEN NULL ELSE 1 END) AS count,
      CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes
    FROM blob WHERE did = ${did}`))!
}

/** The bytes of the account's blobs, and the quota that was set for them; null if none was. */
export async function blobRoom(reader: Reader, did: Did): Promise<{ bytes: number; maxBytes: number | null }> {
  return (await reader.get<{ bytes: number; maxBytes: number | null }>(sql`
    SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes, ${maxBlobBytesOf(did)} AS "maxBytes"
    FROM blob WHERE did = ${did}`))!
}

/** Whether one of the account's blobs has `size` bytes. */
export const ownsSize = async (reader: Reader, did: Did, size: number): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM blob WHERE did = ${did} AND size = ${size} LIMIT 1`)) !== null

export async function hasBlobs(reader: Reader): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM blob LIMIT 1`)) !== null
}

/** Whether any account owns the blob. If so, its file must stay. */
export async function hasOwner(reader: Reader, cid: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM blob WHERE cid = ${cid} LIMIT 1`)) !== null
}

/**
 * Give the account an uploaded blob. Its grace starts at `now` unless records already refer to it. A repeated upload
 * restarts the grace and replaces the type, but changes nothing if records refer to the blob.
 */
export async function upsertUpload(
  { config }: Context,
  tx: Tx,
  { did, cid, mimeType, size }: BlobRow,
  now: Millis,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at)
    VALUES (${did}, ${cid}, ${mimeType}, ${size}, ${now},
      CASE WHEN EXISTS (SELECT 1 FROM blob_reference r WHERE r.did = ${did} AND r.cid = ${cid}) THEN NULL ELSE ${now} END)
    ON CONFLICT (did, cid) DO UPDATE SET
      mime_type = CASE WHEN excluded.unreferenced_at IS NULL OR ${isHeldIfOn(config)}
        THEN blob.mime_type ELSE excluded.mime_type END,
      unreferenced_at = excluded.unreferenced_at`)
}

export const updateSize = (writer: Writer, did: Did, cid: string, size: number): Promise<number> =>
  writer.run(sql`UPDATE blob SET size = ${size} WHERE did = ${did} AND cid = ${cid}`)

export interface ReadableBlob {
  mimeType: string
  size: number
  isPermanent: boolean
}

/** Returns a blob that may be read; null if it does not exist or is taken down. `isModerator`: taken down or not. */
export async function findReadable(
  reader: Reader,
  did: Did,
  cid: string,
  isModerator = false,
): Promise<ReadableBlob | null> {
  const row = await reader.get<{ mimeType: string; size: number; unreferencedAt: Millis | null }>(sql`
    SELECT mime_type AS "mimeType", size, unreferenced_at AS "unreferencedAt" FROM blob
    WHERE did = ${did} AND cid = ${cid} AND ${isModerator ? sql`1 = 1` : sql`takedown_ref IS NULL`}`)
  return row && { mimeType: row.mimeType, size: row.size, isPermanent: row.unreferencedAt === null }
}

interface AccountBlob extends StoredBlob {
  mimeType: string
  isTakenDown: boolean
}

/** A page of the blobs that an account owns, ascending by CID, after `after`. */
export async function accountBlobs(reader: Reader, did: Did, after: string, limit: number): Promise<AccountBlob[]> {
  const rows = await reader.all<StoredBlob & { mimeType: string; takedownRef: string | null }>(sql`
    SELECT cid, size, mime_type AS "mimeType", takedown_ref AS "takedownRef" FROM blob
    WHERE did = ${did} AND cid > ${after} ORDER BY cid LIMIT ${limit}`)
  return rows.map(({ takedownRef, ...blob }) => ({ ...blob, isTakenDown: takedownRef !== null }))
}

/** Every stored blob, ascending by CID, in pages; yields to other work between pages. */
export async function* storedBlobs(reader: Reader, pageSize: number): AsyncGenerator<StoredBlob[]> {
  for (let last = ''; ;) {
    const page = await reader.all<StoredBlob>(sql`
      SELECT cid, MAX(size) AS size FROM blob WHERE cid > ${last} GROUP BY cid ORDER BY cid LIMIT ${pageSize}`)
    if (page.length === 0) return
    last = page.at(-1)!.cid
    yield page
    await setImmediate()
  }
}

/** Returns those CIDs that some account owns. */
export async function ownedAmong(reader: Reader, cids: readonly string[]): Promise<Set<string>> {
  const owned = new Set<string>()
  for (const piece of inPieces(cids)) {
    for (const { cid } of await reader.all<{ cid: string }>(
      sql`SELECT DISTINCT cid FROM blob WHERE cid IN ${sqlList(piece)}`,
    ))
      owned.add(cid)
  }
  return owned
}
