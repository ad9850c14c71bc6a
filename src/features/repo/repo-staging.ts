/**
 * Building a whole repository beside the one that an account has, and putting it in its place at once.
 *
 * The new one is filled in many small transactions. Until it is adopted it belongs to nobody: when the server dies in
 * between, the sweep of remains takes it away.
 */
import { perContext, type Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database.ts'
import type { Block } from '../../protocol/car.ts'
import { Cid } from '../../protocol/cid.ts'
import type { Did, Tid } from '../../protocol/identifiers.ts'
import { FreshNodes } from './fresh-nodes.ts'
import { addNodes } from './node-store.ts'
import { addRecords, copyTakedowns, type NewRecord } from './record-store.ts'
import { disownRepo, insertRepo, ownRepo, repoHead, updateHead, type RepoState } from './repo-store.ts'

/** Repositories that are being built by this process. */
export const stagedRepos = perContext(() => new Set<number>())

const noCid = new Cid(new Uint8Array())

/** Run `build` with the id of a repository that it fills and adopts. What it leaves behind is swept away. */
export async function stageRepo<T>(ctx: Context, rev: Tid, build: (id: number) => Promise<T>): Promise<T> {
  const staged = stagedRepos(ctx)
  const id = await ctx.db.transaction(async (tx) => {
    const id = await insertRepo(tx, null, { rev, head: noCid, data: noCid, commitBlock: new Uint8Array() }, FreshNodes.none.packed)
    staged.add(id)
    return id
  })
  try {
    return await build(id)
  } finally {
    staged.delete(id)
  }
}

/** Rows of one transaction, after which others have a turn. */
const ROWS = 1000

/**
 * Store a part of the new repository, on the disk when it resolves. Transactions that wait together share a commit: pages
 * of the indices, whose order is another, are written once for all of them.
 */
export async function stageBlocks(ctx: Context, id: number, rev: Tid, { nodes, records }: { nodes: readonly Block[]; records: readonly NewRecord[] }): Promise<void> {
  const now = ctx.clock.now()
  await Promise.all([
    ...slices(nodes).map((some) => ctx.db.transaction((tx) => addNodes(tx, id, rev, some))),
    ...slices(records).map((some) => ctx.db.transaction((tx) => addRecords(tx, id, rev, now, some))),
  ])
}

const slices = <Row>(rows: readonly Row[]): (readonly Row[])[] => Array.from({ length: Math.ceil(rows.length / ROWS) }, (_, i) => rows.slice(i * ROWS, (i + 1) * ROWS))

/** Give the account the new repository instead of the one it has, if it has one. Nobody gets back that way what was taken down. */
export async function adoptRepo(tx: Tx, did: Did, id: number, state: RepoState): Promise<void> {
  const before = await repoHead(tx, did)
  if (before !== null) await copyTakedowns(tx, { from: before.id, to: id })
  await disownRepo(tx, did)
  await ownRepo(tx, id, did)
  await updateHead(tx, id, state)
}
