/** com.atproto.server.createSession, refreshSession, deleteSession and getSession. */
import { type Exchange, type Guard, procedure, query } from '../../../http/endpoint.ts'
import { accountLock } from '../../../platform/database/database.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { accountOfCaller, accountStatus, refuseTakendown, type Account } from '../../identity/accounts/accounts.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import {
  attemptLogin,
  loginRefused,
  MAX_TRIED_PASSWORD_CHARS,
  provePassword,
} from '../../identity/passwords/passwords.ts'
import { requireValid } from '../../../http/revalidation.ts'
import type { LexMethods } from '../../../protocol/lexicons/generated/types.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { passFactor } from '../factors/factors.ts'
import { matchAppPassword } from './app-passwords.ts'
import { refuseOthers, taking } from '../../../http/credential-guards.ts'
import { access } from '../auth/auth.ts'
import { revalidationOf } from '../callers/callers.ts'
import { refreshCredential } from './refresh-credential.ts'
import {
  endSession,
  openSession,
  refreshSession,
  sessionAccount,
  sessionTokens,
  userInfoNotFound,
  permissionsOfCredential,
  type OpenSession,
  type RefreshCaller,
} from './session-life.ts'

/** Guard for the holder of a refresh token. `expired`: also accepts an expired token. */
const refresh = ({ expired = false } = {}): Guard<RefreshCaller> =>
  taking([refreshCredential({ expired })], refuseOthers)

type Input = Pick<
  LexMethods['com.atproto.server.createSession']['input'],
  'password' | 'authFactorToken' | 'allowTakendown'
>

const wrongCredentials = () => authenticationRequired('Invalid identifier or password')

/**
 * Returns null if no password matches. Throws `AccountTakedown` unless the client accepts a limited session, and what
 * `passFactor` throws.
 */
async function logIn(
  exchange: Exchange,
  account: Account | null,
  { password, authFactorToken, allowTakendown = false }: Input,
): Promise<OpenSession | null> {
  const { ctx } = exchange
  const own = await provePassword(ctx, account, password, wrongCredentials)
  const match = own ? null : await matchAppPassword(ctx, account?.did ?? null, password, wrongCredentials)
  const revalidate = own ?? match?.revalidate
  const isTakendown = account !== null && account.takedownRef !== null
  if (account === null || !revalidate || (match && isTakendown)) return null
  if (!allowTakendown) refuseTakendown(statusOf(account))
  if (own) await passFactor(exchange, account, authFactorToken)
  const credential = match?.appPassword ?? null
  const origin = requestOrigin(exchange)
  const tokenId = await ctx.db.transactionOn(accountLock(account.did), async (tx) => {
    await revalidate(tx)
    if (!isTakendown) refuseTakendown(await accountStatus(tx, account.did))
    if (!isTakendown) await announceSignIn(tx, exchange, account.did, credential === null ? 'password' : 'app password')
    return openSession(tx, account.did, credential, origin)
  })
  const tokens = await sessionTokens(ctx, account.did, credential, tokenId, { isTakendown })
  return { account, credential, tokens }
}

const sessionResponse = ({ account, credential, tokens }: OpenSession) => ({
  ...sessionAccount(account, permissionsOfCredential(credential)),
  ...tokens,
})

export const sessionRoutes = [
  procedure('com.atproto.server.createSession', {
    limit: 'createSession',
    async handler(call) {
      const { input } = call
      const { identifier, password } = input
      if (password.length > MAX_TRIED_PASSWORD_CHARS)
        throw authenticationRequired('Password too long. Consider resetting your password.')
      const login = await attemptLogin(call, identifier, (account) => logIn(call, account, input))
      if (!login.ok) throw loginRefused(call, login.fault, wrongCredentials())
      return sessionResponse(login.value)
    },
  }),
  procedure('com.atproto.server.refreshSession', {
    auth: refresh(),
    async handler({ ctx, caller }) {
      return sessionResponse(await refreshSession(ctx, caller))
    },
  }),
  procedure('com.atproto.server.deleteSession', {
    auth: refresh({ expired: true }),
    handler: ({ ctx, caller }) => endSession(ctx, caller),
  }),
  query('com.atproto.server.getSession', {
    auth: access({ grants: 'any', agents: true, handlerRevalidates: true }),
    async handler({ ctx, caller }) {
      const revalidation = revalidationOf(ctx, caller)
      const account = await accountOfCaller(ctx.db, caller.did, revalidation)
      if (!account || account.takedownRef !== null) throw userInfoNotFound(caller.did)
      requireValid(revalidation, account)
      return sessionAccount(account, caller.permissions)
    },
  }),
]
