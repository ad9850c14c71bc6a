/** Deletes expired rows. Security does not depend on it: an expired row gives no access even before it is deleted. */
import { deleteInPieces, throttle } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteDevicesBefore } from '../pages/pages.ts'
import { deleteUsedBefore, forgetOldProofs } from '../tokens/tokens.ts'
import { clientDocuments, STALE_MILLIS } from './clients.ts'
import { deleteAuthorizationCodesBefore } from './authorization-code-store.ts'
import { deleteRequestsBefore } from './authorization-request-store.ts'
import { deleteEndedOAuthSessions } from './oauth-session-store.ts'
import { forgetOldConsents } from './wallet-consents.ts'

/** As long as the lifetime of a pushed request, so that requests from strangers do not accumulate. */
const INTERVAL_SECS = 300
/** Rows deleted at once, of tables with content that strangers send or publish. */
const ROWS = 100

export const expirySweep: Sweep = {
  name: 'oauth-expiry',
  destructive: true,
  intervalSecs: () => INTERVAL_SECS,
  async run(ctx, stopping) {
    const { db, clock } = ctx
    const now = clock.now()
    const throttled = throttle(stopping, ctx.busyShare)
    const deleteAll = (deleteSome: (limit: number) => Promise<number>) => deleteInPieces(throttled, ROWS, deleteSome)
    const large = {
      requests: await deleteAll((limit) => deleteRequestsBefore(db, now, limit)),
      codes: await deleteAll((limit) => deleteAuthorizationCodesBefore(db, now, limit)),
      clients: await deleteAll((limit) => clientDocuments.forgetBefore(db, now - STALE_MILLIS, limit)),
    }
    const small = await db.transaction(async (tx) => ({
      sessions: await deleteEndedOAuthSessions(tx, now),
      devices: await deleteDevicesBefore(tx, now),
      used: await deleteUsedBefore(tx, now),
    }))
    if (db.cluster !== null) await forgetOldProofs(db.cluster)
    return { ...large, ...small, ...(await forgetOldConsents(ctx)) }
  },
}
