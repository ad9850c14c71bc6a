/** Ends quarantines of blobs that are due. */
import { MINUTE_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { endDueQuarantines, hasDueQuarantine } from './blob-quarantine.ts'

const ROWS_PER_PASS = 500

export const quarantineSweep: Sweep = {
  name: 'blob-quarantine',
  intervalSecs: () => MINUTE_SECS,
  // With a wrong clock, it would release blobs too early.
  destructive: true,
  async run({ db, clock }) {
    const now = clock.now()
    if (!(await hasDueQuarantine(db, now))) return { ended: 0 }
    return { ended: await db.transaction((tx) => endDueQuarantines(tx, now, ROWS_PER_PASS)) }
  },
}
