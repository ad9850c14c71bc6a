/** SQL of the `own_operation` table: operations that this server has signed or sent to the directory. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/**
 * Notes are kept this long, because an operation that was signed here may reach the directory much later, through
 * another server.
 */
const KEPT_MILLIS = 30 * DAY_MILLIS

/** Note an operation. Returns false if it was already noted. */
export async function noteOwnOperation(writer: Writer, did: Did, cid: string, now: Millis): Promise<boolean> {
  const inserted = await writer.run(sql`
    INSERT INTO own_operation (did, cid, noted_at) VALUES (${did}, ${cid}, ${now}) ON CONFLICT (did, cid) DO NOTHING`)
  if (inserted === 0)
    await writer.run(sql`UPDATE own_operation SET noted_at = ${now} WHERE did = ${did} AND cid = ${cid}`)
  return inserted > 0
}

export const forgetOwnOperation = (writer: Writer, did: Did, cid: string): Promise<number> =>
  writer.run(sql`DELETE FROM own_operation WHERE did = ${did} AND cid = ${cid}`)

export async function ownOperations(reader: Reader, did: Did): Promise<Set<string>> {
  const rows = await reader.all<{ cid: string }>(sql`SELECT cid FROM own_operation WHERE did = ${did}`)
  return new Set(rows.map(({ cid }) => cid))
}

export const forgetOwnOperations = (writer: Writer, did: Did): Promise<number> =>
  writer.run(sql`DELETE FROM own_operation WHERE did = ${did}`)

export const forgetOldOperations = (writer: Writer, now: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM own_operation WHERE noted_at < ${now - KEPT_MILLIS}`)
