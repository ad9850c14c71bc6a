/** The routes of sync. */
import type { Feature } from '../../http/feature.ts'
import { syncRoutes } from './sync-routes.ts'

export const sync: Feature = { name: 'sync', routes: syncRoutes }
