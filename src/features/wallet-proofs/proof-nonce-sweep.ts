/** Deletes nonces whose proofs are too old to be accepted again. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteNoncesBefore } from './proof-nonce-store.ts'

/** Much longer than the two minutes for which a proof may be accepted. */
const NONCE_KEPT_MILLIS = 3_600_000

export const proofNonceSweep: Sweep = {
  name: 'proof-nonces',
  destructive: true,
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteNoncesBefore(db, clock.now() - NONCE_KEPT_MILLIS) }),
}
