import type { Feature } from '../../../http/feature.ts'
import { adminNonceSweep } from './admin-nonce-sweep.ts'
import { operatorCredential } from './operator-credential.ts'
import { operatorRoutes } from './operator-routes.ts'

export const operators: Feature = {
  name: 'operators',
  routes: operatorRoutes,
  credentials: [operatorCredential],
  sweeps: [adminNonceSweep],
}
