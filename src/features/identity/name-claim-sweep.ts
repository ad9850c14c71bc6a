/** Settles claims on handles whose attempts ended without a result. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { listUnheldClaims } from './name-claim-store.ts'
import { settleUnheld } from './name-claims.ts'

/** An identity that an unfinished sign-up prepared is ended after this time. */
const RESTING_SECS = 3600
const INTERVAL_SECS = 600
const PAGE_CLAIMS = 100

export const nameClaimSweep: Sweep = {
  name: 'name-claims',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx) {
    const report = { seen: 0, settled: 0, failed: 0 }
    const now = ctx.clock.now()
    for (const { handle, heldUntil } of await listUnheldClaims(ctx.db, {
      now,
      restingSince: now - RESTING_SECS * 1000,
      limit: PAGE_CLAIMS,
    })) {
      report.seen++
      try {
        await settleUnheld(ctx, handle, heldUntil)
        report.settled++
      } catch (error) {
        report.failed++
        ctx.log.warn('handle claim could not be settled: the next pass tries again', { handle, error })
      }
    }
    return report
  },
}
