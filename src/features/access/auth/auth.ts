/**
 * The door of auth: the guards of endpoints.
 *
 * Guards decide who may call an endpoint. An endpoint declares its guard, which runs before the body is read and
 * returns the caller to the handler. A guard lists the credentials that it accepts, in order. Without a credential it
 * throws `AuthMissing`; with a malformed credential or one of another kind, `InvalidToken`; with an expired one,
 * `ExpiredToken`.
 */
import type { CredentialKind, RequiredScope } from '../../../http/credential.ts'
import { besideSessions, presentedAs, refuseOthers, strict, taking } from '../../../http/credential-guards.ts'
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, insufficientScope } from '../../../http/errors.ts'
import {
  isAccountMethod,
  isPrivateMethod,
  isPrivilegedMethod,
  isPushRegistration,
} from '../../../protocol/guarded-methods.ts'
import type { Permissions } from '../../../protocol/scopes.ts'
import {
  agentKind,
  appKind,
  accountServiceKind,
  isDelegate,
  isRecorded,
  moderationKind,
  operatorKind,
  serviceKind,
  sessionKind,
  walletKind,
  type AccessCaller,
  type AdminCaller,
  type AccountServiceCaller,
  type ServiceCaller,
  type WalletCaller,
} from '../callers/callers.ts'
import { assertPermission } from './permissions.ts'
import type { Viewer } from './visibility.ts'

export { requireNotTakendown, revalidateWithAccount } from './account-guards.ts'
export { accountItself, leavingOwner, owner, parent, type OwnerCaller } from './owner-guard.ts'
export { requireGrant } from './permissions.ts'
export { requireVisible, requireVisibleRepo, type Viewer } from './visibility.ts'

const holders: readonly CredentialKind<AccessCaller>[] = [agentKind, sessionKind, appKind]

/** Guard for account holders. By default it accepts any session except that of a taken-down account, and no apps. */
export const access = (required: RequiredScope = {}): Guard<AccessCaller> => taking(holders, refuseOthers, required)

/** Guard for what only the account itself may do: refuses app passwords, apps and agents. */
export const fullAccess = (required: Pick<RequiredScope, 'refusesTakendown'> = {}): Guard<AccessCaller> =>
  access({ ...required, sessions: 'owner' })

/**
 * Check a permission that depends on the body. Throws `ScopeMissingError` if an app lacks it, and `InsufficientScope`
 * if an agent does.
 */
export function requirePermission(
  { permissions, credential }: { permissions: Permissions | null; credential: string },
  check: (permissions: Permissions) => void,
): void {
  if (permissions !== null) assertPermission(permissions, credential, check)
}

/**
 * Whether the caller may have this method of another service called on its behalf. Scopes are checked elsewhere.
 */
export function mayHaveCalled(caller: AccessCaller, nsid: string): boolean {
  // No push registrations for delegates: the device would keep getting notifications after the delegation has ended.
  if (isDelegate(caller) && isPushRegistration(nsid)) return false
  if (isRecorded(caller) || caller.credential === 'scoped') return !isAccountMethod(nsid)
  return caller.credential === 'oauth' || caller.privilegedMethods || !isPrivilegedMethod(nsid)
}

/**
 * Throws `InsufficientScope` if the caller is an agent that the account holder allows no private reads, and the method
 * is private.
 */
export function refusePrivate(caller: AccessCaller, nsid: string): void {
  if (caller.credential === 'agent' && !caller.privateReads && isPrivateMethod(nsid))
    throw insufficientScope('The account holder does not let this agent read what only the account sees')
}

function refuseStrangers(): never {
  throw authenticationRequired()
}

/** Guard for wallets alone. Throws `AuthenticationRequired` without a live session. */
export const wallet: Guard<WalletCaller> = strict(taking([walletKind], refuseStrangers, { refusesTakendown: true }))

/** Guard for the operator. Throws `AuthenticationRequired`. */
export const admin: Guard<AdminCaller> = taking([operatorKind], refuseStrangers)

/** Guard for the operator and the configured moderation service. Throws `AuthenticationRequired`. */
export const moderator: Guard<AdminCaller> = taking([moderationKind, operatorKind], refuseStrangers)

/** Guard for account holders, and for the moderation service, which may see any account. */
export const accessOrModerator = (required: RequiredScope): Guard<AccessCaller | AdminCaller> =>
  taking<AccessCaller | AdminCaller>([besideSessions(moderationKind), ...holders], refuseOthers, required)

/**
 * Guard for account holders, and for services with a token that an account here has issued for this method. The caller
 * is then that account.
 */
export const accessOrServiceAuth = (required: RequiredScope): Guard<AccessCaller | AccountServiceCaller> =>
  taking<AccessCaller | AccountServiceCaller>([besideSessions(accountServiceKind), ...holders], refuseOthers, required)

/** Guard for everyone. The caller is the issuer of the service token, or null without an `Authorization` header. */
export const optionalServiceAuth: Guard<ServiceCaller | null> = taking<ServiceCaller | null>(
  [serviceKind],
  ({ authorization }) => {
    if (authorization === null) return null
    throw authenticationRequired('Invalid authorization header')
  },
)

/** Guard for public reads that show more to the owner and to the operator. */
export function optionalAccess(required: RequiredScope = { grants: 'any', agents: true }): Guard<Viewer> {
  // The operator may use Basic only: a bearer token here belongs to an account.
  const operator = { ...operatorKind, recognises: presentedAs('basic') }
  const known = taking<AccessCaller | AdminCaller | null>([operator, ...holders], () => null, required)
  const viewer = async (exchange: Exchange): Promise<Viewer> => {
    const caller = await known.check(exchange)
    if (caller === null) return stranger
    return 'actor' in caller ? { did: null, admin: true } : { did: caller.did, admin: false }
  }
  return {
    ...known,
    // Most readers present nothing, and all of these credentials come in this header.
    check: (exchange) => (exchange.request.headers.get('authorization') ? viewer(exchange) : stranger),
  }
}

const stranger: Viewer = { did: null, admin: false }
