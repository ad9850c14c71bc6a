/** SQL of the `escrow_share` and `escrow_audit` tables. */
import { sql, type Reader, type Tx } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

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
  /** Hash of the code that opened it. */
  openedBy: string
}

type Row = Omit<StoredShare, 'release'> & { [Member in keyof Release]: Release[Member] | null }

/** Store a share. An earlier one is replaced, and a release of it that is in flight ends. */
export const putShare = (tx: Tx, did: Did, wrapped: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO escrow_share (did, share_wrapped, held_since) VALUES (${did}, ${wrapped}, ${now})
    ON CONFLICT (did) DO UPDATE SET share_wrapped = excluded.share_wrapped, held_since = excluded.held_since,
      requested_at = NULL, collectable_at = NULL, opened_by = NULL`)

export async function findShare(reader: Reader, did: Did): Promise<StoredShare | null> {
  const row = await reader.get<Row>(sql`
    SELECT did, share_wrapped AS wrapped, held_since AS "heldSince", requested_at AS "requestedAt", collectable_at AS "collectableAt",
      opened_by AS "openedBy"
    FROM escrow_share WHERE did = ${did}`)
  if (row === null) return null
  const { wrapped, heldSince, requestedAt, collectableAt, openedBy } = row
  const isOpen = requestedAt !== null && collectableAt !== null && openedBy !== null
  return { did, wrapped, heldSince, release: isOpen ? { requestedAt, collectableAt, openedBy } : null }
}

export const deleteShareRow = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM escrow_share WHERE did = ${did}`)

/** Open a release, or start the one in flight anew. */
export const putRelease = (tx: Tx, did: Did, { requestedAt, collectableAt, openedBy }: Release): Promise<number> =>
  tx.run(sql`
    UPDATE escrow_share SET requested_at = ${requestedAt}, collectable_at = ${collectableAt}, opened_by = ${openedBy} WHERE did = ${did}`)

/** End the release in flight. Returns 0 if there is none. */
export const clearRelease = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`
    UPDATE escrow_share SET requested_at = NULL, collectable_at = NULL, opened_by = NULL WHERE did = ${did} AND requested_at IS NOT NULL`)

/** Position of a release in the list of all. */
export interface ReleasePlace {
  did: Did
  requestedAt: Millis
}

/** Returns the releases in flight after a place, or the first ones if it is null; newest first. */
export function listReleases(
  reader: Reader,
  place: ReleasePlace | null,
  limit: number,
): Promise<(ReleasePlace & Pick<Release, 'collectableAt'>)[]> {
  const condition = place === null ? sql`requested_at IS NOT NULL` : sql`(requested_at, did) < (${place.requestedAt}, ${place.did})`
  return reader.all(sql`
    SELECT did, requested_at AS "requestedAt", collectable_at AS "collectableAt"
    FROM escrow_share WHERE ${condition} ORDER BY requested_at DESC, did DESC LIMIT ${limit}`)
}

export const countReleases = async (reader: Reader): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM escrow_share WHERE requested_at IS NOT NULL`))!.count

export type EscrowEvent = 'deposited' | 'rotated' | 'deleted' | 'release_requested' | 'release_cancelled' | 'released'

/** Add a row to the log of the account. `detail` must hold nothing secret. */
export async function insertEscrowEvent(tx: Tx, did: Did, event: EscrowEvent, now: Millis, detail?: object): Promise<void> {
  await tx.run(sql`
    INSERT INTO escrow_audit (id, did, event, detail, created_at)
    VALUES (${crypto.randomUUID()}, ${did}, ${event}, ${detail === undefined ? null : JSON.stringify(detail)}, ${now})`)
}

export const deleteEscrowEventsOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM escrow_audit WHERE did = ${did}`)
