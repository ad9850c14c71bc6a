/** Deletes events of accounts after 90 days, and sign-ins of accounts that have thousands. */
import { DAY_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteCrowdedSignIns, deleteEventsUntil, oldestKept } from './account-event-store.ts'

const BATCH = 1000

export const accountEventSweep: Sweep = {
  name: 'account-events',
  destructive: true,
  intervalSecs: () => DAY_SECS,
  async run({ db, clock }) {
    const until = oldestKept(clock.now())
    const report = { deleted: 0, crowded: 0 }
    for (let deleted = BATCH; deleted === BATCH; report.deleted += deleted)
      deleted = await deleteEventsUntil(db, until, BATCH)
    report.crowded = await deleteCrowdedSignIns(db)
    return report
  },
}
