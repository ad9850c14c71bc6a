/** The SQL of repositories in spaces: their rows, records and latest changes. A path is `collection/rkey`. */
import {
  firstBytes,
  inBoundedPages,
  inPieces,
  pieceOf,
  sql,
  sqlAnd,
  sqlList,
  sqlRows,
  totalBytes,
  valueInPiece,
  WriteConflict,
  type Reader,
  type Tx,
} from '../../../platform/database/database.ts'
import { Cid } from '../../../protocol/cid.ts'
import type { Did, Nsid, SpaceUri, Tid } from '../../../protocol/identifiers.ts'
import type { SpaceAddress } from '../../../protocol/space-address.ts'
import { spaceBlobs } from '../blobs/blobs.ts'

export interface SpaceRepo {
  id: number
  space: SpaceUri
  rev: Tid
  /** Number of records. */
  records: number
  /** The state of the set hash, before the final hash. */
  state: Uint8Array
}

/** What a write changes in the row of a repository. */
export type SpaceRepoState = Pick<SpaceRepo, 'rev' | 'records' | 'state'>

const columns = sql`id, space, rev, record_count AS records, state`

/** Returns null if the account has written nothing in the space. */
export const findSpaceRepo = (reader: Reader, did: Did, space: SpaceUri): Promise<SpaceRepo | null> =>
  reader.get(sql`SELECT ${columns} FROM space_repo WHERE did = ${did} AND space = ${space}`)

/** Stores in two tables whose the repository is. If one row is lost, the other still says so, and no other row does. */
export async function insertSpaceRepo(
  tx: Tx,
  did: Did,
  { uri, authority, type }: SpaceAddress,
  { rev, records, state }: SpaceRepoState,
): Promise<number> {
  const place = await tx.get<{ id: number }>(
    sql`INSERT INTO space_place (did, space) VALUES (${did}, ${uri}) RETURNING id`,
  )
  const { id } = place!
  await insertRow(tx, { id, did, uri, authority, type, rev, records, state })
  return id
}

interface NewSpaceRepo extends SpaceRepoState, Pick<SpaceAddress, 'uri' | 'authority' | 'type'> {
  id: number
  did: Did
}

async function insertRow(tx: Tx, { id, did, uri, authority, type, rev, records, state }: NewSpaceRepo): Promise<void> {
  await tx.run(sql`
    INSERT INTO space_repo (id, did, space, authority, type, rev, record_count, state)
    VALUES (${id}, ${did}, ${uri}, ${authority}, ${type}, ${rev}, ${records}, ${state})`)
}

/** Write the row of a repository and where it belongs, and delete all rows that say otherwise. */
export async function replaceSpaceRepo(tx: Tx, repo: NewSpaceRepo): Promise<void> {
  const { id, did, uri } = repo
  const isSame = sql`id = ${id} OR (did = ${did} AND space = ${uri})`
  await tx.run(sql`DELETE FROM space_repo WHERE ${isSame}`)
  await tx.run(sql`DELETE FROM space_place WHERE ${isSame}`)
  await tx.run(sql`INSERT INTO space_place (id, did, space) VALUES (${id}, ${did}, ${uri})`)
  await insertRow(tx, repo)
}

/** Throws `WriteConflict` if the repository has changed since it was read. */
export async function updateSpaceRepo(
  tx: Tx,
  before: Pick<SpaceRepo, 'id' | 'rev'>,
  { rev, records, state }: SpaceRepoState,
): Promise<void> {
  const changed = await tx.run(sql`
    UPDATE space_repo SET rev = ${rev}, record_count = ${records}, state = ${state}
    WHERE id = ${before.id} AND rev = ${before.rev}`)
  if (changed === 0) throw new WriteConflict('the repository in a space')
}

/** How many spaces the account has written in, and how many records it has in them. */
export async function spaceTotals(reader: Reader, did: Did): Promise<{ spaces: number; records: number }> {
  return (await reader.get<{ spaces: number; records: number }>(sql`
    SELECT COUNT(*) AS spaces, CAST(COALESCE(SUM(record_count), 0) AS BIGINT) AS records
    FROM space_repo WHERE did = ${did}`))!
}

/** Where a repository belongs: its row in `space_repo`, and its row in `space_place`. At least one of them exists. */
export interface SpacePlace {
  space: SpaceUri
  repo: (SpaceRepo & { authority: string; type: string }) | null
  /** Id of the repository according to `space_place`. */
  placeId: number | null
}

/**
 * A page of all places of an account, in order of the spaces' URIs, after `after`. One of the rows of a place may be
 * lost.
 */
export async function listSpacePlaces(reader: Reader, did: Did, after: string, limit: number): Promise<SpacePlace[]> {
  const page = sql`did = ${did} AND space > ${after} ORDER BY space LIMIT ${limit}`
  const repos = await reader.all<SpaceRepo & { authority: string; type: string }>(
    sql`SELECT ${columns}, authority, type FROM space_repo WHERE ${page}`,
  )
  const places = await reader.all<{ id: number; space: SpaceUri }>(sql`SELECT id, space FROM space_place WHERE ${page}`)
  const found = new Map<SpaceUri, SpacePlace>(
    repos.map((repo) => [repo.space, { space: repo.space, repo, placeId: null }]),
  )
  for (const { id, space } of places) found.set(space, { space, repo: found.get(space)?.repo ?? null, placeId: id })
  return [...found.values()].toSorted((a, b) => (a.space < b.space ? -1 : 1)).slice(0, limit)
}

/** A page of spaces that the account has written in, in order of their URIs, after `after`. */
export async function listSpacesOf(
  reader: Reader,
  did: Did,
  { type, authority, after, limit }: { type?: Nsid; authority?: Did; after: string; limit: number },
): Promise<SpaceUri[]> {
  const rows = await reader.all<{ space: SpaceUri }>(sql`
    SELECT space FROM space_repo WHERE ${sqlAnd([
      sql`did = ${did} AND space > ${after}`,
      ...(type === undefined ? [] : [sql`type = ${type}`]),
      ...(authority === undefined ? [] : [sql`authority = ${authority}`]),
    ])} ORDER BY space LIMIT ${limit}`)
  return rows.map(({ space }) => space)
}

// Records

export interface SpaceRecord {
  path: string
  cid: Cid
  /** The record's block, in DAG-CBOR. */
  value: Uint8Array
}

interface RecordRow extends Omit<SpaceRecord, 'cid'> {
  cid: Uint8Array
}

const recordOf = (row: RecordRow): SpaceRecord => ({ ...row, cid: new Cid(row.cid) })

export async function findSpaceRecord(reader: Reader, repoId: number, path: string): Promise<SpaceRecord | null> {
  const row = await reader.get<RecordRow>(
    sql`SELECT path, cid, value FROM space_record WHERE space_repo_id = ${repoId} AND path = ${path}`,
  )
  return row && recordOf(row)
}

/** A record before a write. */
export interface RecordBefore {
  cid: Cid
  /** Whether it refers to blobs. */
  refers: boolean
}

export interface RecordsBefore {
  /** The records that exist, by path. */
  records: ReadonlyMap<string, RecordBefore>
  /** How many references to blobs the records have together; `maxCounted` if there are more. */
  references: number
}

/** The records at these paths: at most as many as a request has writes. */
export async function spaceRecordsBefore(
  reader: Reader,
  did: Did,
  { id, space }: Pick<SpaceRepo, 'id' | 'space'>,
  paths: readonly string[],
  maxCounted: number,
): Promise<RecordsBefore> {
  const wanted = [...new Set(paths)]
  const rows = await reader.all<{ path: string; cid: Uint8Array; refers: number; count: number }>(sql`
    SELECT path, cid, CASE WHEN ${spaceBlobs.areReferredBy(did, space, sql`path`)} THEN 1 ELSE 0 END AS refers,
      ${spaceBlobs.countUpTo(maxCounted, did, space, wanted)} AS count
    FROM space_record WHERE space_repo_id = ${id} AND path IN ${sqlList(wanted)}`)
  return {
    records: new Map(rows.map(({ path, cid, refers }) => [path, { cid: new Cid(cid), refers: refers === 1 }])),
    references: rows[0]?.count ?? 0,
  }
}

/** A record without its value, of which `bytes` is the length. */
export interface SpaceEntry {
  path: string
  cid: Cid
  bytes: number
}

interface EntryRow extends Omit<SpaceEntry, 'cid'> {
  cid: Uint8Array
}

const entryColumns = sql`path, cid, length(value) AS bytes`
const entryOf = (row: EntryRow): SpaceEntry => ({ ...row, cid: new Cid(row.cid) })

/** Returns the records that exist at these paths, by path. */
export async function spaceEntriesAt(
  reader: Reader,
  repoId: number,
  paths: readonly string[],
): Promise<Map<string, SpaceEntry>> {
  const found = new Map<string, SpaceEntry>()
  for (const piece of inPieces(paths)) {
    const rows = await reader.all<EntryRow>(
      sql`SELECT ${entryColumns} FROM space_record WHERE space_repo_id = ${repoId} AND path IN ${sqlList(piece)}`,
    )
    for (const row of rows) found.set(row.path, entryOf(row))
  }
  return found
}

export interface SpaceRecordRange {
  /** All collections if null. */
  collection: Nsid | null
  /** Path after which the page begins, in its direction; null for the start. */
  after: string | null
  descending: boolean
  limit: number
}

/** A page of records in order of their paths, with the lengths of their values, and without the values. */
export async function listSpaceEntries(
  reader: Reader,
  repoId: number,
  { collection, after, descending, limit }: SpaceRecordRange,
): Promise<SpaceEntry[]> {
  // '0' is the character after '/'. Give each side only one bound: of two, SQLite may choose the wider one as the place
  // to begin.
  const [first, end] = collection === null ? ['', null] : [`${collection}/`, `${collection}0`]
  const lower = !descending && after !== null && after > first ? after : first
  const upper = descending && after !== null && (end === null || after < end) ? after : end
  const conditions = [
    sql`space_repo_id = ${repoId} AND path > ${lower}`,
    ...(upper === null ? [] : [sql`path < ${upper}`]),
  ]
  const rows = await reader.all<EntryRow>(sql`
    SELECT ${entryColumns} FROM space_record WHERE ${sqlAnd(conditions)}
    ORDER BY path ${descending ? sql`DESC` : sql`ASC`} LIMIT ${limit}`)
  return rows.map(entryOf)
}

/** Returns the records that exist at these paths, by path. */
export async function spaceRecordsAt(
  reader: Reader,
  repoId: number,
  paths: readonly string[],
): Promise<Map<string, SpaceRecord>> {
  const found = new Map<string, SpaceRecord>()
  for (const piece of inPieces(paths)) {
    const rows = await reader.all<RecordRow>(
      sql`SELECT path, cid, value FROM space_record WHERE space_repo_id = ${repoId} AND path IN ${sqlList(piece)}`,
    )
    for (const row of rows) found.set(row.path, recordOf(row))
  }
  return found
}

/** All records in order of their paths, in pages: see `inBoundedPages`. */
export async function* listWholeRecords(
  reader: Reader,
  repoId: number,
  most: { rows: number; bytes: number },
): AsyncGenerator<(SpaceRecord & { rev: Tid })[]> {
  const page = ({ path }: { path: string }, limit: number) =>
    sql`FROM space_record WHERE space_repo_id = ${repoId} AND path > ${path} ORDER BY path LIMIT ${limit}`
  const pages = inBoundedPages<{ path: string }, RecordRow & { rev: Tid }>(
    most,
    { path: '' },
    {
      bytes: (after, limit) => totalBytes(reader, sql`SELECT length(value) AS bytes ${page(after, limit)}`),
      read: (after, limit) => reader.all(sql`SELECT path, cid, rev, value ${page(after, limit)}`),
    },
  )
  for await (const rows of pages) yield rows.map((row) => ({ ...row, cid: new Cid(row.cid) }))
}

/**
 * The next records after `after`, as many as can be decoded in one turn of the event loop: a large record is only read
 * as the first of a piece. `isEnd`: no records follow.
 */
export async function listWholePiece(
  reader: Reader,
  repoId: number,
  after: string,
  limit: number,
): Promise<{ records: (SpaceRecord & { rev: Tid })[]; isEnd: boolean }> {
  const rest = sql`space_record WHERE space_repo_id = ${repoId} AND path > ${after}`
  const found = await reader.all<Omit<RecordRow, 'value'> & { rev: Tid; value: Uint8Array | null }>(sql`
    SELECT path, cid, rev, ${valueInPiece(sql`path = (SELECT min(path) FROM ${rest})`)}
    FROM ${rest} ORDER BY path LIMIT ${limit}`)
  const { rows, isEnd } = pieceOf(found, limit)
  return { records: rows.map((row) => ({ ...row, cid: new Cid(row.cid) })), isEnd }
}

export async function putSpaceRecords(
  tx: Tx,
  repoId: number,
  records: readonly (SpaceRecord & { rev: Tid })[],
): Promise<void> {
  for (const piece of inPieces(records)) {
    const rows = piece.map(({ path, cid, rev, value }) => [repoId, path, cid.bytes, rev, value])
    await tx.run(sql`
      INSERT INTO space_record (space_repo_id, path, cid, rev, value) VALUES ${sqlRows(rows)}
      ON CONFLICT (space_repo_id, path) DO UPDATE SET cid = excluded.cid, rev = excluded.rev, value = excluded.value`)
  }
}

export async function deleteSpaceRecords(tx: Tx, repoId: number, paths: readonly string[]): Promise<void> {
  if (paths.length > 0)
    await tx.run(sql`DELETE FROM space_record WHERE space_repo_id = ${repoId} AND path IN ${sqlList(paths)}`)
}

// Changes

export interface SpaceOp {
  rev: Tid
  /** Place within the revision, from 0. */
  idx: number
  path: string
  /** Null if the record was deleted. */
  cid: Cid | null
  /** Null if there was no record before. */
  prev: Cid | null
  /** In the first change of a revision: the revision before it, empty if there was none. Null in the other changes. */
  prevRev: Tid | '' | null
}

/** Where a change stands among those of its repository. */
export type OpPlace = Pick<SpaceOp, 'rev' | 'idx'>

interface OpRow extends Omit<SpaceOp, 'cid' | 'prev'> {
  cid: Uint8Array | null
  prev: Uint8Array | null
}

export async function insertSpaceOps(
  tx: Tx,
  repoId: number,
  { rev, prevRev }: { rev: Tid; prevRev: Tid | '' },
  ops: readonly Pick<SpaceOp, 'path' | 'cid' | 'prev'>[],
): Promise<void> {
  const rows = ops.map(({ path, cid, prev }, i) => [
    repoId,
    rev,
    i,
    path,
    cid && cid.bytes,
    prev && prev.bytes,
    i === 0 ? prevRev : null,
  ])
  await tx.run(sql`INSERT INTO space_op (space_repo_id, rev, idx, path, cid, prev, prev_rev) VALUES ${sqlRows(rows)}`)
}

/** A page of changes in their order, after a place. */
export async function listSpaceOps(reader: Reader, repoId: number, after: OpPlace, limit: number): Promise<SpaceOp[]> {
  const rows = await reader.all<OpRow>(sql`
    SELECT rev, idx, path, cid, prev, prev_rev AS "prevRev" FROM space_op
    WHERE space_repo_id = ${repoId} AND (rev, idx) > (${after.rev}, ${after.idx})
    ORDER BY rev, idx LIMIT ${limit}`)
  return rows.map((row) => ({ ...row, cid: row.cid && new Cid(row.cid), prev: row.prev && new Cid(row.prev) }))
}

// Deletion

/** Takes the repositories from a deleted account. Their rows are deleted later. */
export async function disownSpaceRepos(tx: Tx, did: Did): Promise<void> {
  await tx.run(sql`UPDATE space_repo SET did = NULL WHERE did = ${did}`)
  await tx.run(sql`UPDATE space_place SET did = NULL WHERE did = ${did}`)
}

/** A page of repositories that no account has, after `after`. */
export const listDisowned = (reader: Reader, after: number, limit: number): Promise<{ id: number }[]> =>
  reader.all(sql`
    SELECT id FROM space_place WHERE did IS NULL AND id > ${after}
    UNION SELECT id FROM space_repo WHERE did IS NULL AND id > ${after} ORDER BY id LIMIT ${limit}`)

/** A page of all repositories in order of their numbers, after `after`. */
export const listSpaceRepos = (reader: Reader, after: number, limit: number): Promise<{ id: number; rev: Tid }[]> =>
  reader.all(sql`SELECT id, rev FROM space_repo WHERE id > ${after} ORDER BY id LIMIT ${limit}`)

/** Deletes some records of a repository, and fewer if they are large. Returns how many; 0 if there were none. */
export function deleteSomeSpaceRecords(tx: Tx, repoId: number, limit: number): Promise<number> {
  const own = sql`space_repo_id = ${repoId}`
  const some = sql`SELECT path, length(value) AS bytes FROM space_record WHERE ${own} ORDER BY path LIMIT ${limit}`
  return tx.run(sql`DELETE FROM space_record WHERE ${own} AND path IN ${firstBytes(sql`path`, some)}`)
}

/** The place of the change that is `count` places before another, or before the end; null if there are fewer. */
export function placeOfOp(
  reader: Reader,
  repoId: number,
  from: OpPlace | null,
  count: number,
): Promise<OpPlace | null> {
  const range = from === null ? sql`1 = 1` : sql`(rev, idx) < (${from.rev}, ${from.idx})`
  return reader.get(sql`
    SELECT rev, idx FROM space_op WHERE space_repo_id = ${repoId} AND ${range}
    ORDER BY rev DESC, idx DESC LIMIT 1 OFFSET ${count - 1}`)
}

/**
 * Deletes about `limit` of the oldest changes of a repository, at most those up to revision `upTo`, or all if it is
 * null. Deletes all changes of a revision or none. Returns how many.
 */
export const deleteSomeSpaceOps = (tx: Tx, repoId: number, upTo: Tid | null, limit: number): Promise<number> => {
  const isDue = sql`space_repo_id = ${repoId} AND ${upTo === null ? sql`1 = 1` : sql`rev <= ${upTo}`}`
  return tx.run(sql`
    DELETE FROM space_op WHERE space_repo_id = ${repoId} AND rev <= (
      SELECT MAX(rev) FROM (SELECT rev FROM space_op WHERE ${isDue} ORDER BY rev, idx LIMIT ${limit}) AS some_due)`)
}

/** Deletes the row of a repository that no account has, and its row in `space_place`. Either may be lost. */
export async function deleteSpaceRepo(tx: Tx, repoId: number): Promise<number> {
  const rows = await tx.run(sql`DELETE FROM space_repo WHERE id = ${repoId} AND did IS NULL`)
  const places = await tx.run(sql`DELETE FROM space_place WHERE id = ${repoId} AND did IS NULL`)
  return Math.max(rows, places)
}
