/** Deletes expired plans, with the sessions in them, and rows of moves that ended long ago. */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteMovesDoneBefore, deletePlansBefore } from './move-store.ts'

/** How long the row of a finished move is kept, so that the holder can look at it. */
const KEPT_MILLIS = 30 * DAY_MILLIS

export const moveSweep: Sweep = {
  name: 'moves',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  async run({ db, clock }) {
    const now = clock.now()
    return {
      plans: await deletePlansBefore(db, now),
      moves: await deleteMovesDoneBefore(db, now - KEPT_MILLIS),
    }
  },
}
