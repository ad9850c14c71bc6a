import type { Feature } from '../../../http/feature.ts'
import { deleteEscrowOf } from './escrow-shares.ts'
import { escrowRoutes } from './escrow-routes.ts'
import { countReleases } from './escrow-store.ts'
import { recoveryCodeSweep } from './recovery-code-sweep.ts'
import { deleteRecoveryCodesOf } from './recovery-code-store.ts'
import { recoveryRequestStep } from './recovery-codes.ts'
import { endRelease } from './share-releases.ts'

export const escrow: Feature = {
  name: 'escrow',
  capabilities: ['escrow'],
  routes: escrowRoutes,
  sweeps: [recoveryCodeSweep],
  steps: [recoveryRequestStep],
  async prepare({ metrics, db }) {
    metrics.gauge('recovery_releases_open', 'Releases of recovery shares that are waiting or not yet collected', () =>
      countReleases(db),
    )
  },
  forgetAccount: (_, tx, did) => deleteEscrowOf(tx, did),
  async endAddress(ctx, tx, did, { before, after }) {
    await deleteRecoveryCodesOf(tx, did)
    // Anyone who reads the mail of the former address may have opened the release.
    if (before !== after) await endRelease({ ctx }, tx, did)
  },
}
