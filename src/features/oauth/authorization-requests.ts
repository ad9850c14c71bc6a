/**
 * Authorization requests: pushed by a client, opened in a browser, decided once.
 *
 * Whoever decides (the form of the page, an account that is signed in there, a wallet) goes through `decideRequest`.
 */
import type { Origin } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { newToken } from '../../platform/secrets/new-token.ts'
import type { AuthorizationRequest } from '../../protocol/authorization-request.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../protocol/opaque-token.ts'
import { withParameters } from '../../protocol/redirect-uris.ts'
import { insertAuthorizationCode } from './authorization-code-store.ts'
import { extendRequest, findRequest, insertRequest, takeRequest, type PendingRequest } from './authorization-request-store.ts'

const REQUEST_TTL_SECS = 300
const CODE_TTL_SECS = 60
const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'

export type Decision =
  | { kind: 'approve'; did: Did; scopes: readonly string[]; scopeIsFixed: boolean; origin: Origin }
  | { kind: 'refuse'; error: 'access_denied' | 'login_required' | 'invalid_scope'; reason: string }

export async function pushRequest({ db, clock }: Context, pending: PendingRequest): Promise<{ request_uri: string; expires_in: number }> {
  const { token, hash } = newToken()
  await insertRequest(db, hash, pending, clock.now() + REQUEST_TTL_SECS * 1000)
  return { request_uri: REQUEST_URI_PREFIX + token, expires_in: REQUEST_TTL_SECS }
}

/** What is stored of a request's URI; null for what is none. */
export const requestHash = (requestUri: string): string | null =>
  requestUri.startsWith(REQUEST_URI_PREFIX) ? opaqueTokenHash(requestUri.slice(REQUEST_URI_PREFIX.length)) : null

/** The request, if nobody has decided it and its time is not over. Looking at it gives it its full time again. */
export async function openRequest({ db, clock }: Context, idHash: string): Promise<PendingRequest | null> {
  const now = clock.now()
  const pending = await findRequest(db, idHash, now)
  if (pending) await extendRequest(db, idHash, now + REQUEST_TTL_SECS * 1000)
  return pending
}

/**
 * End a request, in the caller's transaction. Returns where the browser goes next, or null when it was decided
 * already or its time is over.
 */
export async function decideRequest({ clock, config }: Context, tx: Tx, idHash: string, decision: Decision): Promise<string | null> {
  const now = clock.now()
  const pending = await takeRequest(tx, idHash, now)
  if (!pending) return null
  if (decision.kind === 'refuse')
    return answerUrl(config.publicUrl, pending.request, { error: decision.error, error_description: decision.reason })
  const { token: code, hash } = newToken()
  const { did, scopes, scopeIsFixed, origin } = decision
  await insertAuthorizationCode(tx, hash, { ...pending, did, scopes, scopeIsFixed, origin }, now + CODE_TTL_SECS * 1000)
  return answerUrl(config.publicUrl, pending.request, { code })
}

/** `iss` is part of every answer (RFC 9207), `state` of those whose request had one. */
function answerUrl(issuer: string, { redirectUri, responseMode, state }: AuthorizationRequest, answer: Record<string, string>): string {
  return withParameters(redirectUri, responseMode, { ...answer, ...(state === null ? {} : { state }), iss: issuer })
}
