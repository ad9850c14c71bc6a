/** SQL of the `further_handle` table: handles of an account beside the one in its row. */
import { sql, type Reader, type Tx } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'

/** Returns the further handles of an account, oldest first. */
export const furtherHandlesOf = async (reader: Reader, did: Did): Promise<Handle[]> =>
  (
    await reader.all<{ handle: Handle }>(
      sql`SELECT handle FROM further_handle WHERE did = ${did} ORDER BY created_at, handle`,
    )
  ).map(({ handle }) => handle)

/** Throws a unique violation if the handle is a further one of another account. */
export const insertFurtherHandle = (tx: Tx, did: Did, handle: Handle, createdAt: Millis): Promise<number> =>
  tx.run(sql`INSERT INTO further_handle (handle, did, created_at) VALUES (${handle}, ${did}, ${createdAt})`)

export const deleteFurtherHandle = (tx: Tx, did: Did, handle: Handle): Promise<number> =>
  tx.run(sql`DELETE FROM further_handle WHERE did = ${did} AND handle = ${handle}`)

export const deleteFurtherHandlesOf = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM further_handle WHERE did = ${did}`)
