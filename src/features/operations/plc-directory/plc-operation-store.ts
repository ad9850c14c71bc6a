/** SQL of the `plc_operation` table: the logs of the directory inside the server. */
import { sql, sqlList, type Reader, type Tx } from '../../../platform/database/database.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import type { AuditEntry, LogOperation } from '../../../protocol/plc.ts'

interface OperationRow {
  did: string
  cid: string
  operation: string
  nullified: number
  createdAt: Millis
}

const columns = sql`did, cid, operation, nullified, created_at AS "createdAt"`

const entryOf = ({ did, cid, operation, nullified, createdAt }: OperationRow): AuditEntry => ({
  did,
  operation: JSON.parse(operation) as LogOperation,
  cid,
  nullified: nullified === 1,
  createdAt: wireTime(createdAt),
})

/** Returns every operation of a DID, including nullified ones, oldest first; empty if the DID is not registered. */
export async function readLog(reader: Reader, did: string): Promise<AuditEntry[]> {
  const rows = await reader.all<OperationRow>(sql`
    SELECT ${columns} FROM plc_operation WHERE did = ${did} ORDER BY seq`)
  return rows.map(entryOf)
}

/** Returns at most `limit` operations of all DIDs that were added after an instant, oldest first. */
export async function readOperationsAfter(reader: Reader, after: Millis, limit: number): Promise<AuditEntry[]> {
  const rows = await reader.all<OperationRow>(sql`
    SELECT ${columns} FROM plc_operation WHERE created_at > ${after} ORDER BY seq LIMIT ${limit}`)
  return rows.map(entryOf)
}

export async function appendOperation(
  tx: Tx,
  { did, cid, operation, now }: { did: string; cid: string; operation: LogOperation; now: Millis },
): Promise<void> {
  await tx.run(sql`
    INSERT INTO plc_operation (seq, did, cid, operation, nullified, created_at)
    SELECT COALESCE(MAX(seq), 0) + 1, ${did}, ${cid}, ${JSON.stringify(operation)}, 0, ${now} FROM plc_operation`)
}

export async function nullify(tx: Tx, did: string, cids: readonly string[]): Promise<void> {
  await tx.run(sql`UPDATE plc_operation SET nullified = 1 WHERE did = ${did} AND cid IN ${sqlList(cids)}`)
}
