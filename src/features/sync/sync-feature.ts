/** What sync plugs in. */
import type { Feature } from '../../http/feature.ts'
import { syncRoutes } from './sync-routes.ts'

export const sync: Feature = { name: 'sync', routes: syncRoutes }
