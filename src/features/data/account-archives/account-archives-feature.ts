/** The routes and metrics of account archives. */
import type { Feature } from '../../../http/feature.ts'
import { archiveRoutes } from './archive-routes.ts'
import { measureArchives } from './archive-stream.ts'

export const accountArchives: Feature = {
  name: 'account-archives',
  routes: archiveRoutes,
  async prepare(ctx) {
    measureArchives(ctx)
  },
}
