/**
 * Guards: who may call an endpoint. Each is named in the declaration of the endpoint, runs before the body is read,
 * and answers the caller that the handler works with. Each names the credentials that it takes, in order.
 */
import type { Guard } from '../../http/endpoint.ts'
import { authenticationRequired } from '../../http/errors.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { Permissions } from '../../protocol/scopes.ts'
import { deletePlacesOf } from '../accounts/accounts.ts'
import { endOAuthSessions } from '../oauth/oauth.ts'
import { deleteSignInsOf } from '../web/web.ts'
import type { GrantCaller } from './app-credential.ts'
import { authorizationOf } from './authorization-header.ts'
import { presentedAs, refuseOthers, taking, type Credential, type Demand } from './credential.ts'
import { credentials } from './credentials.ts'
import type { AdminCaller } from './operator-credential.ts'
import { assertPermission } from './permissions.ts'
import type { ServiceCaller } from './service-auth.ts'
import { besideSessions, type ServiceAccountCaller } from './service-credentials.ts'
import { reachesMethod, type SessionCaller } from './session-credential.ts'
import { deleteSessionsOf } from './session-store.ts'
import type { RefreshCaller } from './sessions.ts'
import type { Viewer } from './visibility.ts'

export { createAppPassword, revokeAppPassword } from './app-passwords.ts'
export type { Demand } from './credential.ts'
export { deleteAppPasswordsOf, listAppPasswords, type AppPassword } from './app-password-store.ts'
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

const holders: readonly Credential<AccessCaller>[] = [credentials.session, credentials.app]

/** For account holders. Without demands: any session but that of a taken-down account, and no apps. */
export const access = (demand: Demand = {}): Guard<AccessCaller> => taking(holders, refuseOthers, demand)

/** For what only the account itself may do: no app password, no app, no agent. */
export const fullAccess = (demand: Pick<Demand, 'refusesTakendown'> = {}): Guard<AccessCaller> => access({ ...demand, sessions: 'owner' })

/** For checks that need the body: refuses apps and agents whose grant does not reach that far. */
export function requirePermission({ permissions }: Pick<AccessCaller, 'permissions'>, check: (permissions: Permissions) => void): void {
  if (permissions !== null) assertPermission(permissions, check)
}

/** Whether the caller may have this method of another service called. Apps and agents are limited by their grant. */
export const mayHaveCalled = (caller: AccessCaller, nsid: string): boolean => caller.permissions !== null || reachesMethod(caller.credential, nsid)

/** For the holder of a refresh token. `expired`: also of one whose time is over. */
export const refresh = ({ expired = false } = {}): Guard<RefreshCaller> => taking([expired ? credentials.expiredRefresh : credentials.refresh], refuseOthers)

function refuseStrangers(): never {
  throw authenticationRequired()
}

/** For the operator. */
export const admin: Guard<AdminCaller> = taking([credentials.operator], refuseStrangers)

/** For the operator, and for the moderation service that the configuration names. */
export const moderator: Guard<AdminCaller> = taking([credentials.moderation, credentials.operator], refuseStrangers)

/** For account holders, and for the moderation service that looks at any account. */
export const accessOrModerator = (demand: Demand): Guard<AccessCaller | AdminCaller> =>
  taking<AccessCaller | AdminCaller>([besideSessions(credentials.moderation), ...holders], refuseOthers, demand)

/** For account holders, and for services that hold a token of an account here for this method. The caller is that account. */
export const accessOrServiceAuth = (demand: Demand): Guard<AccessCaller | ServiceAccountCaller> =>
  taking<AccessCaller | ServiceAccountCaller>([besideSessions(credentials.delegated), ...holders], refuseOthers, demand)

/** For everybody. The caller is whom a service token names, or null without one. */
export const optionalServiceAuth: Guard<ServiceCaller | null> = taking<ServiceCaller | null>([credentials.service], ({ request }) => {
  if (authorizationOf(request) === null) return null
  throw authenticationRequired('Invalid authorization header')
})

/** For reads that are open to all, and show more to the owner and to the operator. */
export function optionalAccess(demand: Demand = { grants: 'any' }): Guard<Viewer> {
  // A bearer token is one of an account here.
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
