import type { Feature } from '../../http/feature.ts'
import { adminNonceSweep } from './admin-nonce-sweep.ts'
import { operatorRoutes } from './operator-routes.ts'

export const operators: Feature = { name: 'operators', routes: operatorRoutes, sweeps: [adminNonceSweep] }
