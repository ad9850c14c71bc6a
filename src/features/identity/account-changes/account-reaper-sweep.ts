/**
 * Deletes deactivated accounts whose deletion date has passed. Each pass tries all of them once, so accounts that
 * cannot be deleted do not keep it from the others.
 */
import { inPages } from '../../../platform/database/database.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { dueForDeletion } from '../accounts/accounts.ts'
import { deleteDueAccount } from './account-deletion.ts'

const PAGE_ACCOUNTS = 100
const start = { did: '', deleteAfter: Number.MIN_SAFE_INTEGER }

export const accountReaperSweep: Sweep = {
  name: 'account-reaper',
  destructive: true,
  intervalSecs: (config) => config.accounts.deletionReaperIntervalSecs,
  counts: { swept: 'account_reaper_swept_total' },
  async run(ctx, stopping) {
    const report = { swept: 0, errors: 0 }
    const now = ctx.clock.now()
    for await (const page of inPages(PAGE_ACCOUNTS, start, (after, limit) => dueForDeletion(ctx.db, now, after, limit)))
      for (const { did } of page) {
        stopping.throwIfAborted()
        try {
          if (await deleteDueAccount(ctx, did)) report.swept++
        } catch (error) {
          report.errors++
          ctx.log.error('could not delete an account; will retry in the next pass', { did, error })
        }
      }
    return report
  },
}
