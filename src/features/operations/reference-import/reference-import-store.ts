/** The SQL of `reference_import` and `reference_import_account`: the progress of moves of whole servers. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

export interface Move {
  serverDid: string
  /** The newest number of the old event log. */
  lastSeq: number
  /** The first of its events that is taken over; null if none is. */
  eventsFrom: number | null
  /** When the signed-in browsers were brought here; null if they were not yet. */
  browsersAt: Millis | null
  finishedAt: Millis | null
}

export const findMove = (reader: Reader, serverDid: string): Promise<Move | null> =>
  reader.get(sql`
    SELECT server_did AS "serverDid", last_seq AS "lastSeq", events_from AS "eventsFrom", browsers_at AS "browsersAt",
      finished_at AS "finishedAt"
    FROM reference_import WHERE server_did = ${serverDid}`)

export const insertMove = (tx: Tx, { serverDid, lastSeq, eventsFrom }: Move, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO reference_import (server_did, begun_at, last_seq, events_from) VALUES (${serverDid}, ${now}, ${lastSeq}, ${eventsFrom})`)

export const noteBrowsers = (tx: Tx, serverDid: string, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE reference_import SET browsers_at = ${now} WHERE server_did = ${serverDid}`)

/** End the move, and forget the states of single accounts, which are no longer needed. */
export async function finishMove(tx: Tx, serverDid: string, now: Millis): Promise<void> {
  await tx.run(sql`UPDATE reference_import SET finished_at = ${now} WHERE server_did = ${serverDid}`)
  await tx.run(sql`DELETE FROM reference_import_account`)
}

export interface Arrival {
  did: Did
  /** As in `formerStateOf`; null if it is not known. */
  formerState: string | null
}

const arrival = sql`SELECT did, former_state AS "formerState" FROM reference_import_account`

export const findArrival = (reader: Reader, did: Did): Promise<Arrival | null> =>
  reader.get<Arrival>(sql`${arrival} WHERE did = ${did}`)

/** Returns arrivals in the order of their DIDs. */
export const arrivalsAfter = (reader: Reader, did: string, limit: number): Promise<Arrival[]> =>
  reader.all<Arrival>(sql`${arrival} WHERE did > ${did} ORDER BY did LIMIT ${limit}`)

export const noteArrival = (tx: Tx, { did, formerState }: Arrival, now: Millis): Promise<number> =>
  tx.run(sql`
    INSERT INTO reference_import_account (did, imported_at, former_state) VALUES (${did}, ${now}, ${formerState})`)
