/**
 * Guards: who may call an endpoint. Each is named in the declaration of the endpoint, runs before the body is read,
 * and answers the caller that the handler works with.
 */
import type { Exchange, Guard } from '../../http/endpoint.ts'
import { authenticationRequired, authMissing, expiredToken, forbidden, invalidToken } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { decodeJws } from '../../protocol/jws.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { accountStatus, deletePlacesOf, refuseTakendown } from '../accounts/accounts.ts'
import { boundTokenAsBearer, claimsToBeAccessToken, endOAuthSessions, verifyDpopToken } from '../oauth/oauth.ts'
import { actorOf, operatorOf } from '../operators/operators.ts'
import { deleteSignInsOf } from '../web/web.ts'
import { authorizationOf } from './authorization-header.ts'
import { assertPermission } from './permissions.ts'
import { carriesServiceToken, LABELER, verifyServiceToken, type ServiceCaller } from './service-auth.ts'
import { deleteSessionsOf } from './session-store.ts'
import type { RefreshCaller } from './sessions.ts'
import { readAccessToken, readRefreshToken, type SessionKind } from './session-tokens.ts'
import type { Viewer } from './visibility.ts'

export { createAppPassword, revokeAppPassword } from './app-passwords.ts'
export { deleteAppPasswordsOf, listAppPasswords, type AppPassword } from './app-password-store.ts'
export { optionalServiceAuth } from './service-auth.ts'
export { openSession, sessionTokens, type Tokens } from './sessions.ts'
export { deleteSession, findSession, listSessions, type ListedSession } from './session-store.ts'
export { requireVisible, requireVisibleRepo, type Viewer } from './visibility.ts'

/**
 * Sign an account out everywhere: its sessions, the apps that it lets in, the browsers in which it is signed in. Counts
 * what ended. No place is known any more either, for it is not sure whose they are.
 */
export async function signOutEverywhere(tx: Tx, did: Did): Promise<{ sessions: number; oauthSessions: number; oauthCodes: number }> {
  const { sessions: oauthSessions, codes: oauthCodes } = await endOAuthSessions(tx, did)
  await deletePlacesOf(tx, did)
  return { sessions: await deleteSessionsOf(tx, did), oauthSessions, oauthCodes }
}

/** Sign out whoever came in with a password. Apps that the account lets in stay. */
export async function signOutPasswords(tx: Tx, did: Did): Promise<void> {
  await deleteSessionsOf(tx, did)
  await deleteSignInsOf(tx, did)
}

/** An account holder, or who acts for one. */
export type AccessCaller = SessionCaller | GrantCaller

/** A session of ours: opened with a password, an app password, or a proof of the wallet. */
export interface SessionCaller {
  did: Did
  credential: SessionKind
  permissions: null
  /** Whether the caller may read and set the birth date. */
  personalDetails: boolean
}

/** An app or an agent, limited to what was granted to it. */
export interface GrantCaller {
  did: Did
  credential: 'oauth' | 'agent'
  permissions: Permissions
  personalDetails: false
  /** Of the grant, for the audit. */
  tokenId: string
}

type GrantRule = 'any' | 'refuse' | { refuse: string } | ((permissions: Permissions, exchange: Exchange) => void)

export interface AccessOptions {
  /** Sessions that may call. */
  sessions?: readonly SessionKind[]
  /** What an app or agent needs: any grant, none will do (and what to tell it), or a check like `assertRepo`. */
  grants?: GrantRule
  /** Taken-down and missing accounts are refused here, and not by the handler. */
  standing?: boolean
}

const standardSessions: readonly SessionKind[] = ['full', 'privileged', 'app']
/** With the limited session of a taken-down account, whose holder fetches what is theirs. */
export const everySession: readonly SessionKind[] = [...standardSessions, 'takendown']

/** For account holders. Without options: any session but that of a taken-down account, and no apps. */
export function access({ sessions = standardSessions, grants = 'refuse', standing = false }: AccessOptions = {}): Guard<AccessCaller> {
  return {
    personal: true,
    async check(exchange) {
      const caller = await accessCaller(exchange)
      if (caller.permissions === null && !sessions.includes(caller.credential)) throw invalidToken('Bad token scope')
      // Apps lose their sessions with the account, so a session that is alive says the same.
      if (standing || caller.credential === 'agent') refuseTakendown(await accountStatus(exchange.ctx.db, caller.did))
      if (caller.permissions !== null) applyRule(grants, caller.permissions, exchange)
      return caller
    },
  }
}

/** For what only the account itself may do: no app password, no app, no agent. */
export const fullAccess = (options: Pick<AccessOptions, 'standing'> = {}): Guard<AccessCaller> => access({ ...options, sessions: ['full'] })

/** For checks that need the body: refuses apps and agents whose grant does not reach that far. */
export function requirePermission({ permissions }: Pick<AccessCaller, 'permissions'>, check: (permissions: Permissions) => void): void {
  if (permissions !== null) assertPermission(permissions, check)
}

async function accessCaller(exchange: Exchange): Promise<AccessCaller> {
  const authorization = authorizationOf(exchange.request)
  switch (authorization?.scheme) {
    case undefined:
      throw authMissing(exchange.ctx.config.publicUrl)
    case 'basic':
      throw invalidToken('Unexpected authorization type')
    case 'bearer':
      return sessionCaller(exchange.ctx, authorization.value)
    case 'dpop':
      return appCaller(exchange, authorization.value)
  }
}

async function sessionCaller(ctx: Context, token: string): Promise<SessionCaller> {
  const read = await readAccessToken(ctx, token)
  if (!read.ok && claimsToBeAccessToken(token)) throw boundTokenAsBearer()
  const { did, kind, personalDetails } = accepted(read)
  return { did, credential: kind, permissions: null, personalDetails: personalDetails || kind === 'full' }
}

async function appCaller(exchange: Exchange, token: string): Promise<GrantCaller> {
  const { did, permissions, tokenId } = await verifyDpopToken(exchange, token)
  return { did, credential: 'oauth', permissions, personalDetails: false, tokenId }
}

function accepted<Read extends { ok: true }>(read: Read | { ok: false; fault: 'unverifiable' | 'expired' }): Read {
  if (read.ok) return read
  throw read.fault === 'expired' ? expiredToken('Token has expired') : invalidToken('Token could not be verified')
}

function applyRule(rule: GrantRule, permissions: Permissions, exchange: Exchange): void {
  if (rule === 'any') return
  if (rule === 'refuse') throw forbidden('OAuth credentials are not supported for this endpoint')
  if (typeof rule === 'object') throw forbidden(rule.refuse)
  assertPermission(permissions, (granted) => rule(granted, exchange))
}

/** For the holder of a refresh token. `expired`: also of one whose time is over. */
export function refresh({ expired = false } = {}): Guard<RefreshCaller> {
  return {
    personal: true,
    async check({ ctx, request }) {
      const authorization = authorizationOf(request)
      if (authorization === null) throw authMissing(ctx.config.publicUrl)
      if (authorization.scheme !== 'bearer') throw invalidToken('Unexpected authorization type')
      const read = accepted(await readRefreshToken(ctx, authorization.value))
      if (read.expired && !expired) throw expiredToken('Token has expired')
      return { did: read.did, tokenId: read.tokenId }
    },
  }
}

export interface AdminCaller {
  /** Who is named in the audit. */
  actor: string
}

/** For the operator: the admin token, or a paired device that signs. */
export const admin: Guard<AdminCaller> = {
  personal: true,
  async check(exchange) {
    const who = await operatorOf(exchange)
    if (who === null) throw authenticationRequired()
    return { actor: actorOf(who) }
  },
}

/** For the operator, and for the moderation service that the configuration names. */
export const moderator: Guard<AdminCaller> = {
  personal: true,
  async check(exchange) {
    const { ctx, nsid } = exchange
    const authorization = authorizationOf(exchange.request)
    // The admin token is no JWT.
    if (nsid === null || authorization?.scheme !== 'bearer' || decodeJws(authorization.value) === null) return admin.check(exchange)
    const { iss } = await verifyServiceToken(ctx, authorization.value, { lxm: nsid, accepts: (caller) => isModerationService(ctx, caller) })
    return { actor: iss }
  },
}

/** For account holders, and for the moderation service that looks at any account. */
export function accessOrModerator(options: AccessOptions): Guard<AccessCaller | AdminCaller> {
  const holder = access(options)
  return { personal: true, check: (exchange) => (carriesServiceToken(exchange) ? moderator.check(exchange) : holder.check(exchange)) }
}

const isModerationService = ({ config }: Context, { iss, service }: ServiceCaller) =>
  iss === config.moderation.did && (service === null || service === LABELER)

/** For account holders, and for services that hold a token of an account here for this method. Answers whose account. */
export function accessOrServiceAuth(options: AccessOptions): Guard<AccessCaller | ServiceAccountCaller> {
  const holder = access(options)
  return {
    personal: true,
    async check(exchange) {
      const authorization = authorizationOf(exchange.request)
      if (authorization === null || !carriesServiceToken(exchange)) return holder.check(exchange)
      // Before the key is fetched: a stranger's name is not looked up.
      const accepts = async ({ iss }: ServiceCaller) => {
        refuseTakendown(await accountStatus(exchange.ctx.db, iss))
        return true
      }
      const { iss } = await verifyServiceToken(exchange.ctx, authorization.value, { lxm: exchange.nsid, accepts })
      return { did: iss, credential: 'service', permissions: null, personalDetails: false }
    },
  }
}

/** A service to which the account gave a token for one method. */
export interface ServiceAccountCaller {
  did: Did
  credential: 'service'
  permissions: null
  personalDetails: false
}

/** For reads that are open to all, and show more to the owner and to the operator. */
export function optionalAccess(options: AccessOptions = { grants: 'any' }): Guard<Viewer> {
  const owner = access(options)
  return {
    personal: true,
    async check(exchange) {
      switch (authorizationOf(exchange.request)?.scheme) {
        case undefined:
          return { did: null, admin: false }
        case 'basic':
          if ((await operatorOf(exchange)) === null) throw authenticationRequired()
          return { did: null, admin: true }
        default:
          return { did: (await owner.check(exchange)).did, admin: false }
      }
    },
  }
}
