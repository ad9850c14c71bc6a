/** The nodes of a tree, in the row of the repository and outside: see `fresh-nodes.ts`. */
import { inPieces, sql, sqlList, sqlRows, type Reader, type Tx } from '../../platform/database.ts'
import type { Block } from '../../protocol/car.ts'
import { Cid } from '../../protocol/cid.ts'
import type { Tid } from '../../protocol/identifiers.ts'
import { framedBlocks, stretches } from './framed-blocks.ts'
import { FreshNodes, type RevisedBlock } from './fresh-nodes.ts'

/** Fresh nodes of a repository take at most so many bytes: three pages, which every commit writes again. */
const MAX_FRESH_BYTES = 12_000
/** A CID begins with a version, which is 1. */
const BEHIND_CIDS = new Uint8Array([0xff])

interface NodeRow {
  cid: Uint8Array
  bytes: Uint8Array
}

const framedNodes = framedBlocks(sql`bytes`)
const blockOf = ({ cid, bytes }: NodeRow): Block => ({ cid: new Cid(cid), bytes })

/** One state of a tree's nodes: read it from a snapshot or a transaction. */
export class StoredNodes {
  constructor(
    readonly reader: Reader,
    readonly repoId: number,
    readonly fresh: FreshNodes,
  ) {}

  static async of(reader: Reader, repoId: number): Promise<StoredNodes> {
    const row = await reader.get<{ fresh: Uint8Array }>(sql`SELECT fresh FROM repo WHERE id = ${repoId}`)
    return new StoredNodes(reader, repoId, row === null ? FreshNodes.none : new FreshNodes(row.fresh))
  }

  /** Those that are there, in any order. */
  find(cids: readonly Cid[]): Promise<Block[]> {
    return this.#find(cids, '' as Tid)
  }

  /** Those that are there and newer than a revision, in any order. */
  findSince(cids: readonly Cid[], since: Tid): Promise<Block[]> {
    return this.#find(cids, since)
  }

  async #find(cids: readonly Cid[], since: Tid): Promise<Block[]> {
    const fresh: RevisedBlock[] = []
    const outside: Uint8Array[] = []
    const isStale = this.#staleness()
    for (const cid of cids) {
      const node = this.fresh.get(cid)
      if (node) fresh.push(node)
      else if (!isStale(cid)) outside.push(cid.bytes)
    }
    const found: Block[] = fresh.filter(({ rev }) => rev > since)
    if (outside.length === 0) return found
    const rows = await this.reader.all<NodeRow>(sql`
      SELECT cid, bytes FROM repo_node WHERE repo_id = ${this.repoId} AND cid IN ${sqlList(outside)} AND rev > ${since}`)
    return [...found, ...rows.map(blockOf)]
  }

  #staleness(): (cid: Cid) => boolean {
    const stale = new Set(this.fresh.stale.map(String))
    return (cid) => stale.size > 0 && stale.has(cid.toString())
  }

  /** All of them, in pages and in stretches of an archive. */
  async *sections(): AsyncGenerator<Block[] | Uint8Array> {
    const { reader, repoId, fresh } = this
    yield fresh.nodes
    const stale = fresh.stale.map(({ bytes }) => bytes)
    yield* stretches<Uint8Array>({
      first: new Uint8Array(),
      last: BEHIND_CIDS,
      async keyAfter(after, count) {
        const row = await reader.get<{ cid: Uint8Array }>(sql`
          SELECT cid FROM repo_node WHERE repo_id = ${repoId} AND cid > ${after} ORDER BY cid LIMIT 1 OFFSET ${count - 1}`)
        return row && row.cid
      },
      async framed(after, upTo) {
        const staleHere = sqlList(stale.filter((cid) => Buffer.compare(cid, after) > 0 && Buffer.compare(cid, upTo) <= 0))
        const row = await reader.get<{ sections: Uint8Array | null }>(sql`
          SELECT ${framedNodes} AS sections FROM repo_node
          WHERE repo_id = ${repoId} AND cid > ${after} AND cid <= ${upTo} AND cid NOT IN ${staleHere}`)
        return row!.sections
      },
    })
  }

  async count(): Promise<number> {
    const row = await this.reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM repo_node WHERE repo_id = ${this.repoId}`)
    return row!.count - this.fresh.stale.length + this.fresh.nodes.length
  }
}

/** Store what a commit changes. Returns what is to lie in the row of the repository. */
export async function changeNodes(tx: Tx, { repoId, fresh }: StoredNodes, change: { rev: Tid; created: readonly Block[]; removed: readonly Cid[] }): Promise<Uint8Array> {
  const next = fresh.after(change)
  if (next.packed.length <= MAX_FRESH_BYTES) return next.packed
  await deleteNodes(tx, repoId, next.stale)
  // The nodes of this commit are the ones that the next one replaces.
  const kept = next.only(change.rev)
  const isSmall = kept.packed.length <= MAX_FRESH_BYTES / 2
  await insertNodes(tx, repoId, isSmall ? next.nodes.filter(({ rev }) => rev !== change.rev) : next.nodes)
  return (isSmall ? kept : FreshNodes.none).packed
}

/** None of them may be there already. */
export async function insertNodes(tx: Tx, repoId: number, nodes: readonly RevisedBlock[]): Promise<void> {
  for (const piece of inPieces(nodes)) {
    await tx.run(sql`INSERT INTO repo_node (repo_id, cid, rev, bytes) VALUES ${sqlRows(piece.map(({ cid, rev, bytes }) => [repoId, cid.bytes, rev, bytes]))}`)
  }
}

/** Nodes that are not there yet, a statement for each: see `addRecords`. */
export async function addNodes(tx: Tx, repoId: number, rev: Tid, nodes: readonly Block[]): Promise<void> {
  for (const { cid, bytes } of nodes) {
    await tx.run(sql`INSERT INTO repo_node (repo_id, cid, rev, bytes) VALUES (${repoId}, ${cid.bytes}, ${rev}, ${bytes})`)
  }
}

async function deleteNodes(tx: Tx, repoId: number, cids: readonly Cid[]): Promise<void> {
  if (cids.length === 0) return
  await tx.run(sql`DELETE FROM repo_node WHERE repo_id = ${repoId} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))}`)
}

/** Returns how many were deleted. */
export function deleteSomeNodes(tx: Tx, repoId: number, limit: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM repo_node WHERE repo_id = ${repoId}
      AND cid IN (SELECT cid FROM repo_node WHERE repo_id = ${repoId} ORDER BY cid LIMIT ${limit})`)
}
