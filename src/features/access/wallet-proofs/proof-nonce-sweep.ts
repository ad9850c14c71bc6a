/** Deletes nonces whose proofs are too old to be accepted again. */
import { HOUR_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteNoncesBefore } from './proof-nonce-store.ts'

/** Much longer than the two minutes during which a proof may be accepted. */
const NONCE_KEPT_MILLIS = HOUR_MILLIS

export const proofNonceSweep: Sweep = {
  name: 'proof-nonces',
  destructive: true,
  intervalSecs: () => HOUR_SECS,
  run: async ({ db, clock }) => ({ deleted: await deleteNoncesBefore(db, clock.now() - NONCE_KEPT_MILLIS) }),
}
