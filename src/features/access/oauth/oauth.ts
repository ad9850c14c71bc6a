/** The door of OAuth: verifies the access tokens of apps, for guards, and ends the sessions of an account. */
import type { Revalidation } from '../../../http/revalidation.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accessTokenHash } from '../../../protocol/dpop.ts'
import { BASE_SCOPE, permissionsOf, type Permissions } from '../../../protocol/scopes.ts'
import { invalidAccessToken, offerNonce, readOAuthAccessToken, refusedToken, useProof } from '../tokens/tokens.ts'
import { deleteAuthorizationCodesBy, deleteAuthorizationCodesOf } from './authorization-code-store.ts'
import {
  aliveOAuthSession,
  deleteOAuthSessionsOf,
  oauthSessionExists,
  type SessionDelegation,
} from './oauth-session-store.ts'
import { deleteConsentsBy } from './wallet-consent-store.ts'

export { endsOf, isFormerRefreshToken, keepOAuthSession, type FormerOAuthSession } from './former-oauth-sessions.ts'
export { appHost, appName, HAS_ACCOUNT, WITH_NEW_PASSWORD } from './authorize-page.ts'
export { deleteOAuthSession, findOAuthSession, oauthSessionsOf, type OAuthSession } from './oauth-session-store.ts'
export { listConsentEvents, type ConsentEvent } from './wallet-consent-event-store.ts'
export type { Consent } from './wallet-consent-store.ts'
export { consentsAwaiting } from './wallet-consents.ts'
export { beginBrowserSignIn, browserSignInOf, completeBrowserSignIn } from './browser-sign-ins.ts'
export { denyAsHolder } from './wallet-decisions.ts'
export { waitScript, walletBlock } from './wallet-consent-block.ts'

/** An app that calls with a valid access token, and the account that authorized it. */
export interface OAuthCaller {
  did: Did
  clientId: string
  sessionId: string
  /** `jti` of the access token. */
  tokenId: string
  permissions: Permissions
  /** Null if the account holder, and not a delegate, authorized the app. */
  delegation: SessionDelegation | null
}

/**
 * Verify the access token of `Authorization: DPoP <token>` and the DPoP proof of the request, and return the caller.
 * Does not check the account's status: that is left to the guard.
 *
 * Throws a 401 with a challenge. It is `invalid_dpop_proof` or `use_dpop_nonce` if the proof is refused, `ExpiredToken`
 * if the token has expired, and `invalid_token` if this server did not issue the token, if it is not bound to the key
 * of the proof, if it lacks the scope `atproto`, or if its session has ended. Throws `temporarily_unavailable` (503)
 * when the memory of used proofs is full.
 *
 * Source: RFC 9449, sections 7.1 and 9.
 */
export async function verifyDpopToken(exchange: Exchange, token: string): Promise<OAuthCaller> {
  const { ctx } = exchange
  await offerNonce(exchange)
  const read = await readOAuthAccessToken(ctx, token)
  const proof = await useProof(exchange, read.token?.hash ?? accessTokenHash(token))
  if (!proof.ok) throw refusedToken('DPoP', proof.error, proof.reason)
  if (!read.ok)
    throw read.fault === 'expired'
      ? refusedToken('DPoP', 'invalid_token', 'Token has expired', 'ExpiredToken')
      : invalidAccessToken()
  const { did, jkt, scope, tokenId, claims } = read.token
  if (jkt === null) throw refusedToken('Bearer', 'invalid_token', 'The access token is not bound to a key')
  const { sid, client_id: clientId } = claims
  if (jkt !== proof.jkt || typeof sid !== 'string' || typeof clientId !== 'string') throw invalidAccessToken()
  const session = await aliveOAuthSession(ctx.db, sid, did)
  if (session === null) throw invalidAccessToken()
  const { delegation } = session
  const permissions = permissionsOf(scope, delegation?.scope)
  if (!permissions.scopes.has(BASE_SCOPE)) throw invalidAccessToken()
  return { did, clientId, sessionId: sid, tokenId, permissions, delegation }
}

/** Revalidates an app: its session may end during a request. */
export const oauthSessionRevalidation = ({ sessionId, did }: Pick<OAuthCaller, 'sessionId' | 'did'>): Revalidation => ({
  did,
  condition: oauthSessionExists(sessionId, did),
  refusal: invalidAccessToken,
})

/**
 * Delete the account's authorization codes, app sessions and approvals by a wallet, as after a takedown,
 * a deletion or a repair. Returns how many sessions and codes of apps were deleted.
 */
export async function endOAuthSessions(tx: Tx, did: Did): Promise<{ sessions: number; codes: number }> {
  await deleteConsentsBy(tx, did)
  await deleteAuthorizationCodesBy(tx, did)
  return { codes: await deleteAuthorizationCodesOf(tx, did), sessions: await deleteOAuthSessionsOf(tx, did) }
}
