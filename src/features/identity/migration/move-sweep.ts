/** Deletes plans that expired, with the sessions in them, and what is left of moves that ended long ago. */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteMovesDoneBefore, deletePlansBefore } from './move-store.ts'

/** How long the holder can look back at a move. */
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
