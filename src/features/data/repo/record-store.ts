/** The SQL of records. A path is `collection/rkey`; the paths of one collection are adjacent. */
import {
  BYTES_PER_DELETION,
  inBoundedPages,
  inPieces,
  pieceOf,
  sql,
  sqlList,
  sqlRows,
  together,
  totalBytes,
  valueInPiece,
  type Beside,
  type Reader,
  type Sql,
  type Tx,
} from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import { Cid } from '../../../protocol/cid.ts'
import type { Did, Millis, Tid } from '../../../protocol/identifiers.ts'
import { framedBlocks, framedChunks, framingOf, isMisframed, type FramedRows, type Framing } from './framed-blocks.ts'
import { putLargeRecords, recordBytes, recordValue, valueBesideKey } from './large-records.ts'

export interface StoredRecord {
  path: string
  cid: Cid
  /** Revision of the commit that wrote it. */
  rev: Tid
  indexedAt: Millis
  takedownRef: string | null
  /** The record's block, in DAG-CBOR. */
  value: Uint8Array
}

export interface NewRecord {
  path: string
  cid: Cid
  /** URI or DID that a like, repost, follow or block is about; null for other records. */
  subject: string | null
  value: Uint8Array
  /**
   * Revision and time at which another server stored the record. If undefined, the record gets those of the present
   * write.
   */
  written?: { rev: Tid; at: Millis }
}

interface RecordRow {
  path: string
  cid: Uint8Array
  rev: Tid
  indexedAt: Millis
  takedownRef: string | null
  value: Uint8Array
}

const columns = sql`path, cid, rev, indexed_at AS "indexedAt", takedown_ref AS "takedownRef", ${recordValue} AS value`
const recordOf = (row: RecordRow): StoredRecord => ({ ...row, cid: new Cid(row.cid) })

/** Matches all paths of a collection: '0' is the character after '/'. */
const inCollection = (collection: string): Sql => sql`path > ${`${collection}/`} AND path < ${`${collection}0`}`

/**
 * Match the records that the indices on CIDs and on revisions contain, and the records that they do not contain yet. A
 * record would add an entry to both indices, each on a page of its own. On SQLite, the indices therefore leave new
 * records out, and commits add the records of their repository to the indices many at a time.
 */
const isListed = sql`unlisted IS NULL`
const isUnlisted = sql`unlisted IS NOT NULL`
/**
 * Matches all unlisted records of a repository. Without the condition on `rev`, SQLite would scan all of its records.
 */
const areUnlisted = sql`${isUnlisted} AND rev > ''`

/** Most records of a repository that the indices leave out. Reads by CID scan them. */
export const MAX_UNLISTED = 64

/** Adds the records of a repository to the indices that have left them out. */
export const listRecordsLeftOut = (tx: Tx, repoId: number): Promise<number> =>
  tx.run(sql`UPDATE record SET unlisted = NULL WHERE repo_id = ${repoId} AND ${areUnlisted}`)

export async function putRecords(
  tx: Tx,
  repoId: number,
  rev: Tid,
  now: Millis,
  records: readonly NewRecord[],
  { areListed, setsAside }: { areListed: boolean; setsAside: boolean },
): Promise<void> {
  for (const piece of inPieces(records)) {
    const rows = piece.map((record) => [
      repoId,
      record.path,
      record.cid.bytes,
      rev,
      now,
      record.subject,
      setsAside ? valueBesideKey(record) : record.value,
      framingOf(record.value),
      areListed ? null : 1,
    ])
    await tx.run(sql`
      INSERT INTO record (repo_id, path, cid, rev, indexed_at, subject, value, framing, unlisted) VALUES ${sqlRows(rows)}
      ON CONFLICT (repo_id, path) DO UPDATE SET
        cid = excluded.cid, rev = excluded.rev, indexed_at = excluded.indexed_at, subject = excluded.subject,
        value = excluded.value, framing = excluded.framing, unlisted = excluded.unlisted`)
  }
  if (setsAside) await putLargeRecords(tx, repoId, records)
}

/** Bytes of a row of `record` in addition to the value and the path. */
const ROW_BYTES = 70
/** Free bytes that a page of SQLite may have without being merged with its neighbours, with room for a record. */
const ROOM_BYTES = 1750
const FILLERS = 6
const filler = new Uint8Array(Math.floor(ROOM_BYTES / FILLERS) - ROW_BYTES)
const noCid = new Uint8Array()

/**
 * Makes room on the page behind a new record for the records that follow it, once in several commits: `count` counts
 * the new records. For SQLite alone, and for records at the end of their collection.
 *
 * When a page is full, SQLite balances it with its neighbours, which are full as well: four or five pages change, and
 * the next two records fill the page again. This function inserts fillers of the size of the next records and deletes
 * them at once. SQLite then balances the pages as if those records were there, so it happens a third as often.
 */
export async function makeRoom(
  tx: Tx,
  repoId: number,
  rev: Tid,
  { path, value }: Pick<NewRecord, 'path' | 'value'>,
  count: number,
): Promise<void> {
  const records = Math.round(ROOM_BYTES / (value.length + path.length + ROW_BYTES))
  if (records < 2 || count % records !== 0) return
  // Only the fillers sort between the two, because no record key has these characters.
  const [start, end] = [`${path} `, `${path}!`]
  const rows = Array.from({ length: FILLERS }, (_, i) => [repoId, start + i, noCid, rev, 0, filler, 1])
  await tx.run(sql`INSERT INTO record (repo_id, path, cid, rev, indexed_at, value, unlisted) VALUES ${sqlRows(rows)}`)
  await tx.run(sql`DELETE FROM record WHERE repo_id = ${repoId} AND path > ${start} AND path < ${end}`)
}

/**
 * Insert records that do not exist yet, with one statement each. Before a statement with many rows, SQLite saves every
 * page that it will change, in case the statement fails halfway; with indices on random values, that is a page for
 * every row.
 */
export async function addRecords(
  tx: Tx,
  repoId: number,
  rev: Tid,
  now: Millis,
  records: readonly NewRecord[],
  { setsAside }: { setsAside: boolean },
): Promise<void> {
  const insert = (record: NewRecord) => {
    const { path, cid, subject, written = { rev, at: now } } = record
    const value = setsAside ? valueBesideKey(record) : record.value
    return tx.run(sql`
      INSERT INTO record (repo_id, path, cid, rev, indexed_at, subject, value, framing)
      VALUES (${repoId}, ${path}, ${cid.bytes}, ${written.rev}, ${written.at}, ${subject}, ${value}, ${framingOf(record.value)})`)
  }
  for (const piece of inPieces(records)) await together(...piece.map(insert))
  if (setsAside) await putLargeRecords(tx, repoId, records)
}

export async function deleteRecords(tx: Tx, repoId: number, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await tx.run(sql`DELETE FROM record WHERE repo_id = ${repoId} AND path IN ${sqlList(paths)}`)
}

/** Returns the records that exist at these paths, in any order. */
export const findRecordsAt = async (
  reader: Reader,
  repoId: number,
  paths: readonly string[],
): Promise<StoredRecord[]> =>
  (
    await reader.all<RecordRow>(
      sql`SELECT ${columns} FROM record WHERE repo_id = ${repoId} AND path IN ${sqlList(paths)}`,
    )
  ).map(recordOf)

export async function findRecordCid(reader: Reader, repoId: number, path: string): Promise<Cid | null> {
  const row = await reader.get<{ cid: Uint8Array }>(
    sql`SELECT cid FROM record WHERE repo_id = ${repoId} AND path = ${path}`,
  )
  return row && new Cid(row.cid)
}

/**
 * Returns the paths of records in a collection that are about a subject: at most `limit`, and arbitrary ones if there
 * are more. If the query asked for an order, PostgreSQL might read the whole collection in that order.
 */
export async function findPathsAbout(
  reader: Reader,
  repoId: number,
  { collection, subject, limit }: { collection: string; subject: string; limit: number },
): Promise<string[]> {
  const rows = await reader.all<{ path: string }>(sql`
    SELECT path FROM record WHERE repo_id = ${repoId} AND subject = ${subject} AND ${inCollection(collection)} LIMIT ${limit}`)
  return rows.map(({ path }) => path).toSorted()
}

/** The id of an account's repository, for reads that do not need its head. */
const repoOf = (did: Did): Sql => sql`(SELECT id FROM repo WHERE did = ${did})`

/** Returns the record even if it was taken down; null if there is none. */
export async function readRecord(reader: Reader, did: Did, path: string): Promise<StoredRecord | null> {
  const row = await reader.get<RecordRow>(
    sql`SELECT ${columns} FROM record WHERE repo_id = ${repoOf(did)} AND path = ${path}`,
  )
  return row && recordOf(row)
}

export interface RecordRange {
  collection: string
  /**
   * Record key after which the page starts. If null, it starts at the first key, or at the last one if `descending`.
   */
  after: string | null
  descending: boolean
  limit: number
}

/** A record for public reads. `cid` stays in bytes because most CIDs are never printed. */
export type VisibleRecord = Pick<RecordRow, 'path' | 'cid' | 'value'>

/** A page of a collection, without records that were taken down. */
export const listRecords = (reader: Reader, did: Did, range: RecordRange): Promise<VisibleRecord[]> =>
  reader.all(sql`SELECT path, cid, ${recordValue} AS value FROM record WHERE ${inPage(did, range)}`)

/** A record without its value, of which only the length is read. */
export type RecordEntry = Pick<VisibleRecord, 'path' | 'cid'> & { bytes: number }

/** Like `listRecords`, without the values, which are most of its cost. */
export const listRecordEntries = (reader: Reader, did: Did, range: RecordRange): Promise<RecordEntry[]> =>
  reader.all(sql`SELECT path, cid, ${recordBytes} AS bytes FROM record WHERE ${inPage(did, range)}`)

function inPage(did: Did, { collection, after, descending, limit }: RecordRange): Sql {
  const start = `${collection}/${after ?? ''}`
  const range = descending
    ? sql`path > ${`${collection}/`} AND path < ${after === null ? `${collection}0` : start} AND takedown_ref IS NULL ORDER BY path DESC`
    : sql`path > ${start} AND path < ${`${collection}0`} AND takedown_ref IS NULL ORDER BY path`
  return sql`repo_id = ${repoOf(did)} AND ${range} LIMIT ${limit}`
}

/** Joins the record at a path to the row of its account; `cid` is null if there is none or it was taken down. */
export const visibleRecordAt = (path: string): Beside => ({
  columns: sql`, record.cid, ${recordValue} AS value`,
  tables: sql`LEFT JOIN repo ON repo.did = account.did
    LEFT JOIN record ON record.repo_id = repo.id AND record.path = ${path} AND record.takedown_ref IS NULL`,
})
export type RecordBeside = Pick<VisibleRecord, 'cid' | 'value'> | Record<'cid' | 'value', null>

/** A page of all records of a repository, in tree order. */
export async function listAllRecords(
  reader: Reader,
  repoId: number,
  after: string,
  limit: number,
): Promise<Pick<StoredRecord, 'path' | 'cid' | 'rev' | 'value'>[]> {
  const rows = await reader.all<RecordRow>(sql`
    SELECT path, cid, rev, ${recordValue} AS value FROM record
    WHERE repo_id = ${repoId} AND path > ${after} ORDER BY path LIMIT ${limit}`)
  return rows.map(recordOf)
}

/**
 * Like `listAllRecords`, but only as many records as can be decoded in one turn of the event loop: a large record is
 * only read as the first of a piece. `isEnd`: no records follow.
 */
export async function listPiece(
  reader: Reader,
  repoId: number,
  after: string,
  limit: number,
): Promise<{ records: Pick<StoredRecord, 'path' | 'cid' | 'rev' | 'value'>[]; isEnd: boolean }> {
  const rest = sql`record WHERE repo_id = ${repoId} AND path > ${after}`
  const found = await reader.all<Omit<RecordRow, 'value'> & { value: Uint8Array | null }>(sql`
    SELECT path, cid, rev, ${valueInPiece(sql`path = (SELECT min(path) FROM ${rest})`, { value: recordValue, bytes: recordBytes })}
    FROM ${rest} ORDER BY path LIMIT ${limit}`)
  const { rows, isEnd } = pieceOf(found, limit)
  return { records: rows.map(recordOf), isEnd }
}

/** Sorts after every path. As the path in `listRecordsSince`, it makes the page begin with the next commit. */
export const LAST_PATH = '~'
/** Most records, and bytes, read at once. */
const pageBounds = { rows: 500, bytes: 4 * 1024 ** 2 }

/** All record blocks of a repository, in tree order, as chunks of framed CAR sections. */
export const framedRecords = (reader: Reader, repoId: number): AsyncGenerator<Uint8Array> =>
  framedChunks({
    reader,
    rows: sql`FROM record WHERE repo_id = ${repoId}`,
    key: sql`path`,
    bytes: recordBytes,
    first: '',
    last: LAST_PATH,
    framed: async (after, upTo, which) =>
      (await reader.get<FramedRows>(sql`
        SELECT ${framedBlocks(which === 'small' ? sql`value` : recordValue, which)} FROM record
        WHERE repo_id = ${repoId} AND path > ${after} AND path <= ${upTo}`))!,
  })

/** Record blocks of commits after a revision, in pages. */
export async function* recordBlocksSince(reader: Reader, repoId: number, since: Tid): AsyncGenerator<Block[]> {
  type Row = Pick<RecordRow, 'rev' | 'path' | 'cid' | 'value'>
  const start: Pick<RecordRow, 'rev' | 'path'> = { rev: since, path: LAST_PATH }
  for (const kind of [isListed, isUnlisted]) {
    const page = ({ rev, path }: typeof start, limit: number) => sql`
      FROM record WHERE repo_id = ${repoId} AND ${kind} AND (rev, path) > (${rev}, ${path})
      ORDER BY rev, path LIMIT ${limit}`
    const pages = inBoundedPages(pageBounds, start, {
      bytes: (after, limit) => totalBytes(reader, sql`SELECT ${recordBytes} AS bytes ${page(after, limit)}`),
      read: (after, limit) =>
        reader.all<Row>(sql`SELECT rev, path, cid, ${recordValue} AS value ${page(after, limit)}`),
    })
    for await (const rows of pages) yield rows.map(blockOf)
  }
}

const blockOf = ({ cid, value }: Pick<RecordRow, 'cid' | 'value'>): Block => ({ cid: new Cid(cid), bytes: value })

/** A page of records in order of the commits that wrote them, after the record of `path` in commit `rev`. */
export async function listRecordsSince(
  reader: Reader,
  repoId: number,
  after: { rev: Tid; path: string },
  limit: number,
): Promise<StoredRecord[]> {
  const page = (condition: Sql) => sql`
    SELECT * FROM (SELECT ${columns} FROM record
      WHERE repo_id = ${repoId} AND ${condition} AND (rev, path) > (${after.rev}, ${after.path}) ORDER BY rev, path LIMIT ${limit}) AS page`
  const rows = await reader.all<RecordRow>(sql`
    ${page(isListed)} UNION ALL ${page(isUnlisted)} ORDER BY rev, path LIMIT ${limit}`)
  return rows.map(recordOf)
}

/** SQL: when the newest record of the account that `did` names was stored; null if it has none. */
export function newestWriteOf(did: Sql): Sql {
  const newest = (condition: Sql) => sql`
    SELECT * FROM (SELECT indexed_at AS at FROM record
      WHERE repo_id = (SELECT id FROM repo WHERE repo.did = ${did}) AND ${condition} ORDER BY rev DESC LIMIT 1) AS newest`
  return sql`(SELECT max(at) FROM (${newest(isListed)} UNION ALL ${newest(areUnlisted)}) AS kinds)`
}

/** Whether any stored record was written at revision `rev` or before. */
export async function anyRecordUpTo(reader: Reader, repoId: number, rev: Tid): Promise<boolean> {
  const any = (condition: Sql) =>
    sql`EXISTS (SELECT 1 FROM record WHERE repo_id = ${repoId} AND ${condition} AND rev <= ${rev})`
  return (await reader.get(sql`SELECT 1 WHERE ${any(isListed)} OR ${any(isUnlisted)}`)) !== null
}

/**
 * Returns the block of a record by its CID; null if there is none, or if the index has left the record out. A statement
 * for each CID takes half the time of one statement for many. With `=` or IN, SQLite would scan all records of the
 * repository instead of using the index on CIDs.
 */
export async function findRecordBlock(reader: Reader, repoId: number, { bytes: cid }: Cid): Promise<Uint8Array | null> {
  const row = await reader.get<{ value: Uint8Array }>(sql`
    SELECT ${recordValue} AS value FROM record
    WHERE repo_id = ${repoId} AND cid BETWEEN ${cid} AND ${cid} AND ${isListed} LIMIT 1`)
  return row && row.value
}

/** Returns the blocks of records with these CIDs that the index on CIDs has left out, in any order. */
export async function findBlocksLeftOut(reader: Reader, repoId: number, cids: readonly Cid[]): Promise<Block[]> {
  const rows = await reader.all<Pick<RecordRow, 'cid' | 'value'>>(sql`
    SELECT cid, ${recordValue} AS value FROM record
    WHERE repo_id = ${repoId} AND ${areUnlisted} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))}`)
  return rows.map(blockOf)
}

const RECORD_KEY_CHARS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:~-'

/** Ordinary repositories have a few dozen. */
const MAX_COLLECTIONS = 2000

/**
 * Collections that have records, sorted; the first 2000 if there are more. The query takes one index step per
 * collection: from its first path to the first path after it.
 */
export async function listCollections(reader: Reader, did: Did): Promise<string[]> {
  const rows = await reader.all<{ collection: string }>(sql`
    WITH RECURSIVE step (collection) AS (
      SELECT rtrim(min(path), ${RECORD_KEY_CHARS}) FROM record WHERE repo_id = ${repoOf(did)}
      UNION ALL
      SELECT (SELECT rtrim(min(path), ${RECORD_KEY_CHARS}) FROM record
        WHERE repo_id = ${repoOf(did)} AND path > substr(step.collection, 1, length(step.collection) - 1) || '0')
      FROM step WHERE step.collection IS NOT NULL
    ) SELECT collection FROM step WHERE collection IS NOT NULL LIMIT ${MAX_COLLECTIONS}`)
  return rows.map(({ collection }) => collection.slice(0, -1)).sort()
}

export async function countRecords(reader: Reader, repoId: number): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM record WHERE repo_id = ${repoId}`)
  return row!.count
}

/** A record without its value, of which `bytes` is the length. */
export interface RecordHead {
  path: string
  cid: Cid
  rev: Tid
  subject: string | null
  bytes: number
  /** Whether its stored framing does not match its block. */
  isMisframed: boolean
}

/** Records after `after`, up to and including `upTo`, in tree order. */
export async function listRecordHeads(
  reader: Reader,
  repoId: number,
  { after, upTo, limit }: { after: string; upTo: string; limit: number },
): Promise<RecordHead[]> {
  const rows = await reader.all<Pick<RecordRow, 'path' | 'cid' | 'rev'> & { subject: string | null } & Framing>(sql`
    SELECT path, cid, rev, subject, framing, ${recordBytes} AS size FROM record
    WHERE repo_id = ${repoId} AND path > ${after} AND path <= ${upTo} ORDER BY path LIMIT ${limit}`)
  return rows.map(({ path, cid, rev, subject, framing, size }) => ({
    path,
    cid: new Cid(cid),
    rev,
    subject,
    bytes: size,
    isMisframed: isMisframed({ framing, size }),
  }))
}

/** Set or clear (null) the takedown of a record. Returns 1, or 0 if there is no such record. */
export function updateRecordTakedown(tx: Tx, repoId: number, path: string, ref: string | null): Promise<number> {
  return tx.run(sql`UPDATE record SET takedown_ref = ${ref} WHERE repo_id = ${repoId} AND path = ${path}`)
}

/**
 * Copy takedowns from one repository to the records at the same paths in another, even if the records differ. Returns
 * how many records were taken down.
 *
 * With `IS NOT NULL` instead of `>= ''`, SQLite would scan all records instead of using the index on takedowns.
 */
export function copyTakedowns(tx: Tx, { from, to }: { from: number; to: number }): Promise<number> {
  return tx.run(sql`
    UPDATE record SET takedown_ref = (SELECT r.takedown_ref FROM record r WHERE r.repo_id = ${from} AND r.path = record.path)
    WHERE repo_id = ${to} AND path IN (SELECT path FROM record WHERE repo_id = ${from} AND takedown_ref >= '')`)
}

/**
 * Delete at most `limit` records, and fewer if they are large. Returns how many were deleted; 0 if there were none.
 *
 * The query for the lengths does not stop at the end of the repository: to find that end, SQLite would read whole
 * records, because their values are beside their keys.
 */
export async function deleteSomeRecords(tx: Tx, repoId: number, limit: number): Promise<number> {
  const next = await tx.all<{ repoId: number; path: string; bytes: number }>(sql`
    SELECT repo_id AS "repoId", path, length(value) AS bytes FROM record WHERE (repo_id, path) > (${repoId}, '')
    ORDER BY repo_id, path LIMIT ${limit}`)
  let last: string | null = null
  for (let i = 0, bytes = 0; next[i]?.repoId === repoId && bytes < BYTES_PER_DELETION; i++) {
    last = next[i]!.path
    bytes += next[i]!.bytes
  }
  return last === null ? 0 : tx.run(sql`DELETE FROM record WHERE repo_id = ${repoId} AND path <= ${last}`)
}
