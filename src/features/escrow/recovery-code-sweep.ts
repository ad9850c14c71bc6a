/** Deletes codes a day after they were issued. Until then they count toward the mails of their account. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { DAY_MILLIS } from './recovery-codes.ts'
import { deleteRecoveryCodesBefore } from './recovery-code-store.ts'

export const recoveryCodeSweep: Sweep = {
  name: 'recovery-codes',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteRecoveryCodesBefore(db, clock.now() - DAY_MILLIS) }),
}
