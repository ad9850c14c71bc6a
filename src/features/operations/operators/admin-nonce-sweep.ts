/** Deletes old nonces of operator requests, expired pairing codes, and sessions that have ended. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { deleteInPieces, throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { aliveBounds } from './operator-sessions.ts'
import { deleteOldOperatorSessions } from './operator-session-store.ts'
import { deleteNonces, deletePairingCodes } from './operator-device-store.ts'

/** Rows deleted per transaction. */
const SWEEP_ROWS = 5000
/** How long expired sessions are kept: a download that began before a session expired may still be running. */
const KEPT_SESSION_MILLIS = DAY_MILLIS

/** Nonces are needed for twice the time window of a request, which is the minimum of the configured age. */
export const adminNonceSweep: Sweep = {
  name: 'admin-nonce-sweep',
  destructive: true,
  counts: { swept: 'admin_nonce_sweep_swept_total' },
  intervalSecs: ({ adminDevices }) => adminDevices.nonceSweepIntervalSecs,
  async run(ctx, stopping) {
    const { db, clock, config } = ctx
    const throttled = throttle(stopping, ctx.busyShare)
    const seenBefore = clock.now() - config.adminDevices.nonceMaxAgeSecs * 1000
    const swept = await deleteInPieces(throttled, SWEEP_ROWS, (limit) =>
      db.transaction((tx) => deleteNonces(tx, { seenBefore, limit })),
    )
    await db.transaction((tx) => deletePairingCodes(tx, clock.now()))
    const { openedAfter, usedAfter } = aliveBounds(ctx)
    const old = { openedAfter: openedAfter - KEPT_SESSION_MILLIS, usedAfter: usedAfter - KEPT_SESSION_MILLIS }
    await deleteInPieces(throttled, SWEEP_ROWS, (limit) =>
      db.transaction((tx) => deleteOldOperatorSessions(tx, old, limit)),
    )
    return { swept, errors: 0 }
  },
}
