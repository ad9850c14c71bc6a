/** com.atproto.server.*Session. */
import { procedure, query } from '../../http/endpoint.ts'
import { authenticationRequired } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import { accountOf, accountTakedown, attemptLogin, isPasswordOf, tooManyFailedLogins, type Account } from '../accounts/accounts.ts'
import { matchAppPassword } from './app-passwords.ts'
import { access, refresh } from './auth.ts'
import { endSession, openSession, refreshSession, sessionAccount, sessionTokens, takendownTokens, userInfoNotFound, type Tokens } from './sessions.ts'

const MAX_PASSWORD_CHARS = 512

/** Null when no password fits. Refuses a taken-down account unless it asks for its limited session. */
async function logIn(ctx: Context, account: Account | null, password: string, allowTakendown: boolean): Promise<{ account: Account; tokens: Tokens } | null> {
  const isOwn = await isPasswordOf(ctx, account, password)
  const appPassword = isOwn ? null : await matchAppPassword(ctx, account?.did ?? null, password)
  const isTakendown = account !== null && account.takedownRef !== null
  if (account === null || (!isOwn && (appPassword === null || isTakendown))) return null
  if (isTakendown) {
    if (!allowTakendown) throw accountTakedown()
    return { account, tokens: await takendownTokens(ctx, account.did) }
  }
  const tokenId = await ctx.db.transaction((tx) => openSession(ctx, tx, account.did, appPassword))
  return { account, tokens: await sessionTokens(ctx, account.did, appPassword, tokenId) }
}

export const sessionRoutes = [
  procedure('com.atproto.server.createSession', {
    limit: 'createSession',
    async handler({ ctx, input: { identifier, password, allowTakendown = false } }) {
      if (password.length > MAX_PASSWORD_CHARS) throw authenticationRequired('Password too long. Consider resetting your password.')
      const login = await attemptLogin(ctx, identifier, (account) => logIn(ctx, account, password, allowTakendown))
      if (!login.ok) throw login.fault === 'blocked' ? tooManyFailedLogins() : authenticationRequired('Invalid identifier or password')
      return { ...sessionAccount(login.value.account), ...login.value.tokens }
    },
  }),
  procedure('com.atproto.server.refreshSession', {
    auth: refresh(),
    async handler({ ctx, caller }) {
      const { account, tokens } = await refreshSession(ctx, caller)
      return { ...sessionAccount(account), ...tokens }
    },
  }),
  procedure('com.atproto.server.deleteSession', {
    auth: refresh({ expired: true }),
    handler: ({ ctx, caller }) => endSession(ctx, caller),
  }),
  query('com.atproto.server.getSession', {
    auth: access({ grants: 'any' }),
    async handler({ ctx, caller }) {
      const account = await accountOf(ctx.db, caller.did)
      if (!account || account.takedownRef !== null) throw userInfoNotFound(caller.did)
      const seesEmail = caller.permissions?.allowsAccount({ attr: 'email', action: 'read' }) ?? true
      return sessionAccount(account, { seesEmail })
    },
  }),
]
