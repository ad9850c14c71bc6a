/**
 * The credential of password sessions: opened with a password or an app password, or the limited session of a
 * taken-down account.
 *
 * Only the table `grantedScopes` limits an app password. One without access to direct messages opens an `app` session,
 * and one with access a `privileged` session. An app password with scopes opens a `scoped` session, which endpoints
 * also limit as they limit apps.
 */
import { invalidToken } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { requireValid } from '../../../http/revalidation.ts'
import { refuseTakendown, statusOfCaller } from '../../identity/accounts/accounts.ts'
import { boundTokenAsBearer, claimsToBeAccessToken } from '../tokens/tokens.ts'
import { presentedAs } from '../../../http/credential-guards.ts'
import type { Credential, RequiredSession } from '../../../http/credential.ts'
import { sessionRevalidation, wasFoundEnded } from './session-revalidation.ts'
import { requireGrant, revalidateWithAccount } from '../auth/auth.ts'
import { permissionsOf } from '../../../protocol/scopes.ts'
import { sessionKind, type SessionCaller, type SessionKind } from '../callers/callers.ts'
import { acceptedToken, readAccessToken, type AccessClaims, type ReadToken } from './session-tokens.ts'

interface GrantedScope {
  /** The requirements of endpoints that the session meets. */
  suffices: readonly RequiredSession[]
  /** Whether it may call privileged methods of other services: direct messages, and account migration. */
  privilegedMethods: boolean
  /** Whether it may read and set the birth date. `granted`: only if the app password has that grant. */
  personalDetails: 'always' | 'granted' | 'never'
}

const grantedScopes: Readonly<Record<SessionKind, GrantedScope>> = {
  full: { suffices: ['everyday', 'owner', 'leaving', 'every'], privilegedMethods: true, personalDetails: 'always' },
  privileged: { suffices: ['everyday', 'every'], privilegedMethods: true, personalDetails: 'granted' },
  app: { suffices: ['everyday', 'every'], privilegedMethods: false, personalDetails: 'granted' },
  scoped: { suffices: ['everyday', 'every'], privilegedMethods: false, personalDetails: 'never' },
  // Only for migration to another server; endpoints that accept it restrict it further.
  takendown: { suffices: ['leaving', 'every'], privilegedMethods: true, personalDetails: 'never' },
}

/** Returns the caller that an access token stands for, with what its kind of session may do. */
export function sessionCallerOf({
  did,
  sessionId,
  kind,
  personalDetails: isGranted,
  scope,
}: AccessClaims): SessionCaller {
  const { personalDetails, privilegedMethods } = grantedScopes[kind]
  return {
    did,
    credential: kind,
    sessionId,
    permissions: scope === undefined ? null : permissionsOf(scope),
    personalDetails: personalDetails === 'always' || (personalDetails === 'granted' && isGranted),
    privilegedMethods,
  }
}

export const sessionCredential: Credential<SessionCaller> = {
  ...sessionKind,
  recognises: presentedAs('bearer'),
  check({ ctx }, token) {
    const read = readAccessToken(ctx, token)
    return read instanceof Promise ? read.then((later) => callerWith(token, later)) : callerWith(token, read)
  },
  may(caller, required, exchange) {
    const { ctx } = exchange
    const { sessions = 'everyday', grants = 'refuse', refusesTakendown = false, handlerRevalidates = false } = required
    if (!grantedScopes[caller.credential].suffices.includes(sessions)) throw invalidToken('Bad token scope')
    const { credential, permissions } = caller
    if (permissions !== null) requireGrant({ credential, permissions }, grants, exchange)
    if (!handlerRevalidates || refusesTakendown || wasFoundEnded(ctx, caller))
      return lookUp(ctx, caller, refusesTakendown)
  },
  revalidation: (caller, ctx) => sessionRevalidation(ctx, caller),
  // A takedown ends no session.
  revalidate: (caller, ctx, reader, required) =>
    revalidateWithAccount(reader, sessionRevalidation(ctx, caller), required),
}

function callerWith(token: string, read: ReadToken): SessionCaller {
  if (!read.ok && claimsToBeAccessToken(token)) throw boundTokenAsBearer()
  return sessionCallerOf(acceptedToken(read))
}

/**
 * Throws `ExpiredToken` if the session has ended. If the account no longer exists, the handler reports it, unless
 * `refusesTakendown` is set.
 */
async function lookUp(ctx: Context, caller: SessionCaller, refusesTakendown: boolean): Promise<void> {
  const revalidation = sessionRevalidation(ctx, caller)
  const account = await statusOfCaller(ctx.db, caller.did, revalidation)
  if (refusesTakendown) refuseTakendown(account?.status ?? null)
  if (account !== null) requireValid(revalidation, account)
}
