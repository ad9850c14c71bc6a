/** Deletes deactivated accounts whose deletion date has passed. */
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { dueForDeletion } from '../accounts/accounts.ts'
import { deleteDueAccount } from './account-deletion.ts'

const PAGE_ACCOUNTS = 100

export const accountReaperSweep: Sweep = {
  name: 'account-reaper',
  destructive: true,
  intervalSecs: (config) => config.accounts.deletionReaperIntervalSecs,
  counts: { swept: 'account_reaper_swept_total' },
  async run(ctx) {
    const report = { swept: 0, errors: 0 }
    for (const did of await dueForDeletion(ctx.db, ctx.clock.now(), { limit: PAGE_ACCOUNTS })) {
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
