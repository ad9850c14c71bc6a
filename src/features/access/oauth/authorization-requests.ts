/**
 * Authorization requests. A client pushes one, a browser opens it, and it is decided once.
 *
 * Every decision goes through `decideRequest`, whether it is made by password, by a signed-in account or by a wallet.
 */
import type { Origin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { AuthorizationRequest } from '../../../protocol/authorization-request.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { withParameters } from '../../../protocol/redirect-uris.ts'
import { insertAuthorizationCode } from './authorization-code-store.ts'
import {
  extendRequest,
  findRequest,
  insertRequest,
  takeRequest,
  type OpenRequest,
  type PendingRequest,
} from './authorization-request-store.ts'

/** Time from the push to the decision. */
export const REQUEST_TTL_SECS = 300
const CODE_TTL_SECS = 60
const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'

export type Decision =
  | {
      kind: 'approve'
      did: Did
      scopes: readonly string[]
      scopeIsFixed: boolean
      origin: Origin
      /** The delegation by which a delegate decides; omitted if the account holder decides. */
      delegationId?: string
    }
  | { kind: 'refuse'; error: 'access_denied' | 'login_required' | 'invalid_scope'; reason: string }

/** The decision of an account holder who lets the app do nothing. */
export const denial = {
  kind: 'refuse',
  error: 'access_denied',
  reason: 'The account holder has denied the request',
} as const satisfies Decision

/** Store a request that was checked. Returns the response body of RFC 9126, 2.2; `expires_in` is in seconds. */
export async function pushRequest(
  { db, clock }: Context,
  pending: PendingRequest,
): Promise<{ request_uri: string; expires_in: number }> {
  const { token, hash } = newToken()
  await insertRequest(db, hash, pending, clock.now() + REQUEST_TTL_SECS * 1000)
  return { request_uri: REQUEST_URI_PREFIX + token, expires_in: REQUEST_TTL_SECS }
}

/** The stored hash of a `request_uri`; null if this server does not issue URIs of that form. */
export const requestHash = (requestUri: string): string | null =>
  requestUri.startsWith(REQUEST_URI_PREFIX) ? opaqueTokenHash(requestUri.slice(REQUEST_URI_PREFIX.length)) : null

/** Returns the pending request; null if it is unknown, decided or expired. Opening it does not extend its lifetime. */
export const openRequest = ({ db, clock }: Context, idHash: string): Promise<OpenRequest | null> =>
  findRequest(db, idHash, clock.now())

/**
 * Extend the lifetime of a request that a wallet has decided, until the browser has completed it. Returns false if it
 * is decided or expired.
 */
export async function keepRequestOpen({ clock }: Context, tx: Tx, idHash: string, until: Millis): Promise<boolean> {
  if ((await findRequest(tx, idHash, clock.now())) === null) return false
  await extendRequest(tx, idHash, until)
  return true
}

/**
 * Decide a request, in the caller's transaction. Returns the redirect URL with the code or the error (RFC 6749, 4.1.2
 * and 4.1.2.1); null if the request is unknown, already decided or expired.
 */
export async function decideRequest(
  { clock, config }: Context,
  tx: Tx,
  idHash: string,
  decision: Decision,
): Promise<string | null> {
  const now = clock.now()
  const pending = await takeRequest(tx, idHash, now)
  if (!pending) return null
  if (decision.kind === 'refuse')
    return answerUrl(config.publicUrl, pending.request, { error: decision.error, error_description: decision.reason })
  const { token: code, hash } = newToken()
  const { kind: _, ...decided } = decision
  await insertAuthorizationCode(tx, hash, { ...pending, ...decided }, now + CODE_TTL_SECS * 1000)
  return answerUrl(config.publicUrl, pending.request, { code })
}

/** Every response has `iss` (RFC 9207). It has `state` if the request had one (RFC 6749, 4.1.2). */
function answerUrl(
  issuer: string,
  { redirectUri, responseMode, state }: AuthorizationRequest,
  answer: Record<string, string>,
): string {
  return withParameters(redirectUri, responseMode, { ...answer, ...(state === null ? {} : { state }), iss: issuer })
}
