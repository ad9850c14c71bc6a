/** The SQL of table `blob_fault`: what the last scrub found wrong with the bytes of blobs. */
import { sql, type Reader, type Sql, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** `unowned`: the bytes exist, but no account owns them. */
export type BlobFault = 'missing' | 'damaged' | 'unowned'

/** CIDs of all blobs that are known to be faulty, with their faults. */
export async function faultyBlobs(reader: Reader): Promise<Map<string, BlobFault>> {
  const rows = await reader.all<{ cid: string; fault: BlobFault }>(sql`SELECT cid, fault FROM blob_fault`)
  return new Map(rows.map(({ cid, fault }) => [cid, fault]))
}

export const isFaulty = async (reader: Reader, cid: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 AS one FROM blob_fault WHERE cid = ${cid}`)) !== null

export const putBlobFault = (writer: Writer, cid: string, fault: BlobFault, now: Millis): Promise<number> =>
  writer.run(sql`
    INSERT INTO blob_fault (cid, fault, found_at) VALUES (${cid}, ${fault}, ${now})
    ON CONFLICT (cid) DO UPDATE SET fault = excluded.fault`)

export const forgetBlobFault = (writer: Writer, cid: string): Promise<number> =>
  writer.run(sql`DELETE FROM blob_fault WHERE cid = ${cid}`)

/**
 * Accounts with blobs that a scrub found missing or damaged at `since` or later. The cross join makes SQLite begin with
 * the faults; to have accounts in order, it would begin with all blobs.
 */
export async function ownersOfFaulty(reader: Reader, since: Millis, limit: number): Promise<Did[]> {
  const rows = await reader.all<{ did: Did }>(sql`
    SELECT DISTINCT blob.did FROM blob_fault f CROSS JOIN blob
    WHERE blob.cid = f.cid AND f.fault <> 'unowned' AND f.found_at >= ${since} ORDER BY blob.did LIMIT ${limit}`)
  return rows.map(({ did }) => did)
}

export interface FaultyBlob {
  cid: string
  fault: BlobFault
  /** A record of the account that refers to it. */
  record: string | null
  /** Whether only records in spaces refer to it. */
  isOfSpaces: boolean
}

/**
 * Faulty blobs of an account, ascending by CID, and then faulty blobs to which its records refer although it has no
 * row. After the loss of a disk, there may be as many faults as blobs, so this does not read the faults of other
 * accounts.
 */
export async function faultyBlobsOf(reader: Reader, did: Did, limit: number): Promise<FaultyBlob[]> {
  const found: FaultyBlob[] = []
  for await (const { cid, fault } of faultsAmong(reader, sql`blob WHERE did = ${did}`))
    if (fault !== 'unowned' && found.push(await described(reader, did, cid, fault)) === limit) return found
  for await (const { cid, fault } of faultsAmong(reader, sql`blob_reference WHERE did = ${did}`)) {
    if (fault !== 'unowned' || (await isOwnedBy(reader, did, cid))) continue
    if (found.push(await described(reader, did, cid, fault)) === limit) return found
  }
  return found
}

interface Fault {
  cid: string
  fault: BlobFault
}

/**
 * Yields the faults of the CIDs in `rows`, ascending. Takes about as many steps as the shorter of the two lists has
 * entries.
 */
async function* faultsAmong(reader: Reader, rows: Sql): AsyncGenerator<Fault> {
  const next = (condition: Sql) =>
    reader.get<{ cid: string }>(sql`SELECT cid FROM ${rows} AND ${condition} ORDER BY cid LIMIT 1`)
  for (let row = await next(sql`cid > ${''}`); row !== null;) {
    const { cid } = row
    const fault = await reader.get<Fault>(
      sql`SELECT cid, fault FROM blob_fault WHERE cid >= ${cid} ORDER BY cid LIMIT 1`,
    )
    if (fault === null) return
    if (fault.cid === cid) yield fault
    row = await next(fault.cid === cid ? sql`cid > ${cid}` : sql`cid >= ${fault.cid}`)
  }
}

const isOwnedBy = async (reader: Reader, did: Did, cid: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 AS one FROM blob WHERE did = ${did} AND cid = ${cid}`)) !== null

async function described(reader: Reader, did: Did, cid: string, fault: BlobFault): Promise<FaultyBlob> {
  const row = await reader.get<{ record: string | null; spaces: number }>(sql`
    SELECT (SELECT min(r.record) FROM blob_reference r WHERE r.did = ${did} AND r.cid = ${cid}) AS record,
      CASE WHEN EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = ${did} AND s.cid = ${cid}) THEN 1 ELSE 0 END AS spaces`)
  const { record, spaces } = row!
  return { cid, fault, record, isOfSpaces: record === null && spaces === 1 }
}
