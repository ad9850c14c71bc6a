/** The SQL of table `blob_reference`: which record refers to which blob, even if this server does not have the blob. */
import { setImmediate } from 'node:timers/promises'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { inPieces, sql, sqlList, sqlRows, together, type Reader, type Tx } from '../../../platform/database/database.ts'
import { listCids, MAX_SEEN, skipping, type ListedCids } from './referenced-cids.ts'

export interface ReferenceRow {
  /** `collection/rkey`. */
  record: string
  cid: string
}

/** A reference is stored in the table and in two indices; the table of spaces has as many. */
const TREES = 3

/** Bytes of references in the database. `named`: the other names in each row, besides record and blob. */
export const referenceBytes = (references: readonly ReferenceRow[], named: string): number =>
  references.reduce((sum, { record, cid }) => sum + TREES * (named.length + record.length + cid.length), 0)

/** Rows in one INSERT, well below SQLite's limit of 32,766 parameters. */
const ROWS_PER_INSERT = 1000
/** Rows changed before requests that read get a turn: these take some 20 ms. */
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

/**
 * Insert many references, of any CIDs, with one statement each. Before a statement with many rows, SQLite saves every
 * page that the statement will change, which here is a page for each row.
 */
export async function addReferences(tx: Tx, did: Did, rev: Tid, references: readonly ReferenceRow[]): Promise<void> {
  const insert = ({ record, cid }: ReferenceRow) =>
    tx.run(
      sql`INSERT INTO blob_reference (did, cid, record, rev) VALUES (${did}, ${cid}, ${record}, ${rev}) ON CONFLICT (did, cid, record) DO NOTHING`,
    )
  const ordered = references.toSorted((a, b) => (a.cid < b.cid ? -1 : 1))
  for (let start = 0; start < ordered.length; start += ROWS_PER_TURN) {
    for (const piece of inPieces(ordered.slice(start, start + ROWS_PER_TURN))) await together(...piece.map(insert))
    await tx.turn()
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

/**
 * Looks at the next referenced CIDs after `cursor`. Returns those whose blob the account does not have, ascending, each
 * with one of its records; and the CID to continue after, null at the end. There may be more even if this page has
 * none.
 */
async function listMissing(
  reader: Reader,
  { did, cursor, limit }: { did: Did; cursor: string; limit: number },
): Promise<{ missing: ReferenceRow[]; next: string | null }> {
  const rows = await reader.all<{ cid: string; record: string | null }>(sql`
    ${skipping({ table: sql`blob_reference`, isOwn: sql`did = ${did}` }, cursor, MAX_SEEN)}
    SELECT cid, CASE WHEN NOT EXISTS (SELECT 1 FROM blob b WHERE b.did = ${did} AND b.cid = seen.cid)
      THEN (SELECT MIN(r.record) FROM blob_reference r WHERE r.did = ${did} AND r.cid = seen.cid) END AS record
    FROM seen WHERE cid IS NOT NULL ORDER BY place`)
  const found = rows.flatMap(({ cid, record }) => (record === null ? [] : [{ cid, record }]))
  const missing = found.slice(0, limit)
  const last = found.length > limit ? missing.at(-1)!.cid : rows.length === MAX_SEEN ? rows.at(-1)!.cid : null
  return { missing, next: last }
}

/** Most statements of one request, with turns for other requests in between. */
const MAX_SEARCHES = 20

/**
 * Like `listMissing`, for a request: continues until something is found, because some clients take an empty page for
 * the last one.
 */
export async function someMissing(
  reader: Reader,
  { did, cursor = '', limit }: { did: Did; cursor?: string; limit: number },
): ReturnType<typeof listMissing> {
  let found = await listMissing(reader, { did, cursor, limit })
  for (let i = 1; i < MAX_SEARCHES && found.missing.length === 0 && found.next !== null; i++) {
    await setImmediate()
    found = await listMissing(reader, { did, cursor: found.next, limit })
  }
  return found
}

/** Yields all missing blobs, in pages that may be empty. */
export async function* allMissing(reader: Reader, did: Did, after = ''): AsyncGenerator<ReferenceRow[]> {
  for (let cursor: string | null = after; cursor !== null;) {
    const { missing, next } = await listMissing(reader, { did, cursor, limit: MAX_SEEN })
    yield missing
    cursor = next
    await setImmediate()
  }
}

/**
 * A page of CIDs that the account's records refer to, ascending, after `cursor`, and whether the account has the blob
 * of each.
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

/** Rows counted before other requests get a turn. */
const ROWS_PER_COUNT = 2000

export async function countReferencedCids(reader: Reader, did: Did): Promise<number> {
  let rest = sql`cid > ${''}`
  for (let count = 0; ;) {
    const { cids, rows, last } = (await reader.get<{ cids: number; rows: number; last: string }>(sql`
      SELECT COUNT(DISTINCT cid) AS cids, COUNT(*) AS rows, MAX(cid) AS last
      FROM (SELECT cid FROM blob_reference WHERE did = ${did} AND ${rest} ORDER BY cid LIMIT ${ROWS_PER_COUNT}) AS page`))!
    if (rows < ROWS_PER_COUNT) return count + cids
    // The last CID may have more rows: they are skipped, or the CID is counted with the next page.
    count += Math.max(1, cids - 1)
    rest = cids === 1 ? sql`cid > ${last}` : sql`cid >= ${last}`
    await setImmediate()
  }
}
