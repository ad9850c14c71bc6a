/** Forgets expired codes. They are kept a while, so that they are called expired and not wrong. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteMailedCodesBefore } from './mailed-code-store.ts'

const KEPT_MILLIS = 24 * 60 * 60 * 1000

export const mailedCodeSweep: Sweep = {
  name: 'mailed-codes',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteMailedCodesBefore(db, clock.now() - KEPT_MILLIS) }),
}
