/** SQL of the `signup_place` table: the address ranges of recent sign-ups. */
import { sql, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export const deleteSignupPlaces = (writer: Writer, before: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM signup_place WHERE at < ${before}`)

/** A sign-up that was counted. Within a network, no two have the same instant. */
export interface SignupPlace {
  network: string
  at: Millis
}

export const insertSignupPlace = (tx: Tx, { network, at }: SignupPlace): Promise<number> =>
  tx.run(sql`INSERT INTO signup_place (network, at) VALUES (${network}, ${at})`)

export const deleteSignupPlace = (writer: Writer, { network, at }: SignupPlace): Promise<number> =>
  writer.run(sql`DELETE FROM signup_place WHERE network = ${network} AND at = ${at}`)

/** Returns the number of counted sign-ups from a network, and the instant of the newest; 0 if there is none. */
export const signupsFrom = async (tx: Tx, network: string): Promise<{ count: number; newest: Millis }> =>
  (await tx.get<{ count: number; newest: Millis }>(
    sql`SELECT count(*) AS count, COALESCE(max(at), 0) AS newest FROM signup_place WHERE network = ${network}`,
  ))!
