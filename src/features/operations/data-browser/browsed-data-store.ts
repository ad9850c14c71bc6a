/**
 * SQL for the data browser: collections, records, blobs and commits of one account. Every statement reads at most a
 * page, however large the repository is.
 */
import { sql, type Reader, type Sql } from '../../../platform/database/database.ts'
import { spaceBlobs } from '../../data/blobs/blobs.ts'
import { rawParts } from '../../data/repo/repo.ts'
import type { Did, Millis, Tid } from '../../../protocol/identifiers.ts'

const { recordBytes, recordValue } = rawParts

const RECORD_KEY_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:~-'

const repoOf = (did: Did): Sql => sql`(SELECT id FROM repo WHERE did = ${did})`

export interface CountedCollection {
  collection: string
  /** At most one more than `maxCounted`. */
  records: number
}

/**
 * Returns a page of the collections that have records, in order of their paths, after `after`; null starts at the
 * first. Each collection takes one index step, from its first path to the first path after it. Counts at most
 * `maxCounted` + 1 records of each.
 */
export async function listCountedCollections(
  reader: Reader,
  did: Did,
  { after, limit, maxCounted }: { after: string | null; limit: number; maxCounted: number },
): Promise<CountedCollection[]> {
  const end = sql`substr(step.collection, 1, length(step.collection) - 1) || '0'`
  const rows = await reader.all<CountedCollection>(sql`
    WITH RECURSIVE step (collection, place) AS (
      SELECT rtrim(min(path), ${RECORD_KEY_CHARS}), 1 FROM record
      WHERE repo_id = ${repoOf(did)} AND path > ${after === null ? '' : `${after}0`}
      UNION ALL
      SELECT (SELECT rtrim(min(path), ${RECORD_KEY_CHARS}) FROM record WHERE repo_id = ${repoOf(did)} AND path > ${end}),
        place + 1
      FROM step WHERE step.collection IS NOT NULL AND place < ${limit}
    ) SELECT collection, (SELECT count(*) FROM (
        SELECT 1 FROM record WHERE repo_id = ${repoOf(did)} AND path > step.collection AND path < ${end}
        LIMIT ${maxCounted + 1}) AS counted) AS records
      FROM step WHERE collection IS NOT NULL ORDER BY place`)
  return rows.map(({ collection, records }) => ({ collection: collection.slice(0, -1), records }))
}

export interface BrowsedRecord {
  path: string
  cid: Uint8Array
  rev: Tid
  indexedAt: Millis
  takedownRef: string | null
  bytes: number
  /** Null if the value is larger than requested. */
  value: Uint8Array | null
}

/** A page of a collection, the highest record keys first, before `after`. Values of up to `maxValueBytes` are read. */
export const listBrowsedRecords = (
  reader: Reader,
  did: Did,
  {
    collection,
    after,
    limit,
    maxValueBytes,
  }: { collection: string; after: string | null; limit: number; maxValueBytes: number },
): Promise<BrowsedRecord[]> =>
  reader.all(sql`
    SELECT path, cid, rev, indexed_at AS "indexedAt", takedown_ref AS "takedownRef", ${recordBytes} AS bytes,
      CASE WHEN ${recordBytes} <= ${maxValueBytes} THEN ${recordValue} END AS value
    FROM record WHERE repo_id = ${repoOf(did)} AND path > ${`${collection}/`}
      AND path < ${after === null ? `${collection}0` : `${collection}/${after}`}
    ORDER BY path DESC LIMIT ${limit}`)

export interface BrowsedBlob {
  cid: string
  mimeType: string
  size: number
  uploadedAt: Millis
  takedownRef: string | null
}

/**
 * Returns a page of the blobs that an account owns, ascending by CID, after `after`. Leaves out blobs to which only
 * records in spaces refer, unless they are taken down or in quarantine.
 */
export const listBrowsedBlobs = (reader: Reader, did: Did, after: string, limit: number): Promise<BrowsedBlob[]> =>
  reader.all(sql`
    SELECT cid, mime_type AS "mimeType", size, uploaded_at AS "uploadedAt", takedown_ref AS "takedownRef"
    FROM blob WHERE did = ${did} AND cid > ${after} AND NOT ${spaceBlobs.areAlone()}
    ORDER BY cid LIMIT ${limit}`)

/** Paths of some records that refer to a blob. */
export async function recordsWithBlob(reader: Reader, did: Did, cid: string, limit: number): Promise<string[]> {
  const rows = await reader.all<{ record: string }>(sql`
    SELECT record FROM blob_reference WHERE did = ${did} AND cid = ${cid} ORDER BY record LIMIT ${limit}`)
  return rows.map(({ record }) => record)
}

/**
 * Returns CIDs of some blobs to which a record refers, whether or not they are here. Uses BETWEEN because with `=`,
 * SQLite would read all references of the account instead of using the index on records.
 */
export async function blobsOfRecord(reader: Reader, did: Did, path: string, limit: number): Promise<string[]> {
  const rows = await reader.all<{ cid: string }>(sql`
    SELECT cid FROM blob_reference WHERE did = ${did} AND record BETWEEN ${path} AND ${path} LIMIT ${limit}`)
  return rows.map(({ cid }) => cid)
}

/** Records by revision: those in the index on revisions, and those that it leaves out. */
const byRevision = (did: Did, select: Sql, condition: Sql): Sql => sql`
  SELECT ${select} FROM record WHERE repo_id = ${repoOf(did)} AND unlisted IS NULL AND ${condition}
  UNION ALL SELECT ${select} FROM record WHERE repo_id = ${repoOf(did)} AND unlisted IS NOT NULL AND ${condition}`

/** Returns a page of the revisions whose commits wrote records that still exist, newest first, before `after`. */
export async function listRevisions(reader: Reader, did: Did, after: string | null, limit: number): Promise<Tid[]> {
  const newest = (condition: Sql) =>
    sql`(SELECT max(rev) FROM (${byRevision(did, sql`max(rev) AS rev`, condition)}) AS newest)`
  const rows = await reader.all<{ rev: Tid }>(sql`
    WITH RECURSIVE step (rev, place) AS (
      SELECT ${newest(after === null ? sql`1 = 1` : sql`rev < ${after}`)}, 1
      UNION ALL
      SELECT ${newest(sql`rev < step.rev`)}, place + 1
      FROM step WHERE step.rev IS NOT NULL AND place < ${limit}
    ) SELECT rev FROM step WHERE rev IS NOT NULL ORDER BY place`)
  return rows.map(({ rev }) => rev)
}

/**
 * Returns paths of some records that are still as a commit wrote them. In no order, because an import may have written
 * all records. Uses BETWEEN because with `=`, SQLite would search all records of the repository.
 */
export async function pathsOfRevision(reader: Reader, did: Did, rev: Tid, limit: number): Promise<string[]> {
  const rows = await reader.all<{ path: string }>(
    sql`${byRevision(did, sql`path`, sql`rev BETWEEN ${rev} AND ${rev}`)} LIMIT ${limit}`,
  )
  return rows.map(({ path }) => path)
}
