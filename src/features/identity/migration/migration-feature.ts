import type { Feature } from '../../../http/feature.ts'
import { moveOutRoutes } from './move-out-routes.ts'
import { moveRoutes } from './move-routes.ts'
import { moveStep } from './move-step.ts'
import { deleteMove, deletePlansOf } from './move-store.ts'
import { moveSweep } from './move-sweep.ts'

/** Moving single accounts between servers. */
export const migration: Feature = {
  name: 'migration',
  routes: [...moveRoutes, ...moveOutRoutes],
  sweeps: [moveSweep],
  steps: [moveStep],
  async forgetAccount(_, tx, did) {
    await deletePlansOf(tx, did)
    await deleteMove(tx, did)
  },
}
