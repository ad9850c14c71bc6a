/** The SQL of repositories; nodes and records have stores of their own. */
import { sql, sqlList, WriteConflict, type Reader, type Tx, type Writer } from '../../platform/database/database.ts'
import { Cid } from '../../protocol/cid.ts'
import type { Did, Millis, Tid } from '../../protocol/identifiers.ts'

/** Where a repository stands. */
export interface RepoHead {
  id: number
  did: Did
  rev: Tid
  head: Cid
  /** Root of the tree. */
  data: Cid
  commitBlock: Uint8Array
}

/** What a commit changes of a repository. */
export type RepoState = Pick<RepoHead, 'rev' | 'head' | 'data' | 'commitBlock'>

interface HeadRow {
  id: number
  did: Did
  rev: Tid
  head: Uint8Array
  data: Uint8Array
  commitBlock: Uint8Array
}

const headColumns = sql`id, did, rev, head, data, commit_block AS "commitBlock"`

/** Null when the account has no repository. */
export async function repoHead(reader: Reader, did: Did): Promise<RepoHead | null> {
  const row = await reader.get<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did = ${did}`)
  return row && headOf(row)
}

const headOf = (row: HeadRow): RepoHead => ({ ...row, head: new Cid(row.head), data: new Cid(row.data) })

/** Those of the accounts that have a repository. */
export async function repoHeadsOf(reader: Reader, dids: readonly Did[]): Promise<Map<Did, RepoHead>> {
  const rows = await reader.all<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did IN ${sqlList(dids)}`)
  return new Map(rows.map((row) => [row.did, headOf(row)]))
}

/** What a commit builds on: where the tree stands, and the packed nodes that lie in the row. */
export type StoredTree = Pick<RepoHead, 'id' | 'rev' | 'head' | 'data'> & { fresh: Uint8Array }

export async function findTree(tx: Tx, did: Did): Promise<StoredTree | null> {
  const row = await tx.get<Pick<HeadRow, 'id' | 'rev' | 'head' | 'data'> & { fresh: Uint8Array }>(sql`
    SELECT id, rev, head, data, fresh FROM repo WHERE did = ${did}`)
  return row && { ...row, head: new Cid(row.head), data: new Cid(row.data) }
}

/** What changes whenever readers of its records are shown something else. Null when there is no repository. */
export async function findEdition(reader: Reader, did: Did): Promise<string | null> {
  const row = await reader.get<{ rev: Tid; takedowns: number }>(sql`SELECT rev, takedowns FROM repo WHERE did = ${did}`)
  return row && `${row.rev} ${row.takedowns}`
}

/** A record of it was taken down, or given back. */
export function countTakedown(tx: Tx, id: number): Promise<number> {
  return tx.run(sql`UPDATE repo SET takedowns = takedowns + 1 WHERE id = ${id}`)
}

/** In the order of their DIDs, after one of them. */
export async function repoHeads(reader: Reader, after: Did | null, limit: number): Promise<RepoHead[]> {
  const rows = await reader.all<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did > ${after ?? ''} ORDER BY did LIMIT ${limit}`)
  return rows.map(headOf)
}

export async function insertRepo(tx: Tx, did: Did, { rev, head, data, commitBlock }: RepoState, fresh: Uint8Array): Promise<void> {
  await tx.run(sql`
    INSERT INTO repo (did, rev, head, data, commit_block, fresh)
    VALUES (${did}, ${rev}, ${head.bytes}, ${data.bytes}, ${commitBlock}, ${fresh})`)
}

const noBytes = new Uint8Array()

/** A repository that belongs to nobody while it is built. `fresh` are no nodes, packed. Returns its id. */
export async function insertStagedRepo(tx: Tx, rev: Tid, until: Millis, fresh: Uint8Array): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repo (rev, head, data, commit_block, fresh, staged_until)
    VALUES (${rev}, ${noBytes}, ${noBytes}, ${noBytes}, ${fresh}, ${until}) RETURNING id`)
  return row!.id
}

/** False when the sweep has it already. */
export async function extendStaging(tx: Tx, id: number, until: Millis): Promise<boolean> {
  return (await tx.run(sql`UPDATE repo SET staged_until = ${until} WHERE id = ${id} AND staged_until IS NOT NULL`)) === 1
}

/** A repository at the revision that the transaction has read. */
export type ReadRepo = Pick<RepoHead, 'id' | 'rev'>

/** Replace the head that was read. `fresh` are the packed nodes that lie in the row. Throws `WriteConflict`. */
export async function updateTree(tx: Tx, before: ReadRepo, { rev, head, data, commitBlock }: RepoState, fresh: Uint8Array): Promise<void> {
  const updated = await tx.run(sql`
    UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}, fresh = ${fresh}
    WHERE id = ${before.id} AND rev = ${before.rev}`)
  requireUpdated(updated, before)
}

/** The same for a new commit over the same tree, or over one whose nodes are all stored outside. Throws `WriteConflict`. */
export async function updateHead(tx: Tx, before: ReadRepo, { rev, head, data, commitBlock }: RepoState): Promise<void> {
  const updated = await tx.run(sql`
    UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}
    WHERE id = ${before.id} AND rev = ${before.rev}`)
  requireUpdated(updated, before)
}

function requireUpdated(updated: number, { id, rev }: ReadRepo): void {
  if (updated !== 1) throw new WriteConflict(`repository ${id} at ${rev}`)
}

/** Its rows are left to the sweep. */
export function disownRepo(tx: Tx, did: Did): Promise<number> {
  return tx.run(sql`UPDATE repo SET did = NULL WHERE did = ${did}`)
}

/** Put a staged repository in the place of the one that was read, if there was one. Throws `WriteConflict`. */
export async function replaceRepo(tx: Tx, did: Did, before: ReadRepo | null, staged: ReadRepo, { rev, head, data, commitBlock }: RepoState): Promise<void> {
  if (before !== null) requireUpdated(await tx.run(sql`UPDATE repo SET did = NULL WHERE id = ${before.id} AND rev = ${before.rev}`), before)
  const owned = await tx.run(sql`
    UPDATE repo SET did = ${did}, rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}, staged_until = NULL
    WHERE id = ${staged.id} AND staged_until IS NOT NULL`)
  requireUpdated(owned, staged)
}

/** Nobody goes on building it, if it has not been adopted. */
export function endStaging(db: Writer, id: number): Promise<number> {
  return db.run(sql`UPDATE repo SET staged_until = NULL WHERE id = ${id} AND staged_until IS NOT NULL`)
}

const isAbandoned = (now: Millis) => sql`did IS NULL AND (staged_until IS NULL OR staged_until <= ${now})`

/** Repositories that belong to nobody and that nobody is building. */
export async function listAbandonedRepos(reader: Reader, now: Millis): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`SELECT id FROM repo WHERE ${isAbandoned(now)}`)
  return rows.map(({ id }) => id)
}

/** Take it, so that nobody goes on building it. False when it is not abandoned (any more). */
export async function claimAbandonedRepo(tx: Tx, id: number, now: Millis): Promise<boolean> {
  return (await tx.run(sql`UPDATE repo SET staged_until = NULL WHERE id = ${id} AND ${isAbandoned(now)}`)) === 1
}

export function deleteRepoRow(tx: Tx, id: number): Promise<number> {
  return tx.run(sql`DELETE FROM repo WHERE id = ${id}`)
}
