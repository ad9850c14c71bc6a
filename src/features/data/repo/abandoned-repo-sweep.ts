/**
 * Deletes, a few at a time, the rows of repositories that no account has: replaced repositories and abandoned imports.
 */
import { deleteInPieces, throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteSomeLargeRecords } from './large-records.ts'
import { deleteSomeNodes } from './node-store.ts'
import { deleteSomeRecords } from './record-store.ts'
import { claimAbandonedRepo, deleteRepoRow, listAbandonedRepos } from './repo-store.ts'

const INTERVAL_SECS = 60
/** Rows deleted in one transaction; a small number keeps other writers from waiting long. */
const ROWS = 500

export const abandonedRepoSweep: Sweep = {
  name: 'abandoned-repos',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  atStart: true,
  async run(ctx, stopping) {
    const throttled = throttle(stopping, ctx.busyShare)
    const report = { seen: 0, rows: 0 }
    for (const id of await listAbandonedRepos(ctx.db, ctx.clock.now())) {
      // Since the list was read, an import may have resumed or an account may have adopted the repository.
      if (!(await ctx.db.transaction((tx) => claimAbandonedRepo(tx, id, ctx.clock.now())))) continue
      report.seen++
      for (const deleteSome of [deleteSomeRecords, deleteSomeLargeRecords, deleteSomeNodes])
        report.rows += await deleteInPieces(throttled, ROWS, (limit) =>
          ctx.db.transaction((tx) => deleteSome(tx, id, limit)),
        )
      await ctx.db.transaction((tx) => deleteRepoRow(tx, id))
    }
    return report
  },
}
