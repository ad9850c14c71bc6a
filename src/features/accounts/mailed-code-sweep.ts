/** Deletes codes a day after they were sent. Until then an expired code is reported as expired, not as invalid. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteMailedCodesBefore } from './mailed-code-store.ts'

const KEPT_MILLIS = 24 * 60 * 60 * 1000

export const mailedCodeSweep: Sweep = {
  name: 'mailed-codes',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteMailedCodesBefore(db, clock.now() - KEPT_MILLIS) }),
}
