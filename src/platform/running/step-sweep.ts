/** Deletes steps that failed permanently and that no operator has retried or dropped within 30 days. */
import { deleteFailedBefore } from './step-store.ts'
import type { Sweep } from './sweeps.ts'

const KEPT_MILLIS = 30 * 24 * 60 * 60 * 1000

export const stepSweep: Sweep = {
  name: 'steps',
  destructive: true,
  intervalSecs: () => 86_400,
  run: async ({ db, clock }) => ({ deleted: await deleteFailedBefore(db, clock.now() - KEPT_MILLIS) }),
}
