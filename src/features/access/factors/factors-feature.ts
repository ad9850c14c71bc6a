/** Second factors, and the sign-ins that wait for one. */
import type { Feature } from '../../../http/feature.ts'
import { deletePendingSignInsOf } from './pending-sign-in-store.ts'

export const factors: Feature = {
  name: 'factors',
  async forgetAccount(_, tx, did) {
    await deletePendingSignInsOf(tx, did)
  },
  async endAccess(_, tx, did, why) {
    if (why !== 'transferred') await deletePendingSignInsOf(tx, did)
  },
}
