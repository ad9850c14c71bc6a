/** Deletes expired rows. Security does not depend on it: an expired row gives no access even before it is deleted. */
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteDevicesBefore } from '../pages/pages.ts'
import { deleteUsedBefore, forgetOldProofs } from '../tokens/tokens.ts'
import { clientDocuments, STALE_MILLIS } from './clients.ts'
import { deleteAuthorizationCodesBefore } from './authorization-code-store.ts'
import { deleteRequestsBefore } from './authorization-request-store.ts'
import { deleteEndedOAuthSessions } from './oauth-session-store.ts'
import { forgetOldConsents } from './wallet-consents.ts'

/** The lifetime of a pushed request, so that requests from strangers do not accumulate. */
const INTERVAL_SECS = 300

export const expirySweep: Sweep = {
  name: 'oauth-expiry',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx) {
    const { db, clock } = ctx
    const now = clock.now()
    const deleted = await db.transaction(async (tx) => ({
      requests: await deleteRequestsBefore(tx, now),
      codes: await deleteAuthorizationCodesBefore(tx, now),
      sessions: await deleteEndedOAuthSessions(tx, now),
      devices: await deleteDevicesBefore(tx, now),
      used: await deleteUsedBefore(tx, now),
      clients: await clientDocuments.forgetBefore(tx, now - STALE_MILLIS),
    }))
    if (db.cluster !== null) await forgetOldProofs(db.cluster)
    return { ...deleted, ...(await forgetOldConsents(ctx)) }
  },
}
