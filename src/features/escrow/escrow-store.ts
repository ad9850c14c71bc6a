/** SQL of the `escrow_share` and `escrow_audit` tables. */
import { sql, type Reader, type Tx } from '../../platform/database/database.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'

/** Stores a share. An earlier one is replaced, and a release of it that is in flight ends. */
export const putShare = (tx: Tx, did: Did, wrapped: string, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO escrow_share (did, share_wrapped, held_since) VALUES (${did}, ${wrapped}, ${now})
    ON CONFLICT (did) DO UPDATE SET share_wrapped = excluded.share_wrapped, held_since = excluded.held_since,
      requested_at = NULL, collectable_at = NULL, opened_by = NULL`)

export const hasShare = async (reader: Reader, did: Did): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM escrow_share WHERE did = ${did}`)) !== null

export const deleteShareRow = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM escrow_share WHERE did = ${did}`)

export type EscrowEvent = 'deposited' | 'rotated' | 'deleted' | 'release_requested' | 'release_cancelled' | 'released'

/** Adds a row to the audit log. `detail` must hold nothing that is secret. */
export async function insertEscrowEvent(tx: Tx, did: Did, event: EscrowEvent, now: Millis, detail?: object): Promise<void> {
  await tx.run(sql`
    INSERT INTO escrow_audit (id, did, event, detail, created_at)
    VALUES (${crypto.randomUUID()}, ${did}, ${event}, ${detail === undefined ? null : JSON.stringify(detail)}, ${now})`)
}

export const deleteEscrowEventsOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM escrow_audit WHERE did = ${did}`)
