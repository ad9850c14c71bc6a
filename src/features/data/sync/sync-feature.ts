/** The routes and metrics of sync. */
import type { Feature } from '../../../http/feature.ts'
import { measureExports } from './repo-export.ts'
import { syncRoutes } from './sync-routes.ts'

export const sync: Feature = {
  name: 'sync',
  routes: syncRoutes,
  async prepare(ctx) {
    measureExports(ctx)
  },
}
