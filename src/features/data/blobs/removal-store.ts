/**
 * The SQL of table `blob_removal`: blobs that have lost their last owner, until they are removed from the storage.
 *
 * In a storage of one server, a row is a removal that is still to be done; it is deleted after the file. In a shared
 * storage, it is a tombstone with three states: waiting, taken by a server that is removing the object, and removed. It
 * is deleted when another upload brings the blob back, or some time after the removal.
 */
import type { Millis } from '../../../protocol/identifiers.ts'
import { inPieces, sql, sqlList, sqlRows, type Reader, type Tx } from '../../../platform/database/database.ts'

/**
 * Note that blobs have lost their owner. Restarts the wait of pending removals; removals in progress are not affected.
 */
export async function insertRemovals(tx: Tx, cids: readonly string[], now: Millis): Promise<void> {
  for (const piece of inPieces(cids)) {
    await tx.run(sql`
      INSERT INTO blob_removal (cid, unowned_at) VALUES ${sqlRows(piece.map((cid) => [cid, now]))}
      ON CONFLICT (cid) DO UPDATE SET unowned_at = excluded.unowned_at, taken_at = NULL, removed_at = NULL
      WHERE blob_removal.taken_at IS NULL OR blob_removal.removed_at IS NOT NULL`)
  }
}

/** Note that a blob has no owner, unless an account owns it. */
export async function insertRemovalOfUnowned(tx: Tx, cid: string, now: Millis): Promise<void> {
  const isOwned = (await tx.get(sql`SELECT 1 FROM blob WHERE cid = ${cid} LIMIT 1`)) !== null
  if (!isOwned) await insertRemovals(tx, [cid], now)
}

/** A page of blobs still to be removed, ascending, after `after`. */
export async function listRemovals(reader: Reader, after: string, limit: number): Promise<string[]> {
  const rows = await reader.all<{ cid: string }>(
    sql`SELECT cid FROM blob_removal WHERE cid > ${after} ORDER BY cid LIMIT ${limit}`,
  )
  return rows.map((row) => row.cid)
}

export async function isDueForRemoval(reader: Reader, cid: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM blob_removal WHERE cid = ${cid}`)) !== null
}

export async function deleteRemovals(tx: Tx, cids: readonly string[]): Promise<void> {
  for (const piece of inPieces(cids)) await tx.run(sql`DELETE FROM blob_removal WHERE cid IN ${sqlList(piece)}`)
}

export interface Tombstone {
  takenAt: Millis | null
  removedAt: Millis | null
  /** Names the removal; null until the tombstone is taken. */
  taker: string | null
}

export function findTombstone(reader: Reader, cid: string): Promise<Tombstone | null> {
  return reader.get(sql`
    SELECT taken_at AS "takenAt", removed_at AS "removedAt", taker FROM blob_removal WHERE cid = ${cid}`)
}

/** Delete the tombstone of a blob that has an owner again. Returns it as it was; null if there was none. */
export function deleteTombstone(tx: Tx, cid: string): Promise<Tombstone | null> {
  return tx.get(sql`
    DELETE FROM blob_removal WHERE cid = ${cid} RETURNING taken_at AS "takenAt", removed_at AS "removedAt", taker`)
}

export interface Taking {
  cids: readonly string[]
  taker: string
  now: Millis
  /** Tombstones that have waited since this time may be taken. */
  unownedUntil: Millis
  /** A taker that began before this time and has not finished counts as dead. */
  takenUntil: Millis
}

/**
 * Take the due tombstones of blobs without an owner. Returns their CIDs, whose objects the taker then removes; until it
 * has, no upload relies on them. Deletes the tombstones of blobs that have an owner.
 *
 * A tombstone also counts as due if its time is as far in the future as it should be in the past: it was written before
 * the clock was set back.
 */
export async function takeTombstones(
  tx: Tx,
  { cids, taker, now, unownedUntil, takenUntil }: Taking,
): Promise<string[]> {
  const isOwned = sql`EXISTS (SELECT 1 FROM blob WHERE blob.cid = blob_removal.cid)`
  const unownedFrom = 2 * now - unownedUntil
  const takenFrom = 2 * now - takenUntil
  const isDue = sql`cid IN ${sqlList(cids)} AND removed_at IS NULL AND (unowned_at <= ${unownedUntil} OR unowned_at >= ${unownedFrom})
    AND (taken_at IS NULL OR taken_at <= ${takenUntil} OR taken_at >= ${takenFrom})`
  await tx.run(sql`DELETE FROM blob_removal WHERE ${isDue} AND ${isOwned}`)
  const taken = await tx.all<{ cid: string }>(sql`
    UPDATE blob_removal SET taken_at = ${now}, taker = ${taker} WHERE ${isDue} AND NOT ${isOwned} RETURNING cid`)
  return taken.map(({ cid }) => cid)
}

/** Note that the objects of taken tombstones are removed. */
export async function finishTombstones(
  tx: Tx,
  { cids, taker, now }: Pick<Taking, 'cids' | 'taker' | 'now'>,
): Promise<void> {
  await tx.run(sql`UPDATE blob_removal SET removed_at = ${now} WHERE cid IN ${sqlList(cids)} AND taker = ${taker}`)
}

/** Delete tombstones of removals that ended by `until`. Returns how many. */
export function forgetTombstones(tx: Tx, until: Millis): Promise<number> {
  return tx.run(sql`DELETE FROM blob_removal WHERE removed_at IS NOT NULL AND removed_at <= ${until}`)
}
