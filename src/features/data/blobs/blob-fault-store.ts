/** The SQL of table `blob_fault`: what the last scrub found wrong with the bytes of blobs. */
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'

/** `unowned`: there are bytes, and no account has a row. */
export type BlobFault = 'missing' | 'damaged' | 'unowned'

/** CIDs of all blobs that are known to be faulty, with their faults. */
export async function faultyBlobs(reader: Reader): Promise<Map<string, BlobFault>> {
  const rows = await reader.all<{ cid: string; fault: BlobFault }>(sql`SELECT cid, fault FROM blob_fault`)
  return new Map(rows.map(({ cid, fault }) => [cid, fault]))
}

export const putBlobFault = (writer: Writer, cid: string, fault: BlobFault, now: Millis): Promise<number> =>
  writer.run(sql`
    INSERT INTO blob_fault (cid, fault, found_at) VALUES (${cid}, ${fault}, ${now})
    ON CONFLICT (cid) DO UPDATE SET fault = excluded.fault`)

export const forgetBlobFault = (writer: Writer, cid: string): Promise<number> =>
  writer.run(sql`DELETE FROM blob_fault WHERE cid = ${cid}`)

/** Accounts that own blobs of which a scrub found since then that their bytes are missing or damaged. */
export async function ownersOfFaulty(reader: Reader, since: Millis, limit: number): Promise<Did[]> {
  const rows = await reader.all<{ did: Did }>(sql`
    SELECT DISTINCT blob.did FROM blob_fault f JOIN blob ON blob.cid = f.cid
    WHERE f.fault <> 'unowned' AND f.found_at >= ${since} ORDER BY blob.did LIMIT ${limit}`)
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

/** Faulty blobs of an account, or to which its records refer, ascending by CID. */
export async function faultyBlobsOf(reader: Reader, did: Did, limit: number): Promise<FaultyBlob[]> {
  const rows = await reader.all<Omit<FaultyBlob, 'isOfSpaces'> & { spaces: number }>(sql`
    SELECT f.cid, f.fault, (SELECT min(r.record) FROM blob_reference r WHERE r.did = ${did} AND r.cid = f.cid) AS record,
      CASE WHEN EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = ${did} AND s.cid = f.cid) THEN 1 ELSE 0 END AS spaces
    FROM blob_fault f
    WHERE (f.fault <> 'unowned' AND EXISTS (SELECT 1 FROM blob b WHERE b.did = ${did} AND b.cid = f.cid))
      OR (f.fault = 'unowned' AND EXISTS (SELECT 1 FROM blob_reference r WHERE r.did = ${did} AND r.cid = f.cid)
        AND NOT EXISTS (SELECT 1 FROM blob b WHERE b.did = ${did} AND b.cid = f.cid))
    ORDER BY f.cid LIMIT ${limit}`)
  return rows.map(({ spaces, ...blob }) => ({ ...blob, isOfSpaces: blob.record === null && spaces === 1 }))
}
