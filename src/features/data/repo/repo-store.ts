/** The SQL of table `repo`. Nodes and records have their own stores. */
import {
  sql,
  sqlList,
  WriteConflict,
  type Beside,
  type Reader,
  type Sql,
  type Tx,
  type Writer,
} from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import { Cid } from '../../../protocol/cid.ts'
import type { Did, Millis, Tid } from '../../../protocol/identifiers.ts'
import { hasLargeRecords, recordValue } from './large-records.ts'

/** The current state of a repository. */
export interface RepoHead {
  id: number
  did: Did
  rev: Tid
  head: Cid
  /** Root of the tree. */
  data: Cid
  commitBlock: Uint8Array
}

/** The part of the state that a commit changes. */
export type RepoState = Pick<RepoHead, 'rev' | 'head' | 'data' | 'commitBlock'>

interface HeadRow {
  id: number
  did: Did
  rev: Tid
  head: Uint8Array
  data: Uint8Array
  commitBlock: Uint8Array
}

const headColumns = sql`repo.id, repo.did, repo.rev, head, data, commit_block AS "commitBlock"`

/** Returns null if the account has no repository. */
export async function repoHead(reader: Reader, did: Did): Promise<RepoHead | null> {
  const row = await reader.get<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did = ${did}`)
  return row && headOf(row)
}

/**
 * Like `repoHead`, with the block of the record at `path`, even if it was taken down; `record` is null if there is
 * none.
 */
export async function headWithRecord(
  reader: Reader,
  did: Did,
  path: string,
): Promise<{ repo: RepoHead; record: Block | null } | null> {
  const row = await reader.get<HeadRow & ({ cid: Uint8Array; value: Uint8Array } | Record<'cid' | 'value', null>)>(sql`
    SELECT ${headColumns}, record.cid, ${recordValue} AS value
    FROM repo LEFT JOIN record ON record.repo_id = repo.id AND record.path = ${path} WHERE repo.did = ${did}`)
  if (row === null) return null
  const { cid, value, ...head } = row
  return { repo: headOf(head), record: cid && { cid: new Cid(cid), bytes: value } }
}

/** Returns the id and the revision of a repository, without reading its blocks. */
export const findRevision = (reader: Reader, did: Did): Promise<Pick<RepoHead, 'id' | 'rev'> | null> =>
  reader.get(sql`SELECT id, rev FROM repo WHERE did = ${did}`)

const headOf = (row: HeadRow): RepoHead => ({ ...row, head: new Cid(row.head), data: new Cid(row.data) })

/** Heads by DID. Accounts without a repository are left out. */
export async function repoHeadsOf(reader: Reader, dids: readonly Did[]): Promise<Map<Did, RepoHead>> {
  const rows = await reader.all<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did IN ${sqlList(dids)}`)
  return new Map(rows.map((row) => [row.did, headOf(row)]))
}

/** What a commit builds on: the current tree, and what the commit needs of the same row. */
export interface StoredTree extends Pick<RepoHead, 'id' | 'rev' | 'head' | 'data'> {
  /** The packed fresh nodes. */
  fresh: Uint8Array
  /** Number of records; null if it is not known without counting them. */
  records: number | null
  /** Number of nodes of the tree; null if it is not known without counting them. */
  nodes: number | null
  /** The indices leave out at most this many records. */
  unlisted: number
  /** 0 if no value of a record was ever set aside, otherwise 1. */
  hasLarge: number
}

/** The counts of a repository that commits keep up to date. */
export type RepoCounts = Pick<StoredTree, 'records' | 'nodes'>

/**
 * SQL: the stored number of records, if it was counted at the present revision, otherwise null. `nodes_rev` is the
 * revision of both counts. Earlier versions had a revision for each, and set `counted_rev`.
 */
const storedCount = sql`CASE WHEN COALESCE(counted_rev, nodes_rev) = rev THEN record_count END`
const keptCounts = sql`${storedCount} AS records, CASE WHEN nodes_rev = rev THEN node_count END AS nodes`

export async function findTree(tx: Tx, did: Did): Promise<StoredTree | null> {
  const row = await tx.get<
    Pick<HeadRow, 'id' | 'rev' | 'head' | 'data'> & RepoCounts & Pick<StoredTree, 'fresh' | 'unlisted' | 'hasLarge'>
  >(sql`
    SELECT id, rev, head, data, fresh, unlisted_count AS unlisted, has_large AS "hasLarge", ${keptCounts}
    FROM repo WHERE did = ${did}`)
  return row && { ...row, head: new Cid(row.head), data: new Cid(row.data) }
}

/** Returns the stored counts of a repository. */
export const findCounts = async (reader: Reader, id: number): Promise<RepoCounts> =>
  (await reader.get<RepoCounts>(sql`SELECT ${keptCounts} FROM repo WHERE id = ${id}`))!

/** Whether large values are stored although the row says that there are none: commits would not delete them. */
export const lacksNoteOfLarge = async (reader: Reader, id: number): Promise<boolean> =>
  (await reader.get(sql`
    SELECT 1 FROM repo WHERE id = ${id} AND has_large = 0 AND ${hasLargeRecords(sql`${id}`)} = 1`)) !== null

/** Store counts, unless the repository has changed since it was counted. */
export const keepCounts = (
  writer: Writer,
  { id, rev }: ReadRepo,
  { records, nodes }: { records: number; nodes: number },
): Promise<number> =>
  writer.run(sql`
    UPDATE repo SET record_count = ${records}, counted_rev = NULL, node_count = ${nodes}, nodes_rev = rev
    WHERE id = ${id} AND rev = ${rev}`)

/**
 * SQL: the number of records of the account that `did` names; 0 if it has no repository. Counts the records only if
 * their number is not stored.
 */
export const recordTotalOf = (did: Sql): Sql => sql`COALESCE((
  SELECT COALESCE(${storedCount}, (SELECT count(*) FROM record WHERE repo_id = repo.id)) FROM repo WHERE repo.did = ${did}), 0)`

export async function recordTotal(reader: Reader, did: Did): Promise<number> {
  const row = await reader.get<{ records: number }>(sql`SELECT ${recordTotalOf(sql`${did}`)} AS records`)
  return row!.records
}

/**
 * Joins to the row of an account the columns from which `editionOf` makes the edition of its repository: a text that
 * changes whenever reads of records may return something else.
 */
export const editionBeside: Beside = {
  columns: sql`, repo.rev, repo.takedowns`,
  tables: sql`LEFT JOIN repo ON repo.did = account.did`,
}
export type EditionBeside = { rev: Tid; takedowns: number } | Record<'rev' | 'takedowns', null>

/** Returns null if there is no repository. */
export const editionOf = ({ rev, takedowns }: EditionBeside): string | null =>
  rev === null ? null : `${rev} ${takedowns}`

/** Note that a record was taken down or restored, which changes the edition. */
export function countTakedown(tx: Tx, id: number): Promise<number> {
  return tx.run(sql`UPDATE repo SET takedowns = takedowns + 1 WHERE id = ${id}`)
}

/** A page of heads in order of their DIDs, after `after`. */
export async function repoHeads(reader: Reader, after: Did | null, limit: number): Promise<RepoHead[]> {
  const rows = await reader.all<HeadRow>(
    sql`SELECT ${headColumns} FROM repo WHERE did > ${after ?? ''} ORDER BY did LIMIT ${limit}`,
  )
  return rows.map(headOf)
}

/**
 * The highest repository ids in use. A repository that has lost its own row may still have rows in the other tables.
 */
const numbersInUse = sql`
  SELECT max(repo_id) AS id FROM record UNION ALL SELECT max(repo_id) FROM large_record
  UNION ALL SELECT max(repo_id) FROM repo_node UNION ALL SELECT max(id) FROM repo`

/**
 * Gives a new repository an id that no other row names, and returns it: SQLite reuses the highest id after its row was
 * deleted.
 */
async function ownNumber(tx: Tx, id: number): Promise<number> {
  const isTaken = await tx.get(sql`
    SELECT 1 FROM record WHERE repo_id = ${id} UNION ALL SELECT 1 FROM large_record WHERE repo_id = ${id}
    UNION ALL SELECT 1 FROM repo_node WHERE repo_id = ${id} LIMIT 1`)
  if (isTaken === null) return id
  const free = await tx.get<{ id: number }>(sql`SELECT max(id) + 1 AS id FROM (${numbersInUse}) AS numbers`)
  await tx.run(sql`UPDATE repo SET id = ${free!.id} WHERE id = ${id}`)
  return free!.id
}

/** Insert a repository without records, whose tree has `nodes` nodes. */
export async function insertRepo(
  tx: Tx,
  did: Did,
  { rev, head, data, commitBlock }: RepoState,
  fresh: Uint8Array,
  nodes: number,
): Promise<void> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repo (did, rev, head, data, commit_block, fresh, record_count, node_count, nodes_rev)
    VALUES (${did}, ${rev}, ${head.bytes}, ${data.bytes}, ${commitBlock}, ${fresh}, 0, ${nodes}, ${rev})
    RETURNING id`)
  await ownNumber(tx, row!.id)
}

const noBytes = new Uint8Array()

/**
 * Insert a repository that no account has while it is built. `fresh` is the packed form of no nodes. Returns its id.
 */
export async function insertStagedRepo(tx: Tx, rev: Tid, until: Millis, fresh: Uint8Array): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repo (rev, head, data, commit_block, fresh, staged_until)
    VALUES (${rev}, ${noBytes}, ${noBytes}, ${noBytes}, ${fresh}, ${until}) RETURNING id`)
  return ownNumber(tx, row!.id)
}

/**
 * Insert a repository that no account has, with the id after the highest in use. Otherwise the next new repository
 * could get the id of a repository that has lost its own row, and with the id its remaining rows.
 */
export async function skipNumbers(tx: Tx, rev: Tid, fresh: Uint8Array): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo (id, rev, head, data, commit_block, fresh)
    SELECT max(id) + 1, ${rev}, ${noBytes}, ${noBytes}, ${noBytes}, ${fresh} FROM (${numbersInUse}) AS numbers`)
}

/**
 * Insert a row for a repository that has lost its own, without an account: the `abandoned-repos` sweep then deletes its
 * other rows.
 */
export async function disownOrphan(tx: Tx, id: number, rev: Tid, fresh: Uint8Array): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo (id, rev, head, data, commit_block, fresh) VALUES (${id}, ${rev}, ${noBytes}, ${noBytes}, ${noBytes}, ${fresh})`)
}

/** Move the deadline of a staged repository. Returns false if the sweep has claimed the repository. */
export async function extendStaging(tx: Tx, id: number, until: Millis): Promise<boolean> {
  return (
    (await tx.run(sql`UPDATE repo SET staged_until = ${until} WHERE id = ${id} AND staged_until IS NOT NULL`)) === 1
  )
}

/** A repository at the revision that the transaction read. */
export type ReadRepo = Pick<RepoHead, 'id' | 'rev'>

/**
 * Replace the head that was read. `fresh` holds the packed nodes of the row. Throws `WriteConflict` if the head has
 * changed.
 */
export async function updateTree(
  tx: Tx,
  before: ReadRepo,
  { rev, head, data, commitBlock }: RepoState,
  fresh: Uint8Array,
  { records, nodes, unlisted, hasLarge }: RepoCounts & Pick<StoredTree, 'unlisted' | 'hasLarge'>,
): Promise<void> {
  const updated = await tx.run(sql`
    UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}, fresh = ${fresh},
      unlisted_count = ${unlisted}, has_large = ${hasLarge}, record_count = ${records}, counted_rev = NULL, node_count = ${nodes}, nodes_rev = ${rev}
    WHERE id = ${before.id} AND rev = ${before.rev}`)
  requireUpdated(updated, before)
}

/** Like `updateTree`, for a commit on the same tree: nodes and counts stay as they are. Throws `WriteConflict`. */
export async function updateHead(tx: Tx, before: ReadRepo, { rev, head, data, commitBlock }: RepoState): Promise<void> {
  const updated = await tx.run(sql`
    UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock},
      counted_rev = CASE WHEN counted_rev = ${before.rev} THEN ${rev} END, nodes_rev = CASE WHEN nodes_rev = ${before.rev} THEN ${rev} END
    WHERE id = ${before.id} AND rev = ${before.rev}`)
  requireUpdated(updated, before)
}

function requireUpdated(updated: number, { id, rev }: ReadRepo): void {
  if (updated !== 1) throw new WriteConflict(`repository ${id} at ${rev}`)
}

/** Take the repository from its account. The `abandoned-repos` sweep deletes its rows. */
export function disownRepo(tx: Tx, did: Did): Promise<number> {
  return tx.run(sql`UPDATE repo SET did = NULL WHERE did = ${did}`)
}

/**
 * Replace the repository that was read, if any, by a staged one with these counts. Throws `WriteConflict` if either has
 * changed.
 */
export async function replaceRepo(
  tx: Tx,
  did: Did,
  before: ReadRepo | null,
  staged: ReadRepo,
  { rev, head, data, commitBlock }: RepoState,
  { records, nodes }: RepoCounts,
): Promise<void> {
  if (before !== null)
    requireUpdated(
      await tx.run(sql`UPDATE repo SET did = NULL WHERE id = ${before.id} AND rev = ${before.rev}`),
      before,
    )
  const owned = await tx.run(sql`
    UPDATE repo SET did = ${did}, rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}, staged_until = NULL,
      record_count = ${records}, counted_rev = NULL, node_count = ${nodes}, nodes_rev = ${rev}, has_large = ${hasLargeRecords(sql`${staged.id}`)}
    WHERE id = ${staged.id} AND staged_until IS NOT NULL`)
  requireUpdated(owned, staged)
}

/** Give up a staged repository, unless an account has adopted it. */
export function endStaging(db: Writer, id: number): Promise<number> {
  return db.run(sql`UPDATE repo SET staged_until = NULL WHERE id = ${id} AND staged_until IS NOT NULL`)
}

const isAbandoned = (now: Millis) => sql`did IS NULL AND (staged_until IS NULL OR staged_until <= ${now})`

/** Repositories that no account has and no import is building. */
export async function listAbandonedRepos(reader: Reader, now: Millis): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`SELECT id FROM repo WHERE ${isAbandoned(now)}`)
  return rows.map(({ id }) => id)
}

/** Claim a repository for deletion, so that its import cannot resume. Returns false if it is no longer abandoned. */
export async function claimAbandonedRepo(tx: Tx, id: number, now: Millis): Promise<boolean> {
  return (await tx.run(sql`UPDATE repo SET staged_until = NULL WHERE id = ${id} AND ${isAbandoned(now)}`)) === 1
}

export function deleteRepoRow(tx: Tx, id: number): Promise<number> {
  return tx.run(sql`DELETE FROM repo WHERE id = ${id}`)
}
