/**
 * Deletes changes of repositories in spaces that are too old or too many to be asked for, and repositories of deleted
 * accounts. Of spaces that are switched off, only the latter go.
 */
import type { Context } from '../../../platform/context.ts'
import { inPages, type Tx } from '../../../platform/database/database.ts'
import { throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { nextTid } from '../../../protocol/tid.ts'
import {
  deleteSomeSpaceOps,
  deleteSomeSpaceRecords,
  deleteSpaceRepo,
  listDisowned,
  listSpaceRepos,
  revOfOp,
} from './space-store.ts'

const INTERVAL_SECS = 600
/** Rows deleted in one transaction; a small number keeps other writers from waiting long. */
const ROWS = 500
const PAGE_REPOS = 100
/** Most changes of a repository that are kept. */
const MAX_OPS = 100_000

export const spaceSweep: Sweep = {
  name: 'spaces',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx, stopping) {
    const throttled = throttle(stopping, ctx.busyShare)
    const report = { rows: 0, repos: 0 }
    const deleteAll = async (deleteSome: (tx: Tx) => Promise<number>) => {
      for (let deleted = ROWS; deleted >= ROWS; report.rows += deleted)
        deleted = await throttled(() => ctx.db.transaction(deleteSome))
    }
    for await (const repos of inPages(PAGE_REPOS, { id: 0 }, ({ id }, limit) => listDisowned(ctx.db, id, limit)))
      for (const { id } of repos) {
        await deleteAll((tx) => deleteSomeSpaceRecords(tx, id, ROWS))
        await deleteAll((tx) => deleteSomeSpaceOps(tx, id, null, ROWS))
        report.repos += await ctx.db.transaction((tx) => deleteSpaceRepo(tx, id))
      }
    if (!ctx.config.spaces.enabled) return report
    const tooOld = lastForgotten(ctx)
    for await (const repos of inPages(PAGE_REPOS, { id: 0 }, ({ id }, limit) =>
      throttled(() => listSpaceRepos(ctx.db, id, limit)),
    ))
      for (const { id } of repos) {
        const tooMany = await throttled(() => revOfOp(ctx.db, id, MAX_OPS))
        const upTo = tooMany !== null && tooMany > tooOld ? tooMany : tooOld
        await deleteAll((tx) => deleteSomeSpaceOps(tx, id, upTo, ROWS))
      }
    return report
  },
}

/** The last revision whose changes are too old. */
const lastForgotten = ({ clock, config }: Context) =>
  nextTid(null, Math.max(0, clock.now() - config.spaces.opsKeepSecs * 1000) * 1000, 0)
