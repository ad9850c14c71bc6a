/** Deletes decided cases after `cases.keep_secs`, with their reports and notes. */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteCases, findFinishedBefore } from './case-store.ts'

const CASES_PER_TRANSACTION = 100

export const caseRetentionSweep: Sweep = {
  name: 'case-retention',
  intervalSecs: ({ cases }) => (cases.keepSecs === 0 ? 0 : DAY_SECS),
  destructive: true,
  async run({ config, db, clock }, stopping) {
    const before = clock.now() - config.cases.keepSecs * 1000
    const report = { deleted: 0 }
    for (;;) {
      stopping.throwIfAborted()
      const seqs = await findFinishedBefore(db, before, CASES_PER_TRANSACTION)
      if (seqs.length === 0) return report
      await db.transaction((tx) => deleteCases(tx, seqs))
      report.deleted += seqs.length
    }
  },
}
