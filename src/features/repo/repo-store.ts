/** The SQL of repositories; nodes and records have stores of their own. */
import { sql, sqlList, type Reader, type Tx } from '../../platform/database.ts'
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

/** Without a DID the repository belongs to nobody yet. Returns its id. */
export async function insertRepo(tx: Tx, did: Did | null, { rev, head, data, commitBlock }: RepoState, fresh: Uint8Array): Promise<number> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO repo (did, rev, head, data, commit_block, fresh)
    VALUES (${did}, ${rev}, ${head.bytes}, ${data.bytes}, ${commitBlock}, ${fresh}) RETURNING id`)
  return row!.id
}

/** `fresh` are the packed nodes that lie in the row. */
export function updateTree(tx: Tx, id: number, { rev, head, data, commitBlock }: RepoState, fresh: Uint8Array): Promise<number> {
  return tx.run(sql`
    UPDATE repo SET rev = ${rev}, head = ${head.bytes}, data = ${data.bytes}, commit_block = ${commitBlock}, fresh = ${fresh} WHERE id = ${id}`)
}

/** A new commit over the same tree, or over one whose nodes are all stored outside. */
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
