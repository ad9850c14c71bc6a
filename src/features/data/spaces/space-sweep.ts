/**
 * Deletes changes in spaces that are too old or too many to be kept, and repositories of deleted accounts. While spaces
 * are switched off, it deletes only the latter.
 */
import type { Context } from '../../../platform/context.ts'
import { inPages, type Tx } from '../../../platform/database/database.ts'
import { deleteInPieces, throttle, type Throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { nextTid } from '../../../protocol/tid.ts'
import {
  deleteSomeSpaceOps,
  deleteSomeSpaceRecords,
  deleteSpaceRepo,
  listDisowned,
  listSpaceRepos,
  placeOfOp,
  type OpPlace,
} from './space-store.ts'

const INTERVAL_SECS = 600
/** Rows deleted in one transaction; a small number keeps other writers from waiting long. */
const ROWS = 500
const PAGE_REPOS = 100
/** Most changes of a repository that are kept. */
const MAX_OPS = 100_000
/** Changes that are counted at once: with long names, 5 ms. */
const COUNTED_OPS = 5000

export const spaceSweep: Sweep = {
  name: 'spaces',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx, stopping) {
    const throttled = throttle(stopping, ctx.busyShare)
    const report = { rows: 0, repos: 0 }
    const deleteAll = async (deleteSome: (tx: Tx, limit: number) => Promise<number>) => {
      report.rows += await deleteInPieces(throttled, ROWS, (limit) => ctx.db.transaction((tx) => deleteSome(tx, limit)))
    }
    for await (const repos of inPages(PAGE_REPOS, { id: 0 }, ({ id }, limit) => listDisowned(ctx.db, id, limit)))
      for (const { id } of repos) {
        await deleteAll((tx, limit) => deleteSomeSpaceRecords(tx, id, limit))
        await deleteAll((tx, limit) => deleteSomeSpaceOps(tx, id, null, limit))
        report.repos += await ctx.db.transaction((tx) => deleteSpaceRepo(tx, id))
      }
    if (!ctx.config.spaces.enabled) return report
    const tooOld = lastForgotten(ctx)
    for await (const repos of inPages(PAGE_REPOS, { id: 0 }, ({ id }, limit) =>
      throttled(() => listSpaceRepos(ctx.db, id, limit)),
    ))
      for (const { id } of repos) {
        const tooMany = await lastBeyondKept(ctx, id, throttled)
        const upTo = tooMany !== null && tooMany > tooOld ? tooMany : tooOld
        await deleteAll((tx, limit) => deleteSomeSpaceOps(tx, id, upTo, limit))
      }
    return report
  },
}

/** The revision of the newest change that `MAX_OPS` others follow; null if there are fewer. */
async function lastBeyondKept({ db }: Context, repoId: number, throttled: Throttle): Promise<Tid | null> {
  const back = (from: OpPlace | null, count: number) => throttled(() => placeOfOp(db, repoId, from, count))
  let place = await back(null, COUNTED_OPS)
  for (let counted = COUNTED_OPS; place !== null && counted < MAX_OPS; counted += COUNTED_OPS)
    place = await back(place, COUNTED_OPS)
  const beyond = place === null ? null : await back(place, 1)
  return beyond && beyond.rev
}

/** The last revision whose changes are too old. */
const lastForgotten = ({ clock, config }: Context) =>
  nextTid(null, Math.max(0, clock.now() - config.spaces.opsKeepSecs * 1000) * 1000, 0)
