/** SQL that lists the names of hosted accounts: handles, and did:web identities whose documents this server serves. */
import { sql, type Reader } from '../../../platform/database/database.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'

export interface HeldHandle {
  handle: Handle
  did: Did
}

/** Returns handles of active accounts that follow a handle in their order, or the first ones after an empty text. */
export const activeHandlesAfter = (reader: Reader, after: string, limit: number): Promise<HeldHandle[]> =>
  reader.all(sql`
    SELECT handle, did FROM account WHERE handle > ${after} AND deactivated_at IS NULL AND takedown_ref IS NULL
    UNION ALL
    SELECT f.handle, f.did FROM further_handle f JOIN account a ON a.did = f.did
    WHERE f.handle > ${after} AND a.deactivated_at IS NULL AND a.takedown_ref IS NULL
    ORDER BY handle LIMIT ${limit}`)

/** Returns hosted identities of active accounts that follow one in order, or the first ones after an empty text. */
export const hostedDidsAfter = async (reader: Reader, after: string, limit: number): Promise<Did[]> =>
  (
    await reader.all<{ did: Did }>(sql`
      SELECT w.did FROM web_document w JOIN account a ON a.did = w.did
      WHERE w.hosted_since IS NOT NULL AND w.did > ${after} AND a.deactivated_at IS NULL AND a.takedown_ref IS NULL
      ORDER BY w.did LIMIT ${limit}`)
  ).map(({ did }) => did)
