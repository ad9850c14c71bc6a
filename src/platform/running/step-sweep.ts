/** Deletes steps that failed permanently and that no operator has retried or dropped within 30 days. */
import { DAY_MILLIS, DAY_SECS } from '../../base/durations.ts'
import { deleteFailedBefore } from './step-store.ts'
import type { Sweep } from './sweeps.ts'

const KEPT_MILLIS = 30 * DAY_MILLIS

export const stepSweep: Sweep = {
  name: 'steps',
  destructive: true,
  intervalSecs: () => DAY_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteFailedBefore(db, clock.now() - KEPT_MILLIS) }),
}
