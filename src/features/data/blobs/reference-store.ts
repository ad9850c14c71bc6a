/** The SQL of table `blob_reference`: which record refers to which blob, even if this server does not have the blob. */
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { sql, sqlList, sqlRows, type Reader, type Tx } from '../../../platform/database/database.ts'
import { listCids, type ListedCids } from './referenced-cids.ts'

export interface ReferenceRow {
  /** `collection/rkey`. */
  record: string
  cid: string
}

/** Rows in one INSERT, well below SQLite's limit of 32,766 parameters. */
const ROWS_PER_INSERT = 1000
/** Rows after which requests that read get a turn: changing them takes some 20 ms. */
const ROWS_PER_TURN = 5000

export async function insertReferences(tx: Tx, did: Did, rev: Tid, references: readonly ReferenceRow[]): Promise<void> {
  for (let start = 0; start < references.length; start += ROWS_PER_INSERT) {
    const rows = references.slice(start, start + ROWS_PER_INSERT).map(({ record, cid }) => [did, cid, record, rev])
    await tx.run(
      sql`INSERT INTO blob_reference (did, cid, record, rev) VALUES ${sqlRows(rows)} ON CONFLICT (did, cid, record) DO NOTHING`,
    )
    if ((start + rows.length) % ROWS_PER_TURN === 0) await tx.turn()
  }
}

/** Delete the references of the records. Returns those deleted. */
export function deleteReferences(tx: Tx, did: Did, records: readonly string[]): Promise<ReferenceRow[]> {
  return tx.all(
    sql`DELETE FROM blob_reference WHERE did = ${did} AND record IN ${sqlList(records)} RETURNING record, cid`,
  )
}

export async function deleteAllReferences(tx: Tx, did: Did): Promise<void> {
  const some = sql`(SELECT cid, record FROM blob_reference WHERE did = ${did} LIMIT ${ROWS_PER_TURN})`
  while (
    (await tx.run(sql`DELETE FROM blob_reference WHERE did = ${did} AND (cid, record) IN ${some}`)) === ROWS_PER_TURN
  )
    await tx.turn()
}

/** References of the records after `after`, up to and including `end`, or to the last record if `end` is null. */
export function listReferences(
  reader: Reader,
  did: Did,
  { after, end }: { after: string; end: string | null },
): Promise<ReferenceRow[]> {
  const upTo = end === null ? sql`1 = 1` : sql`record <= ${end}`
  return reader.all(
    sql`SELECT record, cid FROM blob_reference WHERE did = ${did} AND record > ${after} AND ${upTo} ORDER BY record`,
  )
}

/**
 * A page of CIDs that the account's records refer to, ascending, and the CID to continue after: see `listCids`.
 */
export const listReferencedCids = (
  reader: Reader,
  { did, ...listed }: ListedCids & { did: Did },
): Promise<{ cids: string[]; next: string | null }> =>
  listCids(reader, { table: sql`blob_reference`, isOwn: sql`did = ${did}` }, listed)

/** A page of referenced CIDs whose blob the account does not have, ascending, each with one of its records. */
export function listMissing(
  reader: Reader,
  { did, cursor, limit }: { did: Did; cursor?: string; limit: number },
): Promise<ReferenceRow[]> {
  return reader.all(sql`
    SELECT r.cid AS cid, MIN(r.record) AS record FROM blob_reference r
    WHERE r.did = ${did} AND r.cid > ${cursor ?? ''}
      AND NOT EXISTS (SELECT 1 FROM blob b WHERE b.did = r.did AND b.cid = r.cid)
    GROUP BY r.cid ORDER BY r.cid LIMIT ${limit}`)
}

/**
 * A page of CIDs that the account's records refer to, ascending, after `cursor`, each with whether the account has the
 * blob.
 */
export async function listReferenced(
  reader: Reader,
  { did, cursor, limit }: { did: Did; cursor: string; limit: number },
): Promise<{ cid: string; isOwned: boolean }[]> {
  const rows = await reader.all<{ cid: string; owned: number }>(sql`
    SELECT r.cid AS cid, CASE WHEN EXISTS (SELECT 1 FROM blob b WHERE b.did = ${did} AND b.cid = r.cid) THEN 1 ELSE 0 END AS owned
    FROM blob_reference r WHERE r.did = ${did} AND r.cid > ${cursor}
    GROUP BY r.cid ORDER BY r.cid LIMIT ${limit}`)
  return rows.map(({ cid, owned }) => ({ cid, isOwned: owned === 1 }))
}

export async function countReferencedCids(reader: Reader, did: Did): Promise<number> {
  return (await reader.get<{ count: number }>(
    sql`SELECT COUNT(DISTINCT cid) AS count FROM blob_reference WHERE did = ${did}`,
  ))!.count
}
