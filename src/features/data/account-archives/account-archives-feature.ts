/** The routes, metrics and schedules of account archives. */
import type { Feature } from '../../../http/feature.ts'
import { archiveRoutes } from './archive-routes.ts'
import { archiveScheduleSweep } from './archive-schedule-sweep.ts'
import { deleteSchedule } from './archive-schedule-store.ts'
import { deleteKeptArchives } from './kept-archives.ts'
import { measureArchives } from './archive-stream.ts'

export const accountArchives: Feature = {
  name: 'account-archives',
  routes: archiveRoutes,
  sweeps: [archiveScheduleSweep],
  async forgetAccount(ctx, tx, did) {
    await deleteSchedule(tx, did)
    return () => deleteKeptArchives(ctx, did)
  },
  async prepare(ctx) {
    measureArchives(ctx)
  },
}
