import type { Feature } from '../../../http/feature.ts'
import { reservedKeyRoutes } from './reserved-key-routes.ts'
import { forgetReservedKey } from './reserved-key-store.ts'
import { reservedKeySweep } from './reserved-key-sweep.ts'

export const reservedKeys: Feature = {
  name: 'reserved-keys',
  routes: reservedKeyRoutes,
  sweeps: [reservedKeySweep],
  async forgetAccount(_, tx, did) {
    await forgetReservedKey(tx, did)
  },
}
