/** Ends quarantines of blobs that are due. */
import { MINUTE_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { dueQuarantines, endQuarantine } from './blob-quarantine.ts'

const ROWS_PER_PASS = 500

export const quarantineSweep: Sweep = {
  name: 'blob-quarantine',
  intervalSecs: () => MINUTE_SECS,
  // A wrong clock must not release a blob.
  destructive: true,
  async run({ db, clock }) {
    const due = await dueQuarantines(db, clock.now(), ROWS_PER_PASS)
    if (due.length > 0)
      await db.transaction(async (tx) => {
        for (const { did, cid, thenRef } of due) await endQuarantine(tx, did, cid, thenRef)
      })
    return { ended: due.length }
  },
}
