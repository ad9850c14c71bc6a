/**
 * Building a whole repository beside the one that an account has, and putting it in its place at once.
 *
 * The new one is filled in many small transactions. Until it is adopted it belongs to nobody. Its row says until when
 * it is being built, and each part that is stored puts that off; when the server dies in between, the time runs out and
 * the `abandoned-repos` sweep deletes it.
 */
import { serviceUnavailable } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Block } from '../../protocol/car.ts'
import type { Did, Millis, Tid } from '../../protocol/identifiers.ts'
import { FreshNodes } from './fresh-nodes.ts'
import { addNodes } from './node-store.ts'
import { addRecords, copyTakedowns, type NewRecord } from './record-store.ts'
import { endStaging, extendStaging, insertStagedRepo, replaceRepo, repoHead, type RepoState } from './repo-store.ts'

/** Longest time between two parts of a repository that is being built. */
const STAGING_SECS = 15 * 60

const stagedUntil = ({ clock }: Context): Millis => clock.now() + STAGING_SECS * 1000

/** Run `build` with the id of a repository that it fills and adopts. What it leaves behind is swept away. */
export async function stageRepo<T>(ctx: Context, rev: Tid, build: (id: number) => Promise<T>): Promise<T> {
  const id = await ctx.db.transaction((tx) => insertStagedRepo(tx, rev, stagedUntil(ctx), FreshNodes.none.packed))
  try {
    return await build(id)
  } catch (error) {
    await endStaging(ctx.db, id)
    throw error
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
    ctx.db.transaction(async (tx) => {
      if (!(await extendStaging(tx, id, stagedUntil(ctx)))) throw serviceUnavailable('The import took too long')
    }),
    ...slices(nodes).map((some) => ctx.db.transaction((tx) => addNodes(tx, id, rev, some))),
    ...slices(records).map((some) => ctx.db.transaction((tx) => addRecords(tx, id, rev, now, some))),
  ])
}

const slices = <Row>(rows: readonly Row[]): (readonly Row[])[] => Array.from({ length: Math.ceil(rows.length / ROWS) }, (_, i) => rows.slice(i * ROWS, (i + 1) * ROWS))

/** Give the account the new repository instead of the one it has, if it has one. Nobody gets back that way what was taken down. */
export async function adoptRepo(tx: Tx, did: Did, id: number, state: RepoState): Promise<void> {
  const before = await repoHead(tx, did)
  if (before !== null) await copyTakedowns(tx, { from: before.id, to: id })
  await replaceRepo(tx, did, before, { id, rev: state.rev }, state)
}
