import type { Feature } from '../../http/feature.ts'
import { transferAdminRoutes } from './transfer-admin-routes.ts'
import { transferRoutes } from './transfer-routes.ts'
import { transferSweep } from './transfer-sweep.ts'

export const transfers: Feature = { name: 'transfers', routes: [...transferRoutes, ...transferAdminRoutes], sweeps: [transferSweep] }
