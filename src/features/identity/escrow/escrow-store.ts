/** SQL of the `escrow_share` and `escrow_audit` tables. */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface StoredShare {
  did: Did
  wrapped: string
  heldSince: Millis
  release: Release | null
}

/** A release in flight. */
export interface Release {
  requestedAt: Millis
  /** From when the share may be collected. */
  collectableAt: Millis
  /** Hash of the code that opened the release. */
  openedBy: string
  /** Whether every request needs that code. */
  needsCode: boolean
  /** When the share was first handed out; null until then. */
  collectedAt: Millis | null
  /** How many times the share was handed out. */
  collections: number
}

/** How long a share that was handed out can be collected again, because the response may have been lost. */
const AGAIN_MILLIS = HOUR_MILLIS

interface Row {
  did: Did
  wrapped: string
  heldSince: Millis
  requestedAt: Millis | null
  collectableAt: Millis | null
  openedBy: string | null
  needsCode: number
  collectedAt: Millis | null
  collections: number
}

const noRelease = sql`requested_at = NULL, collectable_at = NULL, opened_by = NULL, needs_code = 0, collected_at = NULL, collections = 0`

/** Store a share in place of an earlier one, and end a release of the earlier one. */
export const putShare = (tx: Tx, did: Did, wrapped: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO escrow_share (did, share_wrapped, held_since) VALUES (${did}, ${wrapped}, ${now})
    ON CONFLICT (did) DO UPDATE SET share_wrapped = excluded.share_wrapped, held_since = excluded.held_since,
      ${noRelease}`)

/** Returns the share of an account. A release that has ended by `now` counts as none. */
export async function findShare(reader: Reader, did: Did, now: Millis): Promise<StoredShare | null> {
  const row = await reader.get<Row>(sql`
    SELECT did, share_wrapped AS wrapped, held_since AS "heldSince", requested_at AS "requestedAt", collectable_at AS "collectableAt",
      opened_by AS "openedBy", needs_code AS "needsCode", collected_at AS "collectedAt", collections
    FROM escrow_share WHERE did = ${did}`)
  if (row === null) return null
  const { wrapped, heldSince, requestedAt, collectableAt, openedBy, needsCode, collectedAt, collections } = row
  const hasRelease = requestedAt !== null && collectableAt !== null && openedBy !== null
  // The absolute difference, so that setting the clock back does not extend the time in which the share is handed out.
  const isOver = collectedAt !== null && Math.abs(now - collectedAt) >= AGAIN_MILLIS
  if (!hasRelease || isOver) return { did, wrapped, heldSince, release: null }
  return {
    did,
    wrapped,
    heldSince,
    release: { requestedAt, collectableAt, openedBy, needsCode: needsCode === 1, collectedAt, collections },
  }
}

export const deleteShareRow = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM escrow_share WHERE did = ${did}`)

/** Open a release, or restart the pending one. */
export const putRelease = (
  tx: Tx,
  did: Did,
  { requestedAt, collectableAt, openedBy, needsCode }: Release,
): Promise<number> =>
  tx.run(sql`
    UPDATE escrow_share SET requested_at = ${requestedAt}, collectable_at = ${collectableAt}, opened_by = ${openedBy},
      needs_code = ${needsCode ? 1 : 0}, collected_at = NULL, collections = 0
    WHERE did = ${did}`)

/** Note that the share was handed out. */
export const noteCollection = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE escrow_share SET collected_at = COALESCE(collected_at, ${now}), collections = collections + 1 WHERE did = ${did}`,
  )

/** End the release of a share. */
export const clearRelease = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`UPDATE escrow_share SET ${noRelease} WHERE did = ${did}`)

/** End releases whose share was handed out and can no longer be collected. */
export const clearOldReleases = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(
    sql`UPDATE escrow_share SET ${noRelease} WHERE requested_at IS NOT NULL AND collected_at <= ${now - AGAIN_MILLIS}`,
  )

/** Position of a release in the list of all. */
export interface ReleasePlace {
  did: Did
  requestedAt: Millis
}

/** Returns uncollected releases after a place, or the first ones if it is null; newest first. */
export function listReleases(
  reader: Reader,
  place: ReleasePlace | null,
  limit: number,
): Promise<(ReleasePlace & Pick<Release, 'collectableAt'>)[]> {
  const condition =
    place === null ? sql`requested_at IS NOT NULL` : sql`(requested_at, did) < (${place.requestedAt}, ${place.did})`
  return reader.all(sql`
    SELECT did, requested_at AS "requestedAt", collectable_at AS "collectableAt"
    FROM escrow_share WHERE ${condition} AND collected_at IS NULL ORDER BY requested_at DESC, did DESC LIMIT ${limit}`)
}

export const countReleases = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM escrow_share WHERE requested_at IS NOT NULL AND collected_at IS NULL`,
  ))!.count

export type EscrowEvent = 'deposited' | 'rotated' | 'deleted' | 'release_requested' | 'release_cancelled' | 'released'

/** Add a row to the log of the account. `detail` must hold nothing secret. */
export async function insertEscrowEvent(
  tx: Tx,
  did: Did,
  event: EscrowEvent,
  now: Millis,
  detail?: object,
): Promise<void> {
  await tx.run(sql`
    INSERT INTO escrow_audit (id, did, event, detail, created_at)
    VALUES (${crypto.randomUUID()}, ${did}, ${event}, ${detail === undefined ? null : JSON.stringify(detail)}, ${now})`)
}

export const deleteEscrowEventsOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM escrow_audit WHERE did = ${did}`)
