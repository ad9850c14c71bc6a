/**
 * Guards decide who may call an endpoint. An endpoint declares its guard, which runs before the body is read and
 * returns the caller to the handler. A guard lists the credentials that it accepts, in order. Without one it throws
 * `AuthMissing`; with another or a malformed one, `InvalidToken`; with an expired one, `ExpiredToken`.
 */
import type { Guard } from '../../http/endpoint.ts'
import { authenticationRequired, authMissing, Refusal } from '../../http/errors.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { isAccountMethod } from '../../protocol/guarded-methods.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { deletePlacesOf } from '../accounts/accounts.ts'
import { deleteShownClaimsOf } from '../agents/agents.ts'
import { endOAuthSessions } from '../oauth/oauth.ts'
import { deleteSignInsOf } from '../web/web.ts'
import type { AgentCaller } from './agent-credential.ts'
import type { GrantCaller } from './app-credential.ts'
import { authorizationOf } from './authorization-header.ts'
import { presentedAs, refuseOthers, taking, type Credential, type Demand } from './credential.ts'
import { credentials } from './credentials.ts'
import type { AdminCaller } from './operator-credential.ts'
import { assertPermission } from './permissions.ts'
import type { ServiceCaller } from './service-auth.ts'
import { besideSessions, type ServiceAccountCaller } from './service-credentials.ts'
import { reachesMethod, type SessionCaller } from './session-credential.ts'
import { deleteSessionsByPassword, deleteSessionsOf } from './session-store.ts'
import type { RefreshCaller } from './sessions.ts'
import type { Viewer } from './visibility.ts'
import { deleteWalletSessionsByPassword, deleteWalletSessionsOf } from './wallet-session-store.ts'
import type { WalletCaller } from './wallet-credential.ts'
import type { DeviceCaller } from './device-credential.ts'
import type { PendingCaller } from './pending-credential.ts'

export type { AgentCaller } from './agent-credential.ts'
export { isAgent, recordAgentUse, refuseEndedAgent } from './agent-use.ts'
export { standingOf } from './caller-standing.ts'
export { createAppPassword, revokeAppPassword } from './app-passwords.ts'
export { inOtherWords, type Demand } from './credential.ts'
export { deleteAppPasswordsOf, listAppPasswords, type AppPassword } from './app-password-store.ts'
export { accountItself, owner, parent, type OwnerCaller } from './owner-guard.ts'
export { openSession, sessionTokens, type Tokens } from './sessions.ts'
export { deleteSession, findSession, listSessions, type ListedSession } from './session-store.ts'
export { openWalletSession, type WalletCaller } from './wallet-credential.ts'
export { deleteWalletSession, listWalletSessions, type ListedWalletSession } from './wallet-session-store.ts'
export { transferParty, type TransferParty } from './transfer-party.ts'
export { requireVisible, requireVisibleRepo, type Viewer } from './visibility.ts'

/**
 * Sign an account out everywhere: sessions, OAuth apps and browsers. Returns how many sessions ended. Also forgets the
 * places from which it was used, because an intruder may have used some of them.
 */
export async function signOutEverywhere(tx: Tx, did: Did): Promise<{ sessions: number; oauthSessions: number; oauthCodes: number }> {
  const { sessions, ...ended } = await signOutTakendown(tx, did)
  return { sessions: sessions + (await deleteSessionsOf(tx, did)), ...ended }
}

/**
 * The same, when an account is taken down: as in the reference, a session from before goes on until its access token
 * expires, as far as the status of the account allows. It cannot be extended.
 */
export async function signOutTakendown(tx: Tx, did: Did): Promise<{ sessions: number; oauthSessions: number; oauthCodes: number }> {
  const { sessions: oauthSessions, codes: oauthCodes } = await endOAuthSessions(tx, did)
  await deletePlacesOf(tx, did)
  await deleteShownClaimsOf(tx, did)
  return { sessions: await deleteWalletSessionsOf(tx, did), oauthSessions, oauthCodes }
}

/** End every session with which somebody signed in as the account itself or with an app password. Returns how many. */
export const endSessions = async (tx: Tx, did: Did): Promise<number> =>
  (await deleteSessionsOf(tx, did)) + (await deleteWalletSessionsOf(tx, did))

/** End every session and browser sign-in that a password opened. OAuth apps and wallets keep their access. */
export async function signOutPasswords(tx: Tx, did: Did): Promise<void> {
  await deleteSessionsByPassword(tx, did)
  await deleteWalletSessionsByPassword(tx, did)
  await deleteSignInsOf(tx, did)
  await deleteShownClaimsOf(tx, did)
}

/** An account holder, or an app or agent that acts for one. */
export type AccessCaller = SessionCaller | GrantCaller | AgentCaller

const holders: readonly Credential<AccessCaller>[] = [credentials.agent, credentials.session, credentials.app]

/** Guard for account holders. By default it accepts any session except that of a taken-down account, and no apps. */
export const access = (demand: Demand = {}): Guard<AccessCaller> => taking(holders, refuseOthers, demand)

/** Guard for what only the account itself may do: refuses app passwords, apps and agents. */
export const fullAccess = (demand: Pick<Demand, 'refusesTakendown'> = {}): Guard<AccessCaller> => access({ ...demand, sessions: 'owner' })

/** Check a permission that depends on the body. Throws `ScopeMissingError` if the grant of an app or agent lacks it. */
export function requirePermission({ permissions }: Pick<AccessCaller, 'permissions'>, check: (permissions: Permissions) => void): void {
  if (permissions !== null) assertPermission(permissions, check)
}

/** Whether the caller may have this method of another service called on its behalf. The grants of apps and agents are checked elsewhere. */
export function mayHaveCalled(caller: AccessCaller, nsid: string): boolean {
  if (caller.credential === 'agent') return !isAccountMethod(nsid)
  return caller.permissions !== null || reachesMethod(caller.credential, nsid)
}

/** Guard for the holder of a refresh token. `expired` accepts an expired one too. */
export const refresh = ({ expired = false } = {}): Guard<RefreshCaller> =>
  taking([expired ? credentials.expiredRefresh : credentials.refresh], refuseOthers)

function refuseStrangers(): never {
  throw authenticationRequired()
}

/** For routes of wallets: a malformed `Authorization` header is refused like a wrong token. */
const strict = <Caller>(guard: Guard<Caller>): Guard<Caller> => ({
  ...guard,
  check(exchange) {
    try {
      authorizationOf(exchange.request)
    } catch (error) {
      if (error instanceof Refusal) throw authenticationRequired(error.message)
      throw error
    }
    return guard.check(exchange)
  },
})

/** Guard for wallets alone. Throws `AuthenticationRequired` without a live session. */
export const wallet: Guard<WalletCaller> = strict(taking([credentials.wallet], refuseStrangers, { refusesTakendown: true }))

/** Guard for a device. The handler sees to it that the device asks about itself. Throws `AuthenticationRequired`. */
export const device: Guard<DeviceCaller> = strict(taking([credentials.device], refuseStrangers))

/**
 * Guard for a wallet whose account is in the making. Throws `AuthMissing` without a token, and `AuthenticationRequired`
 * without a live session.
 */
export const pending: Guard<PendingCaller> = strict(
  taking([credentials.pending], (exchange) => {
    if (authorizationOf(exchange.request) === null) throw authMissing(exchange.ctx.config.publicUrl)
    return refuseStrangers()
  }),
)

/** Guard for the operator. Throws `AuthenticationRequired`. */
export const admin: Guard<AdminCaller> = taking([credentials.operator], refuseStrangers)

/** Guard for the operator and the configured moderation service. Throws `AuthenticationRequired`. */
export const moderator: Guard<AdminCaller> = taking([credentials.moderation, credentials.operator], refuseStrangers)

/** Guard for account holders, and for the moderation service, which may see any account. */
export const accessOrModerator = (demand: Demand): Guard<AccessCaller | AdminCaller> =>
  taking<AccessCaller | AdminCaller>([besideSessions(credentials.moderation), ...holders], refuseOthers, demand)

/** For account holders, and for services that hold a token of an account here for this method. The caller is that account. */
export const accessOrServiceAuth = (demand: Demand): Guard<AccessCaller | ServiceAccountCaller> =>
  taking<AccessCaller | ServiceAccountCaller>([besideSessions(credentials.delegated), ...holders], refuseOthers, demand)

/** Guard for everyone. The caller is the issuer of the service token, or null without an `Authorization` header. */
export const optionalServiceAuth: Guard<ServiceCaller | null> = taking<ServiceCaller | null>([credentials.service], ({ request }) => {
  if (authorizationOf(request) === null) return null
  throw authenticationRequired('Invalid authorization header')
})

/** Guard for public reads that show more to the owner and to the operator. */
export function optionalAccess(demand: Demand = { grants: 'any', agents: true }): Guard<Viewer> {
  // The operator may use Basic only: a bearer token here is that of an account.
  const operator = { ...credentials.operator, recognises: presentedAs('basic') }
  const known = taking<AccessCaller | AdminCaller | null>([operator, ...holders], () => null, demand)
  return {
    ...known,
    async check(exchange) {
      const caller = await known.check(exchange)
      if (caller === null) return { did: null, admin: false }
      return 'actor' in caller ? { did: null, admin: true } : { did: caller.did, admin: false }
    },
  }
}
