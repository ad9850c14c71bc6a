/**
 * Deletes codes a day after they were issued, because until then they count toward the mails of their account, and ends
 * releases that are over.
 */
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { clearOldReleases } from './escrow-store.ts'
import { deleteRecoveryCodesBefore } from './recovery-code-store.ts'

export const recoveryCodeSweep: Sweep = {
  name: 'recovery-codes',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({
    deleted: await deleteRecoveryCodesBefore(db, clock.now() - DAY_MILLIS),
    releases: await clearOldReleases(db, clock.now()),
  }),
}
