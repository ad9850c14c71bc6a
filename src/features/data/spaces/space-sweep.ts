/** Deletes changes of repositories in spaces that are too old to be asked for, and repositories of deleted accounts. */
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
} from './space-store.ts'

const INTERVAL_SECS = 600
/** Rows deleted in one transaction; a small number keeps other writers from waiting long. */
const ROWS = 500
const PAGE_REPOS = 100

export const spaceSweep: Sweep = {
  name: 'spaces',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx, stopping) {
    const throttled = throttle(stopping)
    const report = { rows: 0, repos: 0 }
    const deleteAll = async (deleteSome: (tx: Tx) => Promise<number>) => {
      for (let deleted = ROWS; deleted === ROWS; report.rows += deleted)
        deleted = await throttled(() => ctx.db.transaction(deleteSome))
    }
    for (const { id } of await listDisowned(ctx.db, PAGE_REPOS)) {
      await deleteAll((tx) => deleteSomeSpaceRecords(tx, id, ROWS))
      await deleteAll((tx) => deleteSomeSpaceOps(tx, id, null, ROWS))
      report.repos += await ctx.db.transaction((tx) => deleteSpaceRepo(tx, id))
    }
    const oldest = oldestKept(ctx)
    for await (const repos of inPages(PAGE_REPOS, { id: 0 }, ({ id }, limit) =>
      throttled(() => listSpaceRepos(ctx.db, id, limit)),
    ))
      for (const { id } of repos) await deleteAll((tx) => deleteSomeSpaceOps(tx, id, oldest, ROWS))
    return report
  },
}

/** The first revision whose changes are kept. */
const oldestKept = ({ clock, config }: Context) =>
  nextTid(null, Math.max(0, clock.now() - config.spaces.opsKeepSecs * 1000) * 1000, 0)
