/**
 * Quarantine: until a given time, only moderators can read a blob. The blob is kept, and records may refer to it.
 *
 * In the row of the blob, a quarantine is a takedown with a reference of its own, so every read honours it without
 * another query.
 */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** The takedown reference of a blob in quarantine. */
export const QUARANTINE = 'quarantine'

/**
 * The reference under which a takedown is stored. With the reference of a quarantine, the takedown would have no end,
 * and records could refer to the blob.
 */
export const storedTakedown = (ref: string | null): string | null => (ref === QUARANTINE ? 'takedown' : ref)

export interface Quarantine {
  did: Did
  cid: string
  endsAt: Millis
  /** The takedown reference of the blob after the quarantine; null if it becomes readable again. */
  thenRef: string | null
}

/** Begin a quarantine, or change its end. Returns false if there is no such blob, or if it is taken down. */
export async function quarantineBlob(tx: Tx, { did, cid, endsAt, thenRef }: Quarantine, now: Millis): Promise<boolean> {
  const count = await tx.run(sql`
    UPDATE blob SET takedown_ref = ${QUARANTINE}
    WHERE did = ${did} AND cid = ${cid} AND (takedown_ref IS NULL OR takedown_ref = ${QUARANTINE})`)
  if (count === 0) return false
  await tx.run(sql`
    INSERT INTO blob_quarantine (did, cid, placed_at, ends_at, then_ref)
    VALUES (${did}, ${cid}, ${now}, ${endsAt}, ${thenRef})
    ON CONFLICT (did, cid) DO UPDATE SET ends_at = excluded.ends_at, then_ref = excluded.then_ref`)
  return true
}

/**
 * End a quarantine: `ref` is the takedown reference that the blob gets; null makes it readable again. Returns false if
 * there is no quarantine.
 */
export async function endQuarantine(tx: Tx, did: Did, cid: string, ref: string | null): Promise<boolean> {
  if ((await tx.run(sql`DELETE FROM blob_quarantine WHERE did = ${did} AND cid = ${cid}`)) === 0) return false
  await tx.run(sql`
    UPDATE blob SET takedown_ref = ${ref} WHERE did = ${did} AND cid = ${cid} AND takedown_ref = ${QUARANTINE}`)
  return true
}

export const findQuarantine = (
  reader: Reader,
  did: Did,
  cid: string,
): Promise<Pick<QuarantineRow, 'placedAt' | 'thenRef'> | null> =>
  reader.get(
    sql`SELECT placed_at AS "placedAt", then_ref AS "thenRef" FROM blob_quarantine WHERE did = ${did} AND cid = ${cid}`,
  )

export const deleteQuarantines = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM blob_quarantine WHERE did = ${did}`)

export interface QuarantineRow extends Quarantine {
  placedAt: Millis
  handle: string | null
}

/** A page of the blobs in quarantine, in the order in which their quarantines end. */
export function listQuarantines(
  reader: Reader,
  after: { endsAt: Millis; cid: string } | null,
  limit: number,
): Promise<QuarantineRow[]> {
  const { endsAt, cid } = after ?? { endsAt: -1, cid: '' }
  return reader.all(sql`
    SELECT did, cid, placed_at AS "placedAt", ends_at AS "endsAt", then_ref AS "thenRef",
      (SELECT handle FROM account WHERE account.did = blob_quarantine.did) AS handle
    FROM blob_quarantine WHERE (ends_at, cid) > (${endsAt}, ${cid}) ORDER BY ends_at, cid LIMIT ${limit}`)
}

export const hasDueQuarantine = async (reader: Reader, now: Millis): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM blob_quarantine WHERE ends_at <= ${now} LIMIT 1`)) !== null

/**
 * End at most `limit` quarantines that are due; each blob gets the reference in the row of its quarantine. Returns how
 * many.
 */
export async function endDueQuarantines(tx: Tx, now: Millis, limit: number): Promise<number> {
  const due = await tx.all<Pick<Quarantine, 'did' | 'cid' | 'thenRef'>>(sql`
    SELECT did, cid, then_ref AS "thenRef" FROM blob_quarantine WHERE ends_at <= ${now} ORDER BY ends_at LIMIT ${limit}`)
  for (const { did, cid, thenRef } of due) await endQuarantine(tx, did, cid, thenRef)
  return due.length
}
