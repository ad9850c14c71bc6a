import type { Feature } from '../../../http/feature.ts'
import { furtherHandleRoutes } from './further-handle-routes.ts'
import { handleRoutes } from './handle-routes.ts'
import { nameClaimSweep } from './name-claim-sweep.ts'
import { leaveNamesOfGone } from './name-claims.ts'
import { deleteReservationsOf } from './name-reservation-store.ts'

export const handles: Feature = {
  name: 'handles',
  routes: [...handleRoutes, ...furtherHandleRoutes],
  sweeps: [nameClaimSweep],
  prepare: leaveNamesOfGone,
  reclaim: leaveNamesOfGone,
  async forgetAccount(_, tx, did) {
    await deleteReservationsOf(tx, did)
  },
}
