/** Forgets used nonces of operators' requests, and pairing codes that have expired. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteNonces, deletePairingCodes } from './operator-device-store.ts'

/** Rows of one transaction. */
const SWEEP_ROWS = 5000

/** Nonces are needed for twice the window that a request is accepted in; the least configurable age is that. */
export const adminNonceSweep: Sweep = {
  name: 'admin-nonce-sweep',
  destructive: true,
  counts: { swept: 'admin_nonce_sweep_swept_total' },
  intervalSecs: ({ adminDevices }) => adminDevices.nonceSweepIntervalSecs,
  async run({ db, clock, config }) {
    const seenBefore = clock.now() - config.adminDevices.nonceMaxAgeSecs * 1000
    const report = { swept: 0, errors: 0 }
    for (let deleted = SWEEP_ROWS; deleted === SWEEP_ROWS; ) {
      deleted = await db.transaction((tx) => deleteNonces(tx, { seenBefore, limit: SWEEP_ROWS }))
      report.swept += deleted
    }
    await db.transaction((tx) => deletePairingCodes(tx, clock.now()))
    return report
  },
}
