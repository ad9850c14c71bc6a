/** SQL of the `known_place` table: the programs and networks from which an account was signed in to. */
import type { Origin } from '../../../http/origin.ts'
import { sql, type Reader, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'

/** Maximum number of places kept per account; the oldest are deleted. */
const MAX_PLACES = 100

export const isKnownPlace = async (reader: Reader, did: Did, { openedWith, openedFrom }: Origin): Promise<boolean> =>
  (await reader.get(
    sql`SELECT 1 FROM known_place WHERE did = ${did} AND program = ${openedWith ?? ''} AND network = ${openedFrom ?? ''}`,
  )) !== null

/** Returns whether the account was signed in to from a network before, with whatever program. */
export const isKnownNetwork = async (reader: Reader, did: Did, network: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM known_place WHERE did = ${did} AND network = ${network} LIMIT 1`)) !== null

/** Returns 0 if the place is already known. */
export const insertPlace = (writer: Writer, did: Did, { openedAt, openedWith, openedFrom }: Origin): Promise<number> =>
  writer.run(sql`
    INSERT INTO known_place (did, program, network, seen_at) VALUES (${did}, ${openedWith ?? ''}, ${openedFrom ?? ''}, ${openedAt})
    ON CONFLICT (did, program, network) DO NOTHING`)

export const forgetOldPlaces = (writer: Writer, did: Did): Promise<number> =>
  writer.run(sql`
    DELETE FROM known_place WHERE did = ${did} AND seen_at < (SELECT min(seen_at) FROM
      (SELECT seen_at FROM known_place WHERE did = ${did} ORDER BY seen_at DESC LIMIT ${MAX_PLACES}) AS newest)`)

export const deletePlacesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM known_place WHERE did = ${did}`)
