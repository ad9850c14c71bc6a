/** The SQL of lists of blobs: each CID takes one search for the next one, however many records refer to it. */
import { sql, type Reader, type Sql } from '../../../platform/database/database.ts'

/** Most CIDs that a statement looks at, however few of them it lists. */
export const MAX_SEEN = 1000

export interface ListedCids {
  /** Only records after this revision count. */
  since?: string
  /** CID to continue after. */
  cursor?: string
  limit: number
}

/**
 * Begins a statement with a table `seen` of the next CIDs and their `place`; the row after the last CID has none.
 * DISTINCT would read a row for each record.
 */
export function skipping({ table, isOwn }: { table: Sql; isOwn: Sql }, after: string, count: number): Sql {
  const next = (cid: Sql) => sql`(SELECT MIN(cid) FROM ${table} WHERE ${isOwn} AND cid > ${cid})`
  return sql`
    WITH RECURSIVE seen (place, cid) AS (
      SELECT 1, ${next(sql`${after}`)}
      UNION ALL SELECT place + 1, ${next(sql`seen.cid`)} FROM seen WHERE cid IS NOT NULL AND place < ${count})`
}

/**
 * A page of CIDs in a table of references, ascending, among the rows that `isOwn` matches. The table has an index on
 * these rows, `cid` and `rev`. Also returns the CID to continue after, null at the end. A page ends early, and may be
 * empty, if few of many blobs are new.
 */
export async function listCids(
  reader: Reader,
  { table, isOwn }: { table: Sql; isOwn: Sql },
  { since, cursor = '', limit }: ListedCids,
): Promise<{ cids: string[]; next: string | null }> {
  const maxSeen = since === undefined ? limit : MAX_SEEN
  const isNew =
    since === undefined
      ? sql`1`
      : sql`CASE WHEN EXISTS (SELECT 1 FROM ${table} r WHERE ${isOwn} AND r.cid = seen.cid AND r.rev > ${since}) THEN 1 ELSE 0 END`
  const seen = await reader.all<{ cid: string; isNew: number }>(sql`
    ${skipping({ table, isOwn }, cursor, maxSeen)}
    SELECT cid, ${isNew} AS "isNew" FROM seen WHERE cid IS NOT NULL ORDER BY place`)
  const found = seen.flatMap(({ cid, isNew: one }) => (one === 1 ? [cid] : []))
  const cids = found.slice(0, limit)
  const last = cids.length === limit ? cids.at(-1) : seen.length === maxSeen ? seen.at(-1)!.cid : null
  return { cids, next: last ?? null }
}
