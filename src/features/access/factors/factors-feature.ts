/** Second factors, and the sign-ins that wait for one. */
import type { Feature } from '../../../http/feature.ts'
import { deleteFactors } from './factor-changes.ts'
import { deleteTrustedBrowsersOf } from './trusted-browser-store.ts'
import { deletePendingSignInsOf } from './pending-sign-in-store.ts'

export const factors: Feature = {
  name: 'factors',
  async forgetAccount(_, tx, did) {
    await deleteFactors(tx, did)
    await deletePendingSignInsOf(tx, did)
  },
  // Keep the factors: a password that was set with a mailed code must not remove them.
  async endAccess(_, tx, did, why) {
    if (why === 'transferred') return
    await deletePendingSignInsOf(tx, did)
    await deleteTrustedBrowsersOf(tx, did)
  },
}
