/** SQL of the `signup_place` table: the address ranges of recent sign-ups. */
import { sql, type Tx, type Writer } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export const deleteSignupPlaces = (writer: Writer, before: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM signup_place WHERE at < ${before}`)

export const insertSignupPlace = (tx: Tx, network: string, at: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO signup_place (network, at) VALUES (${network}, ${at})`)

export const countSignupsFrom = async (tx: Tx, network: string): Promise<number> =>
  (await tx.get<{ count: number }>(sql`SELECT count(*) AS count FROM signup_place WHERE network = ${network}`))!.count
