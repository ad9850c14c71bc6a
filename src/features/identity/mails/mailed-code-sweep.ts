/** Deletes codes a day after they were sent. Until then an expired code is reported as expired, not as invalid. */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteMailedCodesBefore } from './mailed-code-store.ts'

const KEPT_MILLIS = DAY_MILLIS

export const mailedCodeSweep: Sweep = {
  name: 'mailed-codes',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteMailedCodesBefore(db, clock.now() - KEPT_MILLIS) }),
}
