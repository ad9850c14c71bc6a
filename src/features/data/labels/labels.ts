/** Labels that watched labelers put on hosted accounts. Only operators see them. */
import type { Feature } from '../../../http/feature.ts'
import { deleteFlagsAbout } from './flag-store.ts'
import { labelerWatchSweep } from './labeler-watch-sweep.ts'

export { countFlaggedAccounts, findFlags, flaggedDids, isFlagged, type Flag } from './flag-store.ts'

export const labels: Feature = {
  name: 'labels',
  sweeps: [labelerWatchSweep],
  async forgetAccount(_, tx, did) {
    await deleteFlagsAbout(tx, did)
  },
}
