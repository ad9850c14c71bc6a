/** Exchanges an authorization code or a refresh token for tokens, and starts, continues or ends the session. */
import { randomBytes } from 'node:crypto'
import { DAY_SECS, HOUR_SECS } from '../../../base/durations.ts'
import { OAuthError } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { accountLock, lockOn, type Tx } from '../../../platform/database/database.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { codeChallengeOf, isCodeVerifier } from '../../../protocol/pkce.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { recordDelegateAct, standingDelegation } from '../delegations/delegations.ts'
import { type AuthenticatedClient, isKeyPublished } from './client-authentication.ts'
import { findAuthorizationCode, takeAuthorizationCode, type Grant } from './authorization-code-store.ts'
import { required, type OAuthParameters } from '../../../http/oauth-parameters.ts'
import { effectiveScope } from './permission-sets.ts'
import {
  firstRefreshToken,
  inOwnSpelling,
  refreshSecret,
  SESSION_ID_BYTES,
  sessionIdOf,
  successorOf,
} from './oauth-refresh-tokens.ts'
import {
  deleteOAuthSession,
  findOAuthSession,
  insertOAuthSession,
  makeRoomForOAuthSession,
  rotateOAuthSession,
  oauthSessionOfCode,
  type OAuthSession,
  type RefreshState,
} from './oauth-session-store.ts'
import { issueOAuthAccessToken, useOnce } from '../tokens/tokens.ts'

/** A public client cannot keep a secret, so its sessions are short. */
const lifetimes = {
  public: { maxSecs: 14 * DAY_SECS, idleSecs: 14 * DAY_SECS },
  confidential: { maxSecs: 2 * 365.25 * DAY_SECS, idleSecs: 3 * 30.4375 * DAY_SECS },
}
/** How long the exchange of a refresh token may be repeated, for the same successor. */
const RETRY_SECS = 60
/** How long a code challenge is remembered: a day plus a tenth. */
const CHALLENGE_MEMORY_SECS = 26.4 * HOUR_SECS

/** Body of the token response. RFC 6749, 5.1; `sub` as atproto "OAuth" requires. */
export interface TokenAnswer {
  access_token: string
  token_type: 'DPoP'
  expires_in: number
  refresh_token?: string
  scope: string
  sub: Did
}

/** The authenticated client, and the thumbprint of the key that signed the request's DPoP proof. */
export interface Requester extends AuthenticatedClient {
  jkt: string
}

const invalidGrant = (reason: string) => new OAuthError(400, 'invalid_grant', reason)

// Authorization codes

/**
 * Exchange an authorization code for a new session and its tokens. An attempt that fails with `invalid_grant` uses up
 * the code; the other errors do not.
 *
 * Throws `invalid_request` if `code` is missing, `temporarily_unavailable` (503) if a permission set cannot be
 * resolved, `invalid_scope` if a set has grown too large, and `invalid_grant` if the code, its binding or the account
 * is refused. The reason of an `invalid_grant` is logged.
 *
 * Source: RFC 6749, 4.1.3; RFC 7636, 4.6; RFC 9449, 10.
 */
export async function redeemAuthorizationCode(
  ctx: Context,
  requester: Requester,
  parameters: OAuthParameters,
): Promise<TokenAnswer> {
  const { db, clock } = ctx
  const hash = opaqueTokenHash(required(parameters, 'code'))
  const grant = hash && (await findAuthorizationCode(db, hash, clock.now()))
  const scope = grant
    ? await effectiveScope(ctx, {
        did: grant.did,
        clientId: grant.request.clientId,
        scope: grant.scopes.join(' '),
        isFixed: grant.scopeIsFixed,
      })
    : ''
  const locks = [lockOn('authorization code', hash ?? ''), ...(grant ? [accountLock(grant.did)] : [])]
  const outcome = await db.transactionOn(locks, (tx) => exchangeCode(ctx, tx, hash, requester, parameters))
  return answered(ctx, requester, scope, outcome)
}

type GrantOutcome = { ok: true; session: OAuthSession; refreshToken: string | null } | { ok: false; reason: string }

/**
 * Take the code before any check, so that every attempt uses it up. Faults are returned, not thrown, because an
 * exception would roll the use back. A second use of a code ends the session that the first one started (RFC 6749,
 * 4.1.2).
 */
async function exchangeCode(
  ctx: Context,
  tx: Tx,
  hash: string | null,
  requester: Requester,
  parameters: OAuthParameters,
): Promise<GrantOutcome> {
  const now = ctx.clock.now()
  const grant = hash && (await takeAuthorizationCode(tx, hash, now))
  if (!hash || !grant) {
    const begun = hash && (await oauthSessionOfCode(tx, hash))
    if (begun) await deleteOAuthSession(tx, begun.id)
    return { ok: false, reason: 'the code is unknown, expired or used' }
  }
  const reason = codeFault(grant, requester, parameters)
  if (reason !== null) return { ok: false, reason }
  if (!(await useOnce(tx, 'challenge', grant.request.codeChallenge, now + CHALLENGE_MEMORY_SECS * 1000)))
    return { ok: false, reason: 'the code challenge has already been used' }
  if ((await accountStatus(tx, grant.did)) !== 'active') return { ok: false, reason: 'the account is not active' }
  const id = randomBytes(SESSION_ID_BYTES).toString('hex')
  const refreshToken = requester.client.mayRefresh ? firstRefreshToken(id) : null
  const own = sessionOf(id, grant, requester, refreshToken?.hash ?? null, now)
  const session = grant.delegationId === undefined ? own : await delegated(ctx, tx, own, grant.delegationId)
  if (session === null) return { ok: false, reason: 'the delegation has ended' }
  await makeRoomForOAuthSession(tx, session)
  await insertOAuthSession(tx, session, hash)
  return { ok: true, session, refreshToken: refreshToken?.text ?? null }
}

/**
 * Turns the session into a delegate's, which ends no later than the delegation, and records that. Returns null if the
 * delegate may no longer act.
 */
async function delegated(
  ctx: Context,
  tx: Tx,
  session: OAuthSession,
  delegationId: string,
): Promise<OAuthSession | null> {
  const delegation = await standingDelegation(tx, delegationId, ctx.clock.now())
  if (delegation?.did !== session.did) return null
  const { id, delegateDid, scope } = delegation
  await recordDelegateAct(ctx, tx, id, { type: 'app_signed_in', detail: { client: session.clientId } })
  const expiresAt = Math.min(session.expiresAt, delegation.expiresAt ?? Infinity)
  const idleExpiresAt = Math.min(session.idleExpiresAt, expiresAt)
  return { ...session, expiresAt, idleExpiresAt, delegation: { id, delegateDid, scope } }
}

/** Returns why the code does not belong to this client, key or verifier; null if it does. */
function codeFault(
  { request, clientKey }: Grant,
  { client, key, jkt }: Requester,
  { redirect_uri, code_verifier = '' }: OAuthParameters,
): string | null {
  if (request.clientId !== client.clientId) return 'the code was issued to another client'
  if (clientKey !== null && clientKey.jkt !== key?.jkt) return 'the code was requested with another key of the client'
  if (request.dpopJkt !== null && request.dpopJkt !== jkt) return 'the code is bound to another DPoP key'
  if (request.redirectUri !== redirect_uri) return 'redirect_uri differs from that of the authorization request'
  if (!isCodeVerifier(code_verifier) || codeChallengeOf(code_verifier) !== request.codeChallenge)
    return 'code_verifier does not match the challenge'
  return null
}

function sessionOf(
  id: string,
  grant: Grant,
  { client, key, jkt }: Requester,
  refreshHash: string | null,
  now: Millis,
): OAuthSession {
  const { maxSecs, idleSecs } = lifetimeOf(key)
  return {
    id,
    did: grant.did,
    clientId: client.clientId,
    clientName: client.name,
    scope: grant.scopes.join(' '),
    scopeIsFixed: grant.scopeIsFixed,
    jkt,
    clientKey: key,
    openedWith: grant.origin?.openedWith ?? null,
    openedFrom: grant.origin?.openedFrom ?? null,
    createdAt: now,
    refreshedAt: now,
    expiresAt: now + maxSecs * 1000,
    idleExpiresAt: now + Math.min(idleSecs, maxSecs) * 1000,
    refresh: refreshHash === null ? null : { tokenHash: refreshHash, previousHash: null, rotatedAt: null },
    delegation: null,
  }
}

export const lifetimeOf = (key: object | null) => lifetimes[key === null ? 'public' : 'confidential']

// Refresh tokens

/**
 * Exchange a refresh token for the next one and a new access token. A repeated exchange of the previous refresh token
 * within `RETRY_SECS` returns the same successor; any other reuse ends the session.
 *
 * Throws `invalid_request` if `refresh_token` is missing, `invalid_grant` if the token, its binding, the session or the
 * account is refused, `temporarily_unavailable` (503) if a permission set cannot be resolved, and `invalid_scope` if a
 * set has grown too large.
 *
 * Source: RFC 6749, section 6; RFC 9700, 4.14.2 for rotation.
 */
export async function refreshTokens(
  ctx: Context,
  requester: Requester,
  parameters: OAuthParameters,
): Promise<TokenAnswer> {
  const { db } = ctx
  const text = inOwnSpelling(required(parameters, 'refresh_token'))
  const id = sessionIdOf(text)
  const known = id === null ? null : await findOAuthSession(db, id)
  if (!known) throw invalidGrant('the refresh token is not valid')
  const bound = known.clientKey
  const isKeyGone =
    bound !== null && bound.jkt !== requester.key?.jkt && !(await isKeyPublished(ctx, requester.client, bound))
  const scope = await effectiveScope(ctx, {
    did: known.did,
    clientId: known.clientId,
    scope: known.scope,
    isFixed: known.scopeIsFixed,
  })
  const secret = await refreshSecret(ctx)
  const outcome = await db.transactionOn(accountLock(known.did), (tx) =>
    exchangeRefreshToken(ctx, tx, { id: known.id, text, requester, isKeyGone, secret }),
  )
  return answered(ctx, requester, scope, outcome)
}

interface RefreshAttempt {
  id: string
  text: string
  requester: Requester
  /** Whether the client has withdrawn the key to which the session is bound. */
  isKeyGone: boolean
  secret: Uint8Array
}

/**
 * The client and the DPoP key are checked first, so that someone who has only stolen a token cannot end the session. A
 * refresh token that is used again too late ends the session, because two parties may hold the token. Faults are
 * returned, not thrown, because an exception would roll back the end of the session.
 */
async function exchangeRefreshToken(
  { clock }: Context,
  tx: Tx,
  { id, text, requester, isKeyGone, secret }: RefreshAttempt,
): Promise<GrantOutcome> {
  const now = clock.now()
  const session = await findOAuthSession(tx, id)
  if (!session?.refresh) return { ok: false, reason: 'the refresh token is not valid' }
  const { client, key, jkt } = requester
  if (session.clientId !== client.clientId || session.jkt !== jkt)
    return { ok: false, reason: 'the refresh token belongs to another client or key' }
  const ended = async (reason: string): Promise<GrantOutcome> => {
    await deleteOAuthSession(tx, id)
    return { ok: false, reason }
  }
  if (isKeyGone) return ended('the client has withdrawn the key of the session')
  if (session.clientKey !== null && session.clientKey.jkt !== key?.jkt)
    return { ok: false, reason: 'the session is bound to another key of the client' }
  if (now >= session.expiresAt || now >= session.idleExpiresAt) return ended('the session has expired')
  const status = await accountStatus(tx, session.did)
  if (status === null) return ended('the account is gone')
  if (status !== 'active') return { ok: false, reason: 'the account is not active' }
  if (session.delegation !== null && (await standingDelegation(tx, session.delegation.id, now)) === null)
    return { ok: false, reason: 'the delegation has ended, or the delegate is not active' }

  const use = useOf(session.refresh, opaqueTokenHash(text)!, now)
  if (use === 'reuse') return ended('the refresh token has already been used')
  const successor = successorOf(text, secret)
  if (use === 'first') {
    const idleExpiresAt = Math.min(session.expiresAt, now + lifetimeOf(session.clientKey ?? key).idleSecs * 1000)
    await rotateOAuthSession(tx, id, {
      tokenHash: successor.hash,
      previousHash: session.refresh.tokenHash,
      now,
      idleExpiresAt,
      clientKey: session.clientKey ?? key,
    })
  }
  return { ok: true, session, refreshToken: successor.text }
}

/**
 * Classify the use of a refresh token. A client may retry within `RETRY_SECS` if it lost the response or sent several
 * requests at once. Only the first use rotates the token.
 */
function useOf(
  { tokenHash, previousHash, rotatedAt }: RefreshState,
  hash: string,
  now: Millis,
): 'first' | 'retry' | 'reuse' {
  if (hash === tokenHash) return 'first'
  const inTime = rotatedAt !== null && now - rotatedAt <= RETRY_SECS * 1000
  return hash === previousHash && inTime ? 'retry' : 'reuse'
}

/** Limits the log lines that one client can cause. */
const refusalLines = perContext(({ clock }) => new LogRateLimiter(clock))

/**
 * Returns the token response for an accepted grant. Throws `invalid_grant` for a refused one. RFC 6749, 5.1 and 5.2.
 */
async function answered(
  ctx: Context,
  { client }: Requester,
  scope: string,
  outcome: GrantOutcome,
): Promise<TokenAnswer> {
  if (!outcome.ok) {
    const { clientId } = client
    refusalLines(ctx).within(clientId, (omitted) =>
      ctx.log.info('oauth grant refused', { clientId, reason: outcome.reason, omitted }),
    )
    throw invalidGrant(outcome.reason)
  }
  const { session, refreshToken } = outcome
  const nowSecs = Math.floor(ctx.clock.now() / 1000)
  const expiresAtSecs = Math.min(nowSecs + ctx.config.oauth.accessTokenTtlSecs, Math.floor(session.expiresAt / 1000))
  const { did, clientId, id, jkt } = session
  return {
    access_token: await issueOAuthAccessToken(ctx, {
      sub: did,
      scope,
      client_id: clientId,
      sid: id,
      cnf: { jkt },
      expiresAtSecs,
    }),
    token_type: 'DPoP',
    expires_in: expiresAtSecs - nowSecs,
    ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
    scope,
    sub: did,
  }
}
