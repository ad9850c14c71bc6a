/**
 * Reconciles claims on handles with the directory if their attempts ended without a result, and ends reservations that
 * have expired.
 */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { listUnheldClaims } from './name-claim-store.ts'
import { reconcileUnheld } from './name-claims.ts'
import { deleteReservationsBefore } from './name-reservation-store.ts'

/** Time after which the identity that an unfinished sign-up prepared is ended. */
const RESTING_SECS = HOUR_SECS
const INTERVAL_SECS = 600
const PAGE_CLAIMS = 100

export const nameClaimSweep: Sweep = {
  name: 'name-claims',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx, stopping) {
    const now = ctx.clock.now()
    const report = { seen: 0, reconciled: 0, failed: 0, released: await deleteReservationsBefore(ctx.db, now) }
    for (const { handle, heldUntil } of await listUnheldClaims(ctx.db, {
      now,
      restingSince: now - RESTING_SECS * 1000,
      // No operation of unknown outcome is waited for that long, so the clock was ahead when such a hold was written.
      latest: now + RESTING_SECS * 1000,
      limit: PAGE_CLAIMS,
    })) {
      stopping.throwIfAborted()
      report.seen++
      try {
        await reconcileUnheld(ctx, handle, heldUntil)
        report.reconciled++
      } catch (error) {
        report.failed++
        ctx.log.warn('could not reconcile a handle claim with the directory; will retry in the next pass', {
          handle,
          error,
        })
      }
    }
    return report
  },
}
