/** The nodes of a tree, both those in the row of the repository (`fresh-nodes.ts`) and those in table `repo_node`. */
import { unthrottled, type Throttle } from '../../../base/pace.ts'
import {
  inBoundedPages,
  inPages,
  inPieces,
  sql,
  sqlList,
  sqlRows,
  together,
  totalBytes,
  type Reader,
  type Tx,
} from '../../../platform/database/database.ts'
import type { Block } from '../../../protocol/car.ts'
import { Cid } from '../../../protocol/cid.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { framedBlocks, framedChunks, framingOf, isMisframed, type FramedRows, type Framing } from './framed-blocks.ts'
import { FreshNodes, packedBytes, type RevisedBlock } from './fresh-nodes.ts'

/**
 * Most bytes of a repository's fresh nodes, which every commit rewrites. With the lower bound, the row fits on one page
 * of SQLite; with the higher one, on three. The higher one applies if the nodes of a commit alone nearly fill one page,
 * and if a commit removes nodes that have been in `repo_node` for long: changes at random places add several nodes
 * each, of which the next commit replaces few.
 */
const FEW_FRESH_BYTES = 3700
const MAX_FRESH_BYTES = 12_000
/** Room on a single page for the nodes of later commits. */
const ROOM_BYTES = 1000
/**
 * The same on PostgreSQL, whose write-ahead log contains every byte of the row with each commit: nodes that the next
 * commit does not replace are moved to `repo_node` early.
 */
const LOGGED_ROOM_BYTES = 300
/** Most nodes in `repo_node` that a commit removes if it changes the same place as the commit before. */
const MAX_NEWLY_STALE = 1
/** Most nodes, and bytes, read at once. */
const PAGE = 500
const PAGE_BYTES = 4 * 1024 ** 2
/** Sorts after every CID, because the first byte of a CID is its version, 1. */
const behindCids = new Uint8Array([0xff])

interface NodeRow {
  cid: Uint8Array
  bytes: Uint8Array
}

interface RevisedRow extends NodeRow {
  rev: Tid
}

const blockOf = ({ cid, bytes }: NodeRow): Block => ({ cid: new Cid(cid), bytes })

/** The nodes of one state of a tree. `reader` must be of a snapshot or a transaction. */
export class StoredNodes {
  #fresh: FreshNodes | null

  /** A caller that has read the row passes its nodes as `fresh`. */
  constructor(
    readonly reader: Reader,
    readonly repoId: number,
    fresh: FreshNodes | null = null,
  ) {
    this.#fresh = fresh
  }

  /** Reads the row on first use: a read that finds its nodes in the cache never needs it. */
  async fresh(): Promise<FreshNodes> {
    return (this.#fresh ??= await this.#readFresh())
  }

  async #readFresh(): Promise<FreshNodes> {
    const row = await this.reader.get<{ fresh: Uint8Array }>(sql`SELECT fresh FROM repo WHERE id = ${this.repoId}`)
    return row === null ? FreshNodes.none : new FreshNodes(row.fresh)
  }

  /** Returns the nodes that exist, in any order. */
  async find(cids: readonly Cid[]): Promise<Block[]> {
    if (cids.length === 0) return []
    const fresh = await this.fresh()
    const found: Block[] = []
    const outside: Cid[] = []
    for (const cid of cids) {
      const node = fresh.get(cid)
      if (node) found.push(node)
      else if (!fresh.isStale(cid)) outside.push(cid)
    }
    if (outside.length === 0) return found
    const rows = await this.reader.all<NodeRow>(sql`
      SELECT cid, bytes FROM repo_node WHERE repo_id = ${this.repoId} AND cid IN ${sqlList(outside.map(({ bytes }) => bytes))}`)
    return [...found, ...rows.map(blockOf)]
  }

  /** Nodes added after a revision, in pages. */
  async *since(since: Tid): AsyncGenerator<Block[]> {
    const fresh = await this.fresh()
    yield fresh.nodes.filter(({ rev }) => rev > since)
    const start: Pick<RevisedRow, 'rev' | 'cid'> = { rev: since, cid: behindCids }
    const page = (after: typeof start, limit: number) => sql`
      FROM repo_node WHERE repo_id = ${this.repoId} AND (rev, cid) > (${after.rev}, ${after.cid})
      ORDER BY rev, cid LIMIT ${limit}`
    const pages = inBoundedPages({ rows: PAGE, bytes: PAGE_BYTES }, start, {
      bytes: (after, limit) => totalBytes(this.reader, sql`SELECT length(bytes) AS bytes ${page(after, limit)}`),
      read: (after, limit) => this.reader.all<RevisedRow>(sql`SELECT rev, cid, bytes ${page(after, limit)}`),
    })
    for await (const rows of pages) yield rows.map(blockOf).filter(({ cid }) => !fresh.isStale(cid))
  }

  /** All nodes, as pages of blocks or as chunks of framed CAR sections. */
  async *sections(): AsyncGenerator<Block[] | Uint8Array> {
    const { reader, repoId } = this
    const fresh = await this.fresh()
    yield fresh.nodes
    const stale = fresh.stale.map(({ bytes }) => bytes)
    yield* framedChunks<Uint8Array>({
      reader,
      rows: sql`FROM repo_node WHERE repo_id = ${repoId}`,
      key: sql`cid`,
      bytes: sql`length(bytes)`,
      first: new Uint8Array(),
      last: behindCids,
      async framed(after, upTo, which) {
        const staleHere = stale.filter((cid) => Buffer.compare(cid, after) > 0 && Buffer.compare(cid, upTo) <= 0)
        // PostgreSQL would give an empty list the type text.
        const isCurrent = staleHere.length === 0 ? sql`1 = 1` : sql`cid NOT IN ${sqlList(staleHere)}`
        return (await reader.get<FramedRows>(sql`
          SELECT ${framedBlocks(sql`bytes`, which)} FROM repo_node
          WHERE repo_id = ${repoId} AND cid > ${after} AND cid <= ${upTo} AND ${isCurrent}`))!
      },
    })
  }

  /**
   * Counts all nodes, and nodes whose stored framing does not fit their block, and finds the newest revision of any
   * node. `throttled` runs each piece.
   */
  async countFramed(
    throttled: Throttle = unthrottled,
  ): Promise<{ count: number; misframed: number; newestRev: string }> {
    const fresh = await this.fresh()
    const total = { count: fresh.nodes.length - fresh.stale.length, misframed: 0, newestRev: '' }
    const start: Pick<NodeRow, 'cid'> = { cid: new Uint8Array() }
    const pages = inPages(PAGE, start, (after, limit) =>
      throttled(() =>
        this.reader.all<Pick<RevisedRow, 'cid' | 'rev'> & Framing>(sql`
          SELECT cid, rev, framing, length(bytes) AS size FROM repo_node
          WHERE repo_id = ${this.repoId} AND cid > ${after.cid} ORDER BY cid LIMIT ${limit}`),
      ),
    )
    for await (const rows of pages) {
      total.count += rows.length
      total.misframed += rows.filter(isMisframed).length
      for (const { rev } of rows) if (rev > total.newestRev) total.newestRev = rev
    }
    for (const { rev } of fresh.nodes) if (rev > total.newestRev) total.newestRev = rev
    return total
  }

  async count(): Promise<number> {
    const row = await this.reader.get<{ count: number }>(
      sql`SELECT count(*) AS count FROM repo_node WHERE repo_id = ${this.repoId}`,
    )
    const fresh = await this.fresh()
    return row!.count - fresh.stale.length + fresh.nodes.length
  }
}

/**
 * Store the nodes that a commit creates and removes. Returns the packed nodes to store in the row of the repository.
 * `countsPages`: rewriting the row costs pages, as on SQLite, instead of bytes.
 */
export async function changeNodes(
  tx: Tx,
  stored: StoredNodes,
  change: { rev: Tid; created: readonly Block[]; removed: readonly Cid[] },
  { countsPages }: { countsPages: boolean },
): Promise<Uint8Array> {
  const { repoId } = stored
  const before = await stored.fresh()
  const next = before.after(change)
  const ownBytes = packedBytes(change.created)
  const isNextToLast = next.staleCount - before.staleCount <= MAX_NEWLY_STALE
  if (next.packed.length <= (isNextToLast ? fewBytes(ownBytes, countsPages) : MAX_FRESH_BYTES)) return next.packed
  // Keep this commit's nodes in the row: they are the ones that the next commit replaces.
  const keepsOwn = ownBytes <= MAX_FRESH_BYTES / 2
  await together(
    deleteNodes(tx, repoId, next.stale),
    insertNodes(tx, repoId, keepsOwn ? next.nodes.filter(({ rev }) => rev !== change.rev) : next.nodes),
  )
  return (keepsOwn ? next.only(change.rev) : FreshNodes.none).packed
}

/** Returns the most bytes that fresh nodes may have after a commit whose own nodes have `ownBytes`. */
function fewBytes(ownBytes: number, countsPages: boolean): number {
  if (!countsPages) return ownBytes + LOGGED_ROOM_BYTES
  return ownBytes + ROOM_BYTES <= FEW_FRESH_BYTES ? FEW_FRESH_BYTES : MAX_FRESH_BYTES
}

/** None of the nodes may exist yet. */
async function insertNodes(tx: Tx, repoId: number, nodes: readonly RevisedBlock[]): Promise<void> {
  for (const piece of inPieces(nodes)) {
    await tx.run(
      sql`INSERT INTO repo_node (repo_id, cid, rev, bytes, framing) VALUES ${sqlRows(piece.map(({ cid, rev, bytes }) => [repoId, cid.bytes, rev, bytes, framingOf(bytes)]))}`,
    )
  }
}

/** Insert nodes that do not exist yet, with one statement each: see `addRecords`. */
export async function addNodes(tx: Tx, repoId: number, rev: Tid, nodes: readonly Block[]): Promise<void> {
  const insert = ({ cid, bytes }: Block) =>
    tx.run(
      sql`INSERT INTO repo_node (repo_id, cid, rev, bytes, framing) VALUES (${repoId}, ${cid.bytes}, ${rev}, ${bytes}, ${framingOf(bytes)})`,
    )
  for (const piece of inPieces(nodes)) await together(...piece.map(insert))
}

async function deleteNodes(tx: Tx, repoId: number, cids: readonly Cid[]): Promise<void> {
  if (cids.length === 0) return
  await tx.run(
    sql`DELETE FROM repo_node WHERE repo_id = ${repoId} AND cid IN ${sqlList(cids.map(({ bytes }) => bytes))}`,
  )
}

/** Delete at most `limit` nodes. Returns how many were deleted. */
export function deleteSomeNodes(tx: Tx, repoId: number, limit: number): Promise<number> {
  return tx.run(sql`
    DELETE FROM repo_node WHERE repo_id = ${repoId}
      AND cid IN (SELECT cid FROM repo_node WHERE repo_id = ${repoId} ORDER BY cid LIMIT ${limit})`)
}
