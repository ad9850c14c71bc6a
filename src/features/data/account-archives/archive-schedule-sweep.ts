/** Makes the archives that are due, one after another, and tells their holders. */
import { DAY_SECS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { addMail, archiveReadyMail } from '../../identity/mails/mails.ts'
import { advanceSchedule, dueSchedules, periodMillis, type ArchiveSchedule } from './archive-schedule-store.ts'
import { NoRoomForArchive } from './archive-contents.ts'
import { deleteKeptArchives, keepArchive } from './kept-archives.ts'

const PAGE = 100

export const archiveScheduleSweep: Sweep = {
  name: 'account-archives',
  maxPassSecs: 3 * DAY_SECS,
  intervalSecs: ({ archives }) => (archives.folder === null ? 0 : HOUR_SECS),
  async run(ctx, stopping) {
    const report = { made: 0, failed: 0, withoutRoom: 0 }
    const { folder } = ctx.config.archives
    if (folder === null) return report
    const now = ctx.clock.now()
    for (let after: ArchiveSchedule | null = null; ;) {
      const due: ArchiveSchedule[] = await dueSchedules(ctx.db, now, after, PAGE)
      for (const schedule of due) {
        stopping.throwIfAborted()
        try {
          const bytes = await keepArchive(ctx, folder, schedule.did, stopping)
          const isDeleted = await ctx.db.transaction(async (tx) => {
            const account = await accountOf(tx, schedule.did)
            if (account === null) return true
            const isDue = (await advanceSchedule(tx, schedule, now + periodMillis[schedule.every])) > 0
            const { did, email } = account
            if (!isDue || email === null) return false
            await addMail(ctx, tx, {
              key: `archive ${did}`,
              did,
              what: 'archive',
              causedBy: 'holder',
              mail: await archiveReadyMail(ctx, { ...account, email }, bytes),
            })
            return false
          })
          // The account was deleted with its archives before this one got its name.
          if (isDeleted) await deleteKeptArchives(ctx, schedule.did)
          report.made++
        } catch (error) {
          stopping.throwIfAborted()
          report[error instanceof NoRoomForArchive ? 'withoutRoom' : 'failed']++
          ctx.log.warn('could not make an archive; will retry in the next pass', { did: schedule.did, error })
        }
      }
      if (due.length < PAGE) return report
      after = due.at(-1)!
    }
  },
}
