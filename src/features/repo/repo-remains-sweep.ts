/** Removes the rows of repositories that belong to nobody any more, a few at a time. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteSomeNodes } from './node-store.ts'
import { deleteSomeRecords } from './record-store.ts'
import { claimAbandonedRepo, deleteRepoRow, listAbandonedRepos } from './repo-store.ts'

const INTERVAL_SECS = 60
/** Rows deleted in one transaction, so that nobody waits long. */
const ROWS = 500

export const repoRemainsSweep: Sweep = {
  name: 'repo-remains',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  atStart: true,
  async run(ctx) {
    const report = { seen: 0, rows: 0 }
    for (const id of await listAbandonedRepos(ctx.db, ctx.clock.now())) {
      // An import may have gone on, or have given it to an account, since it was listed.
      if (!(await ctx.db.transaction((tx) => claimAbandonedRepo(tx, id, ctx.clock.now())))) continue
      report.seen++
      for (const deleteSome of [deleteSomeRecords, deleteSomeNodes]) {
        for (let deleted = ROWS; deleted === ROWS; report.rows += deleted) deleted = await ctx.db.transaction((tx) => deleteSome(tx, id, ROWS))
      }
      await ctx.db.transaction((tx) => deleteRepoRow(tx, id))
    }
    return report
  },
}
