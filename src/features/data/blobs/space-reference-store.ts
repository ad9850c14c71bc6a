/** The SQL of table `space_blob_reference`: which records in spaces refer to which blobs. */
import { inPieces, sql, sqlList, sqlRows, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import type { ReferenceRow } from './reference-store.ts'

/** Matches a row of `blob` to which a record in a space refers. */
export const isHeldBySpace = (): Sql =>
  sql`EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = blob.did AND s.cid = blob.cid)`

/** Matches one that is for readers of spaces alone, unless moderators have it taken down or in quarantine. */
export const isOfSpacesAlone = (): Sql =>
  sql`(unreferenced_at IS NOT NULL AND takedown_ref IS NULL AND ${isHeldBySpace()})`

/** Matches where a record in a space refers to blobs; `record` is an expression for its path. */
export const isReferrer = (did: Did, space: SpaceUri, record: Sql): Sql =>
  sql`EXISTS (SELECT 1 FROM space_blob_reference s WHERE s.did = ${did} AND s.space = ${space} AND s.record = ${record})`

export async function insertSpaceReferences(
  tx: Tx,
  { did, space, rev }: { did: Did; space: SpaceUri; rev: Tid },
  references: readonly ReferenceRow[],
): Promise<void> {
  for (const piece of inPieces(references)) {
    const rows = piece.map(({ cid, record }) => [did, cid, space, record, rev])
    await tx.run(sql`
      INSERT INTO space_blob_reference (did, cid, space, record, rev) VALUES ${sqlRows(rows)}
      ON CONFLICT (did, cid, space, record) DO NOTHING`)
  }
}

/** Delete the references of the records. Returns those deleted. */
export async function deleteSpaceReferences(
  tx: Tx,
  did: Did,
  space: SpaceUri,
  records: readonly string[],
): Promise<ReferenceRow[]> {
  if (records.length === 0) return []
  return tx.all(sql`
    DELETE FROM space_blob_reference WHERE did = ${did} AND space = ${space} AND record IN ${sqlList(records)}
    RETURNING record, cid`)
}

/** The references of the records. */
export async function listSpaceReferences(
  reader: Reader,
  did: Did,
  space: SpaceUri,
  records: readonly string[],
): Promise<ReferenceRow[]> {
  if (records.length === 0) return []
  return reader.all(sql`
    SELECT record, cid FROM space_blob_reference
    WHERE did = ${did} AND space = ${space} AND record IN ${sqlList(records)}`)
}

export const countSpaceReferences = async (reader: Reader, did: Did, space: SpaceUri): Promise<number> =>
  (await reader.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM space_blob_reference WHERE did = ${did} AND space = ${space}`,
  ))!.count

/** The references of records in spaces in which the account has no repository. */
export const countSpaceReferencesOutside = async (reader: Reader, did: Did): Promise<number> =>
  (await reader.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM space_blob_reference s WHERE s.did = ${did}
      AND NOT EXISTS (SELECT 1 FROM space_repo r WHERE r.did = s.did AND r.space = s.space)`))!.count

/** Deletes all references of an account that is deleted with its blobs. */
export const deleteAllSpaceReferences = (tx: Tx, did: Did): Promise<number> =>
  tx.run(sql`DELETE FROM space_blob_reference WHERE did = ${did}`)

/** Whether a record of the account refers to the blob: in this space, or in any if it is null. */
export async function isReferredInSpace(
  reader: Reader,
  did: Did,
  cid: string,
  space: SpaceUri | null,
): Promise<boolean> {
  const within = space === null ? sql`1 = 1` : sql`space = ${space}`
  const row = await reader.get(
    sql`SELECT 1 FROM space_blob_reference WHERE did = ${did} AND cid = ${cid} AND ${within} LIMIT 1`,
  )
  return row !== null
}

/** Blobs that a request looks at, however few of them it returns. */
const MAX_SEEN = 1000

/**
 * A page of CIDs that the account's records in a space refer to, ascending; only records after `since` count. Returns
 * the CID to continue after too, null at the end: a page of few new blobs among many ends early, and may be empty.
 */
export async function listSpaceBlobs(
  reader: Reader,
  { did, space, since, cursor, limit }: { did: Did; space: SpaceUri; since?: Tid; cursor?: string; limit: number },
): Promise<{ cids: string[]; next: string | null }> {
  const maxSeen = since === undefined ? limit : MAX_SEEN
  const isOfSpace = sql`did = ${did} AND space = ${space}`
  // DISTINCT would read the row of each record.
  const nextAfter = (cid: Sql) => sql`(SELECT MIN(cid) FROM space_blob_reference WHERE ${isOfSpace} AND cid > ${cid})`
  const seen = await reader.all<{ cid: string; isNew: number }>(sql`
    WITH RECURSIVE seen (place, cid) AS (
      SELECT 1, ${nextAfter(sql`${cursor ?? ''}`)}
      UNION ALL SELECT place + 1, ${nextAfter(sql`seen.cid`)} FROM seen WHERE cid IS NOT NULL AND place < ${maxSeen})
    SELECT cid, CASE WHEN EXISTS (
      SELECT 1 FROM space_blob_reference s WHERE ${isOfSpace} AND s.cid = seen.cid AND s.rev > ${since ?? ''}
    ) THEN 1 ELSE 0 END AS "isNew" FROM seen WHERE cid IS NOT NULL ORDER BY place`)
  const cids = seen.flatMap(({ cid, isNew }) => (isNew === 1 ? [cid] : [])).slice(0, limit)
  const last = cids.length === limit ? cids.at(-1) : seen.length === maxSeen ? seen.at(-1)!.cid : null
  return { cids, next: last ?? null }
}
