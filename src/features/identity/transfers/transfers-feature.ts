import type { Feature } from '../../../http/feature.ts'
import { cancelRunningTransfer, endTransferCredentials } from './transferring.ts'
import { deleteTransfersOf } from './transfer-store.ts'
import { transferAdminRoutes } from './transfer-admin-routes.ts'
import { transferRoutes } from './transfer-routes.ts'
import { transferSweep } from './transfer-sweep.ts'

export const transfers: Feature = {
  name: 'transfers',
  routes: [...transferRoutes, ...transferAdminRoutes],
  sweeps: [transferSweep],
  async forgetAccount(_, tx, did) {
    await deleteTransfersOf(tx, did)
  },
  async endAccess({ clock }, tx, did, why) {
    // The old password may have opened the session that began a running transfer.
    if (why === 'new_password' || why === 'reset_password') await cancelRunningTransfer(tx, did, clock.now())
    if (why === 'revoked') return { transferDeviceTokens: await endTransferCredentials(tx, did, clock.now()) }
  },
}
