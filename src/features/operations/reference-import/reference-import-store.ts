/** The SQL of `reference_import` and `reference_import_account`: how far moves of whole servers have come. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface Move {
  serverDid: string
  /** The newest number of the old event log. */
  lastSeq: number
  /** The first of its events that are taken over; null if none are. */
  eventsFrom: number | null
  finishedAt: Millis | null
}

export const findMove = (reader: Reader, serverDid: string): Promise<Move | null> =>
  reader.get(sql`
    SELECT server_did AS "serverDid", last_seq AS "lastSeq", events_from AS "eventsFrom", finished_at AS "finishedAt"
    FROM reference_import WHERE server_did = ${serverDid}`)

export const insertMove = (tx: Tx, { serverDid, lastSeq, eventsFrom }: Move, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO reference_import (server_did, begun_at, last_seq, events_from) VALUES (${serverDid}, ${now}, ${lastSeq}, ${eventsFrom})`)

/** End the move. What is known of single accounts is no longer needed. */
export async function finishMove(tx: Tx, serverDid: string, now: Millis): Promise<void> {
  await tx.run(sql`UPDATE reference_import SET finished_at = ${now} WHERE server_did = ${serverDid}`)
  await tx.run(sql`DELETE FROM reference_import_account`)
}

export const hasArrived = async (reader: Reader, did: Did): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM reference_import_account WHERE did = ${did}`)) !== null

export const noteArrival = (tx: Tx, did: Did, now: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO reference_import_account (did, imported_at) VALUES (${did}, ${now})`)
