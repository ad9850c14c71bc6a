/**
 * Builds a whole repository beside the one that an account has, then replaces it in one step.
 *
 * The new repository is filled in many small transactions, and no account has it until it is adopted. Its row has a
 * deadline that each stored part extends. If the server dies in between, the deadline passes and the `abandoned-repos`
 * sweep deletes it.
 */
import { serviceUnavailable } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { tidyUp } from '../../../platform/running/tidying.ts'
import type { Block } from '../../../protocol/car.ts'
import type { Did, Millis, Tid } from '../../../protocol/identifiers.ts'
import { FreshNodes } from './fresh-nodes.ts'
import { setsLargeAside } from './large-records.ts'
import { addNodes } from './node-store.ts'
import { addRecords, copyTakedowns, type NewRecord } from './record-store.ts'
import {
  endStaging,
  extendStaging,
  insertStagedRepo,
  replaceRepo,
  repoHead,
  type RepoCounts,
  type RepoState,
} from './repo-store.ts'

/** Longest time between two stored parts of a repository. */
const STAGING_SECS = 15 * 60

const stagedUntil = ({ clock }: Context): Millis => clock.now() + STAGING_SECS * 1000

/**
 * Run `build` with the id of a new repository, which it fills and adopts. If it throws, the rows are left to the sweep.
 */
export async function stageRepo<T>(ctx: Context, rev: Tid, build: (id: number) => Promise<T>): Promise<T> {
  const id = await ctx.db.transactionOn([], (tx) => insertStagedRepo(tx, rev, stagedUntil(ctx), FreshNodes.none.packed))
  try {
    return await build(id)
  } catch (error) {
    await tidyUp(ctx, () => endStaging(ctx.db, id))
    throw error
  }
}

/** Rows in one transaction; the bound lets other writers have a turn. */
const ROWS = 1000

/**
 * Store a part of the new repository; it is durable when the promise resolves. The transactions are queued together and
 * share a commit, which writes the pages of randomly ordered indices once for all of them. Refuses with
 * `ServiceUnavailable` if the sweep has claimed the repository.
 */
export async function stageBlocks(
  ctx: Context,
  id: number,
  rev: Tid,
  { nodes, records }: { nodes: readonly Block[]; records: readonly NewRecord[] },
): Promise<void> {
  const now = ctx.clock.now()
  const setsAside = setsLargeAside(ctx.db)
  await Promise.all([
    ctx.db.transactionOn([], async (tx) => {
      if (!(await extendStaging(tx, id, stagedUntil(ctx)))) throw serviceUnavailable('The import took too long')
    }),
    ...slices(nodes).map((some) => ctx.db.transactionOn([], (tx) => addNodes(tx, id, rev, some))),
    ...slices(records).map((some) =>
      ctx.db.transactionOn([], (tx) => addRecords(tx, id, rev, now, some, { setsAside })),
    ),
  ])
}

const slices = <Row>(rows: readonly Row[]): (readonly Row[])[] =>
  Array.from({ length: Math.ceil(rows.length / ROWS) }, (_, i) => rows.slice(i * ROWS, (i + 1) * ROWS))

/**
 * Give the account the new repository, which has `counts`, in place of the present one, if any. Takedowns are copied,
 * so that an import does not undo them.
 */
export async function adoptRepo(tx: Tx, did: Did, id: number, state: RepoState, counts: RepoCounts): Promise<void> {
  const before = await repoHead(tx, did)
  if (before !== null) await copyTakedowns(tx, { from: before.id, to: id })
  await replaceRepo(tx, did, before, { id, rev: state.rev }, state, counts)
}
