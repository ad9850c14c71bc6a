/** The door for guards: what an app's access token is worth on a request, and the end of an account's sessions. */
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accessTokenHash } from '../../protocol/dpop.ts'
import { BASE_SCOPE, permissionsOf, type Permissions } from '../../protocol/scopes.ts'
import { deleteSignInsOf } from '../web/web.ts'
import { readOAuthAccessToken } from './oauth-access-tokens.ts'
import { deleteAuthorizationCodesOf } from './authorization-code-store.ts'
import { offerNonce, useProof } from './proofs.ts'
import { deleteOAuthSessionsOf, isOAuthSessionAlive } from './oauth-session-store.ts'

export { claimsToBeAccessToken } from './oauth-access-tokens.ts'
export { appHost, HAS_ACCOUNT } from './authorize-page.ts'
export { deleteOAuthSession, findOAuthSession, oauthSessionsOf, type OAuthSession } from './oauth-session-store.ts'
export { sentence, wordsOf } from './scope-words.ts'

/** An app, and the account that lets it in. */
export interface OAuthCaller {
  did: Did
  clientId: string
  sessionId: string
  /** `jti` of the access token. */
  tokenId: string
  permissions: Permissions
}

/**
 * The app behind `Authorization: DPoP <token>`. Refuses unless the proof is good and fresh, the token is ours, alive
 * and bound to the proof's key, and its session has not ended. The account's own state is the guard's to check.
 */
export async function verifyDpopToken(exchange: Exchange, token: string): Promise<OAuthCaller> {
  const { ctx } = exchange
  await offerNonce(exchange)
  const read = await readOAuthAccessToken(ctx, token)
  const proof = await useProof(exchange, read.token?.hash ?? accessTokenHash(token))
  if (!proof.ok) throw refusedToken('DPoP', proof.error, proof.reason)
  if (!read.ok)
    throw read.fault === 'expired' ? refusedToken('DPoP', 'invalid_token', 'Token has expired', 'ExpiredToken') : invalidAccessToken()
  const { did, jkt, scope, tokenId, claims } = read.token
  if (jkt === null) throw refusedToken('Bearer', 'invalid_token', 'The access token is not bound to a key')
  const { sid, client_id: clientId } = claims
  if (jkt !== proof.jkt || typeof sid !== 'string' || typeof clientId !== 'string') throw invalidAccessToken()
  const permissions = permissionsOf(scope)
  if (!permissions.scopes.has(BASE_SCOPE) || !(await isOAuthSessionAlive(ctx.db, sid, did))) throw invalidAccessToken()
  return { did, clientId, sessionId: sid, tokenId, permissions }
}

/** What to throw when an app's token comes as `Bearer`, without its proof. */
export const boundTokenAsBearer = () => refusedToken('DPoP', 'invalid_token', 'The access token is bound to a key and needs a proof')

const invalidAccessToken = () => refusedToken('DPoP', 'invalid_token', 'The access token is not valid')

/** Clients act on the challenge; the ones that know sessions only read the name in the body. */
function refusedToken(scheme: 'DPoP' | 'Bearer', error: string, description: string, name = error): Refusal {
  const headers = { 'WWW-Authenticate': `${scheme} error="${error}", error_description="${description}"` }
  return new Refusal(
    401,
    name,
    description,
    name === error && error !== 'use_dpop_nonce' ? { headers, code: 'INVALID_TOKEN' } : { headers },
  )
}

/** Everything that apps and browsers hold of an account: after a takedown, a deletion, a repair. Counts what apps held. */
export async function endOAuthSessions(tx: Tx, did: Did): Promise<{ sessions: number; codes: number }> {
  await deleteSignInsOf(tx, did)
  return { codes: await deleteAuthorizationCodesOf(tx, did), sessions: await deleteOAuthSessionsOf(tx, did) }
}
