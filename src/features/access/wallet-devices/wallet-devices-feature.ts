import type { Feature } from '../../../http/feature.ts'
import { sovereignSessionRoutes } from './sovereign-session-routes.ts'
import { deleteDevicesOf } from './wallet-device-store.ts'
import { walletDeviceRoutes } from './wallet-device-routes.ts'

export const walletDevices: Feature = {
  name: 'wallet-devices',
  capabilities: ['sovereignSessions'],
  routes: [...walletDeviceRoutes, ...sovereignSessionRoutes],
  async forgetAccount(_, tx, did) {
    await deleteDevicesOf(tx, did)
  },
}
