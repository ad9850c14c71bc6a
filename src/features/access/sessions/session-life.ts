/**
 * Sessions: opened with a password, an app password or a proof, and extended by exchanging the refresh token.
 *
 * The id of a session is the first half of the id of each of its refresh tokens, so that even a token exchanged long
 * ago identifies its session. Exchanging a token again within the grace period returns the same successor: the client
 * may have lost the response, or use two tabs. A later reuse means that two parties hold the session, and ends it.
 */
import { randomBytes } from 'node:crypto'
import { HOUR_SECS } from '../../../base/durations.ts'
import { expiredToken, invalidRequest } from '../../../http/errors.ts'
import type { Origin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import { unpaddedBase64 } from '../../../protocol/base64url.ts'
import { accountLock, type Tx } from '../../../platform/database/database.ts'
import { INVALID_HANDLE, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { accountOf, refuseTakendown, type Account, type accountOfCaller } from '../../identity/accounts/accounts.ts'
import { activityOf, statusOf } from '../../../protocol/account-status.ts'
import { permissionsOf, type Permissions } from '../../../protocol/scopes.ts'
import { findAppPassword, type AppPassword } from './app-password-store.ts'
import { hasExpired, noteUse } from './app-passwords.ts'
import {
  deleteSession,
  findSession,
  insertSession,
  makeRoomForSession,
  rotateSession,
  type Session,
} from './session-store.ts'
import { issueAccessToken, issueRefreshToken, REFRESH_TTL_SECS, type AccessClaims } from './session-tokens.ts'

/** How long the previous refresh token may still be exchanged for the current one. */
const REUSE_GRACE_SECS = 2 * HOUR_SECS

const SESSION_ID_BYTES = 16
const TOKEN_ID_BYTES = 32

/** The app password that opened a session; null if the session has the scope of the account itself. */
export type OpenedWith = AppPassword | null

/** The holder of a refresh token. */
export interface RefreshCaller {
  did: Did
  tokenId: string
}

export interface Tokens {
  accessJwt: string
  refreshJwt: string
}

/** A session that was just opened or extended. */
export interface OpenSession {
  account: Account
  credential: OpenedWith
  tokens: Tokens
}

/**
 * Store a new session, in the caller's transaction. Returns the id of its first refresh token. A change of the
 * account's password ends the session unless it was opened without that password.
 */
export async function openSession(
  tx: Tx,
  did: Did,
  credential: OpenedWith,
  origin: Origin,
  { byPassword = true } = {},
): Promise<string> {
  const tokenId = randomBytes(TOKEN_ID_BYTES).toString('base64')
  const expiresAt = expiry(origin.openedAt, credential)
  if (credential !== null) await noteUse(tx, did, credential, origin.openedAt)
  await makeRoomForSession(tx, did)
  await insertSession(
    tx,
    {
      id: sessionIdOf(tokenId),
      did,
      appPassword: credential?.name ?? null,
      byPassword,
      currentToken: tokenId,
      expiresAt,
    },
    origin,
  )
  return tokenId
}

/** A session as another server had it. */
export interface FormerSession {
  did: Did
  /** Id of a refresh token: 32 bytes in base64, with or without padding. */
  tokenId: string
  /** Id of the token for which that one was exchanged in the last hours; null if it was not. */
  successorId: string | null
  appPassword: string | null
  expiresAt: Millis
}

const unknownOrigin = { openedAt: null, openedWith: null, openedFrom: null }

/**
 * Whether the id of another server's refresh token can name a session here. The reference implementation writes it
 * without padding.
 */
export const isTokenId = (text: string): boolean => {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === TOKEN_ID_BYTES && [bytes.toString('base64'), unpaddedBase64(bytes)].includes(text)
}

/**
 * Keep a session of another server, in the caller's transaction: its refresh token can be exchanged here. If it was
 * exchanged there a moment ago, it gets the same successor here, whose session is another row.
 */
export async function keepSession(tx: Tx, { did, tokenId, successorId, ...rest }: FormerSession): Promise<void> {
  const id = sessionIdOf(tokenId)
  await insertSession(tx, { id, did, byPassword: true, currentToken: tokenId, ...rest }, unknownOrigin)
  if (successorId === null) return
  const { expiresAt } = rest
  await rotateSession(tx, id, { token: successorId, now: expiresAt - REUSE_GRACE_SECS * 1000, expiresAt })
}

/**
 * Returns the tokens of a stored session. `isTakendown`: the holder of a taken-down account can fetch its data until
 * the access token expires. The refresh token is refused while the account is taken down, and the session ends when the
 * takedown is lifted.
 */
export async function sessionTokens(
  ctx: Context,
  did: Did,
  credential: OpenedWith,
  tokenId: string,
  { isTakendown = false } = {},
): Promise<Tokens> {
  const endsAt = credential?.expiresAt ?? null
  const scope = scopeOfCredential(credential, isTakendown)
  const [accessJwt, refreshJwt] = await Promise.all([
    issueAccessToken(ctx, { did, sessionId: sessionIdOf(tokenId), ...scope }, endsAt),
    issueRefreshToken(ctx, { did, tokenId }, endsAt),
  ])
  return { accessJwt, refreshJwt }
}

function scopeOfCredential(
  credential: OpenedWith,
  isTakendown: boolean,
): Pick<AccessClaims, 'kind' | 'personalDetails' | 'scope'> {
  if (credential === null) return { kind: isTakendown ? 'takendown' : 'full', personalDetails: false }
  const { privileged, personalDetails, scope } = credential
  if (scope !== null) return { kind: 'scoped', personalDetails: false, scope }
  return { kind: privileged ? 'privileged' : 'app', personalDetails }
}

/**
 * Exchange a refresh token for new tokens. Throws `InvalidRequest` if the account is gone, `AccountTakedown`, or
 * `ExpiredToken` if the session has ended.
 */
export async function refreshSession(ctx: Context, caller: RefreshCaller): Promise<OpenSession> {
  const exchanged = await ctx.db.transactionOn(accountLock(caller.did), (tx) => exchangeToken(ctx, tx, caller))
  if (exchanged === null) throw expiredToken('Token has been revoked')
  const { account, credential, tokenId } = exchanged
  return { account, credential, tokens: await sessionTokens(ctx, caller.did, credential, tokenId) }
}

export const userInfoNotFound = (did: Did) => invalidRequest(`Could not find user info for account: ${did}`)

/** Returns null if the session has ended, even if it has ended just now because its token was used again too late. */
async function exchangeToken(
  { clock }: Context,
  tx: Tx,
  { did, tokenId }: RefreshCaller,
): Promise<{ account: Account; credential: OpenedWith; tokenId: string } | null> {
  const account = await accountOf(tx, did)
  if (!account) throw userInfoNotFound(did)
  refuseTakendown(statusOf(account))
  const session = await findSession(tx, sessionIdOf(tokenId), did)
  if (!session) return null
  const now = clock.now()
  const successor = successorOf(session, tokenId, now)
  const credential = session.appPassword === null ? null : await findAppPassword(tx, did, { name: session.appPassword })
  const isOver = credential === null ? session.appPassword !== null : hasExpired(credential, now)
  if (successor === null || isOver) {
    await deleteSession(tx, session.id)
    return null
  }
  if (successor !== session.currentToken)
    await rotateSession(tx, session.id, { token: successor, now, expiresAt: expiry(now, credential) })
  if (credential !== null) await noteUse(tx, did, credential, now)
  return { account, credential, tokenId: successor }
}

/**
 * Returns the successor of a token: a new token id, or for a retry the one already issued. Returns null if the token
 * was used again too late.
 */
function successorOf(session: Session, tokenId: string, now: Millis): string | null {
  if (tokenId === session.currentToken) {
    const id = Buffer.from(session.id, 'hex')
    return Buffer.concat([id, randomBytes(TOKEN_ID_BYTES - SESSION_ID_BYTES)]).toString('base64')
  }
  const isRetry =
    tokenId === session.previousToken && session.rotatedAt !== null && now < session.rotatedAt + REUSE_GRACE_SECS * 1000
  return isRetry ? session.currentToken : null
}

/** End the session of the refresh token. Does nothing if it has already ended. */
export async function endSession(ctx: Context, { did, tokenId }: RefreshCaller): Promise<void> {
  await ctx.db.transactionOn(accountLock(did), async (tx) => {
    const session = await findSession(tx, sessionIdOf(tokenId), did)
    if (session) await deleteSession(tx, session.id)
  })
}

const sessionIdOf = (tokenId: string) => Buffer.from(tokenId, 'base64').subarray(0, SESSION_ID_BYTES).toString('hex')
/** A session never outlives its app password. */
const expiry = (now: Millis, credential: OpenedWith): Millis =>
  Math.min(now + REFRESH_TTL_SECS * 1000, credential?.expiresAt ?? Infinity)

/**
 * What the scopes of the app password permit; null if the session was opened without one, or with one without scopes.
 */
export const permissionsOfCredential = (credential: OpenedWith): Permissions | null =>
  credential === null || credential.scope === null ? null : permissionsOf(credential.scope)

/** What `accountOfCaller` reads of an account. */
type SessionAccount = Omit<NonNullable<Awaited<ReturnType<typeof accountOfCaller>>>, 'valid'>

/**
 * Returns the account's part of a session response. Leaves out the email address unless the permissions of the caller
 * include it. `permissions`: null for all.
 */
export function sessionAccount(account: SessionAccount, permissions: Permissions | null) {
  const seesEmail = permissions?.allowsAccount({ attr: 'email', action: 'read' }) ?? true
  const { did, handle, emailConfirmedAt, emailAuthFactor } = account
  const email = seesEmail && account.email !== null ? account.email : undefined
  const { active, status } = activityOf(account)
  return {
    did,
    handle: handle ?? INVALID_HANDLE,
    email,
    emailConfirmed: email === undefined ? undefined : emailConfirmedAt !== null,
    // Left out while it is off, as in responses of the reference implementation.
    emailAuthFactor: email !== undefined && emailAuthFactor ? true : undefined,
    active,
    status,
  }
}
