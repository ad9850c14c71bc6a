/** Sessions and app passwords on the wire: com.atproto.server.*Session, *AppPassword(s). */
import { procedure, query } from '../../http/endpoint.ts'
import { authenticationRequired } from '../../http/errors.ts'
import type { Feature } from '../../http/feature.ts'
import type { Context } from '../../platform/context.ts'
import type { Sweep } from '../../platform/sweeps.ts'
import { accountOf, accountTakedown, type Account } from '../accounts/accounts.ts'
import { attemptLogin, isPasswordOf, tooManyFailedLogins } from '../accounts/logins.ts'
import { listAppPasswords, type AppPassword } from './app-password-store.ts'
import { createAppPassword, matchAppPassword, revokeAppPassword } from './app-passwords.ts'
import { access, fullAccess, refresh } from './auth.ts'
import { deleteExpiredSessions } from './session-store.ts'
import { sessionTokenKey } from './session-tokens.ts'
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

const appPasswordView = ({ name, createdAt, privileged, personalDetails }: AppPassword) => ({
  name,
  createdAt: new Date(createdAt).toISOString(),
  privileged,
  personalDetails,
})

const expiredSessionsSweep: Sweep = {
  name: 'expired-sessions',
  intervalSecs: () => 3600,
  run: async ({ db, clock }) => ({ deleted: await deleteExpiredSessions(db, clock.now()) }),
}

export const sessions: Feature = {
  name: 'sessions',
  sweeps: [expiredSessionsSweep],
  async prepare(ctx) {
    await sessionTokenKey(ctx)
  },
  routes: [
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
        const { email, emailConfirmed, ...rest } = sessionAccount(account)
        const seesEmail = caller.permissions?.allowsAccount({ attr: 'email', action: 'read' }) ?? true
        return seesEmail ? { ...rest, email, emailConfirmed } : rest
      },
    }),
    procedure('com.atproto.server.createAppPassword', {
      auth: fullAccess({ standing: true }),
      async handler({ ctx, caller, input: { name, privileged = false, personalDetails = false } }) {
        const made = await createAppPassword(ctx, caller.did, { name, privileged, personalDetails })
        return { ...appPasswordView(made), password: made.password }
      },
    }),
    query('com.atproto.server.listAppPasswords', {
      auth: fullAccess(),
      handler: async ({ ctx, caller }) => ({ passwords: (await listAppPasswords(ctx.db, caller.did)).map(appPasswordView) }),
    }),
    procedure('com.atproto.server.revokeAppPassword', {
      auth: fullAccess(),
      handler: ({ ctx, caller, input }) => revokeAppPassword(ctx, caller.did, input.name),
    }),
  ],
}
