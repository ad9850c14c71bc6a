/** Removes what has had its time. Nothing depends on it: every read asks for the time itself. */
import type { Sweep } from '../../platform/running/sweeps.ts'
import { deleteDevicesBefore } from '../web/web.ts'
import { deleteDocumentsBefore, deleteUsedBefore } from './client-store.ts'
import { STALE_MILLIS } from './clients.ts'
import { deleteCodesBefore } from './code-store.ts'
import { deleteRequestsBefore } from './request-store.ts'
import { deleteEndedSessions } from './oauth-session-store.ts'

const INTERVAL_SECS = 1800

export const expirySweep: Sweep = {
  name: 'oauth-expiry',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run({ db, clock }) {
    const now = clock.now()
    return db.transaction(async (tx) => ({
      requests: await deleteRequestsBefore(tx, now),
      codes: await deleteCodesBefore(tx, now),
      sessions: await deleteEndedSessions(tx, now),
      devices: await deleteDevicesBefore(tx, now),
      used: await deleteUsedBefore(tx, now),
      clients: await deleteDocumentsBefore(tx, now - STALE_MILLIS),
    }))
  },
}
