import type { Feature } from '../../../http/feature.ts'
import { adminNonceSweep } from './admin-nonce-sweep.ts'
import { operatorCredential } from './operator-credential.ts'
import { operatorRoutes } from './operator-routes.ts'
import { deleteOperatorSessionsOf } from './operator-session-store.ts'
import { deleteRole } from './role-store.ts'
import { roleRoutes } from './role-routes.ts'

export const operators: Feature = {
  name: 'operators',
  routes: [...operatorRoutes, ...roleRoutes],
  credentials: [operatorCredential],
  sweeps: [adminNonceSweep],
  async forgetAccount(_, tx, did) {
    await deleteOperatorSessionsOf(tx, did)
    await deleteRole(tx, did)
  },
  async endAccess(_, tx, did) {
    await deleteOperatorSessionsOf(tx, did)
  },
  async endActivity(tx, did) {
    await deleteOperatorSessionsOf(tx, did)
  },
}
