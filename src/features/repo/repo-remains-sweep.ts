/** Removes the rows of repositories that belong to nobody any more, a few at a time. */
import type { Tx } from '../../platform/database.ts'
import type { Sweep } from '../../platform/sweeps.ts'
import { deleteSomeNodes } from './node-store.ts'
import { deleteSomeRecords } from './record-store.ts'
import { deleteRepoRow, isDisowned, listDisowned } from './repo-store.ts'
import { stagedRepos } from './repo-staging.ts'

const INTERVAL_SECS = 60
/** Rows deleted in one transaction, so that nobody waits long. */
const ROWS = 500

export const repoRemainsSweep: Sweep = {
  name: 'repo-remains',
  intervalSecs: () => INTERVAL_SECS,
  atStart: true,
  async run(ctx) {
    const report = { seen: 0, rows: 0 }
    for (const id of await listDisowned(ctx.db)) {
      if (stagedRepos(ctx).has(id)) continue
      report.seen++
      // Asked again in each transaction: an import may have given it to an account since it was listed.
      const ifDisowned = (remove: (tx: Tx) => Promise<number>) => ctx.db.transaction(async (tx) => ((await isDisowned(tx, id)) ? remove(tx) : 0))
      for (const deleteSome of [deleteSomeRecords, deleteSomeNodes]) {
        for (let deleted = ROWS; deleted === ROWS; report.rows += deleted) deleted = await ifDisowned((tx) => deleteSome(tx, id, ROWS))
      }
      await ifDisowned((tx) => deleteRepoRow(tx, id))
    }
    return report
  },
}
