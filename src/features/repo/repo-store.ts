/** The SQL of repositories and of the nodes of their trees. */
import { sql, sqlList, sqlRows, type Reader, type Tx } from '../../platform/database.ts'
import type { Block } from '../../protocol/car.ts'
import { Cid } from '../../protocol/cid.ts'
import type { Did, Tid } from '../../protocol/identifiers.ts'

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

export async function findHead(reader: Reader, did: Did): Promise<RepoHead | null> {
  const row = await reader.get<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did = ${did}`)
  return row && headOf(row)
}

const headOf = (row: HeadRow): RepoHead => ({ ...row, head: new Cid(row.head), data: new Cid(row.data) })

export async function findHeads(reader: Reader, dids: readonly Did[]): Promise<Map<Did, RepoHead>> {
  const rows = await reader.all<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did IN ${sqlList(dids)}`)
  return new Map(rows.map((row) => [row.did, headOf(row)]))
}

/** In the order of their DIDs, after one of them. */
export async function listHeads(reader: Reader, after: Did | null, limit: number): Promise<RepoHead[]> {
  const rows = await reader.all<HeadRow>(sql`SELECT ${headColumns} FROM repo WHERE did > ${after ?? ''} ORDER BY did LIMIT ${limit}`)
  return rows.map(headOf)
}

/** Without a DID the repository belongs to nobody yet. Returns its id. */
export async function insertRepo(tx: Tx, did: Did | null, { rev, head, data, commitBlock }: RepoState): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repo (did, rev, head, data, commit_block) VALUES (${did}, ${rev}, ${head.bytes}, ${data.bytes}, ${commitBlock}) RETURNING id`)
  return row!.id
}

export function updateHead(tx: Tx, id: number, { rev, head, data, commitBlock }: RepoState): Promise<number> {
  return tx.run(sql`UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock} WHERE id = ${id}`)
}

/** Its rows are left to the sweep. */
export function disownRepo(tx: Tx, did: Did): Promise<number> {
  return tx.run(sql`UPDATE repo SET did = NULL WHERE did = ${did}`)
}

export function ownRepo(tx: Tx, id: number, did: Did): Promise<number> {
  return tx.run(sql`UPDATE repo SET did = ${did} WHERE id = ${id}`)
}

export async function listDisowned(reader: Reader): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`SELECT id FROM repo WHERE did IS NULL`)
  return rows.map(({ id }) => id)
}

export async function isDisowned(reader: Reader, id: number): Promise<boolean> {
  return (await reader.get(sql`SELECT id FROM repo WHERE id = ${id} AND did IS NULL`)) !== null
}

export function deleteRepoRow(tx: Tx, id: number): Promise<number> {
  return tx.run(sql`DELETE FROM repo WHERE id = ${id}`)
}

/** None of them may be there already. */
export async function insertNodes(tx: Tx, repoId: number, rev: Tid, nodes: readonly Block[]): Promise<void> {
  if (nodes.length === 0) return
  await tx.run(sql`INSERT INTO repo_node (repo_id, cid, rev, bytes) VALUES ${sqlRows(nodes.map(({ cid, bytes }) => [repoId, cid.bytes, rev, bytes]))}`)
}

export async function deleteNodes(tx: Tx, repoId: number, cids: readonly Cid[]): Promise<void> {
  if (cids.length === 0) return
  await tx.run(sql`DELETE FROM repo_node WHERE repo_id = ${repoId} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))}`)
}

interface NodeRow {
  cid: Uint8Array
  bytes: Uint8Array
}

const blockOf = ({ cid, bytes }: NodeRow): Block => ({ cid: new Cid(cid), bytes })

/** Those that are there, in any order. */
export async function findNodes(reader: Reader, repoId: number, cids: readonly Cid[]): Promise<Block[]> {
  const rows = await reader.all<NodeRow>(sql`
    SELECT cid, bytes FROM repo_node WHERE repo_id = ${repoId} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))}`)
  return rows.map(blockOf)
}

/** Those that are there and newer than `since`. */
export async function findNodesSince(reader: Reader, repoId: number, cids: readonly Cid[], since: Tid): Promise<Block[]> {
  const rows = await reader.all<NodeRow>(sql`
    SELECT cid, bytes FROM repo_node WHERE repo_id = ${repoId} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))} AND rev > ${since}`)
  return rows.map(blockOf)
}

/** In the order of their CIDs, after one of them. */
export async function listNodes(reader: Reader, repoId: number, after: Cid | null, limit: number): Promise<Block[]> {
  const rows = await reader.all<NodeRow>(sql`
    SELECT cid, bytes FROM repo_node WHERE repo_id = ${repoId} AND cid > ${after?.bytes ?? new Uint8Array()} ORDER BY cid LIMIT ${limit}`)
  return rows.map(blockOf)
}

export async function countNodes(reader: Reader, repoId: number): Promise<number> {
  const row = await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM repo_node WHERE repo_id = ${repoId}`)
  return row!.count
}

/** Returns how many were deleted. */
export function deleteSomeNodes(tx: Tx, repoId: number, limit: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM repo_node WHERE repo_id = ${repoId}
      AND cid IN (SELECT cid FROM repo_node WHERE repo_id = ${repoId} ORDER BY cid LIMIT ${limit})`)
}
