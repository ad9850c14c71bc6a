/**
 * Whether a session has ended. Its row alone decides, on every node: deleting the row ends all of its access tokens,
 * from the next request on.
 */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { expiredToken } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Revalidation } from '../../../http/revalidation.ts'
import { sessionExists } from './session-store.ts'

interface SessionOf {
  did: Did
  sessionId: string
}

/** Maximum number of remembered sessions, each in a few dozen bytes. */
const MAX_ENDED_SESSIONS = 20_000

/**
 * Sessions that were found to have ended. Some handlers revalidate the caller themselves; for these sessions the guard
 * asks the database too, so that their requests are not charged to the account. The cache itself decides nothing.
 */
const endedSessions = perContext(() => new BoundedCache<true>(MAX_ENDED_SESSIONS))

/** Clients react to `ExpiredToken` by using the refresh token, and sign out when that is refused too. */
export const sessionRevalidation = (ctx: Context, { did, sessionId }: SessionOf): Revalidation => ({
  did,
  condition: sessionExists(sessionId, did),
  refusal() {
    endedSessions(ctx).set(sessionId, true)
    return expiredToken('Token has been revoked')
  },
})

export const wasFoundEnded = (ctx: Context, { sessionId }: SessionOf): boolean =>
  endedSessions(ctx).get(sessionId) === true
