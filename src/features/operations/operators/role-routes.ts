/** Endpoints for the accounts that operate this server: their roles, and their sessions. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { forbidden, invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { accountNamed } from '../../identity/accounts/accounts.ts'
import { deleteOperatorSession, deleteOperatorSessionsOf, listOperatorSessions } from './operator-session-store.ts'
import { aliveBounds, openOperatorSession, proveAgain } from './operator-sessions.ts'
import { actorOf, operator, recordAudit, requireStanding, type Operator } from './operators.ts'
import { deleteRole, findRole, listRoles, setRole } from './role-store.ts'
import { actsOf, mayRole, parseRole, roles } from './roles.ts'

const rolePages: Pages<{ did: Did }> = {
  cursor: { write: ({ did }) => did, read: (text) => ({ did: text as Did }) },
  maxRows: 100,
}
const sessionPages: Pages<{ openedAt: Millis; id: string }> = { cursor: byPair('openedAt', '|', 'id'), maxRows: 100 }

/** Whose sessions an operator may see and end: those of their own account, or (null) of all accounts. */
const sessionsOf = (who: Operator): Did | null =>
  who.kind === 'account' && !mayRole(who.role, 'manageRoles') ? who.did : null

const factorToken = Type.Optional(Type.String({ maxLength: 100 }))

export const roleRoutes = [
  // The name and the password are sent in the body, because paths end up in logs.
  route('POST', '/v1/admin/sessions', {
    limit: 'createSession',
    async handler(call) {
      const { account, password, authFactorToken } = await readJson(
        call.body,
        Type.Object({
          account: Type.String(),
          password: Type.String(),
          authFactorToken: factorToken,
        }),
      )
      const { token, did, role } = await openOperatorSession(call, {
        identifier: account,
        password,
        factorCode: authFactorToken,
        isBrowser: false,
      })
      const { sessionIdleSecs, sessionSecs } = call.ctx.config.console
      return { token, did, role, expiresInSecs: sessionSecs, idleSecs: sessionIdleSecs }
    },
  }),

  /** The caller, and what it may do. */
  route('GET', '/v1/admin/me', {
    auth: operator('signIn'),
    async handler({ caller }) {
      if (caller.kind !== 'account') return { actor: actorOf(caller), role: 'owner', acts: actsOf('owner') }
      return { actor: actorOf(caller), did: caller.did, role: caller.role, acts: actsOf(caller.role) }
    },
  }),

  /** Enter the password again, and the second factor if there is one, as dangerous acts require. Replaces the token. */
  route('POST', '/v1/admin/sessions/prove', {
    auth: operator('signIn'),
    limit: 'createSession',
    async handler(call) {
      const { caller, body } = call
      const { password, authFactorToken } = await readJson(
        body,
        Type.Object({ password: Type.String(), authFactorToken: factorToken }),
      )
      if (caller.kind !== 'account')
        throw invalidRequest('Only the session of an account can be confirmed with a password')
      return { token: await proveAgain(call, caller, { password, factorCode: authFactorToken }) }
    },
  }),

  route('GET', '/v1/admin/sessions', {
    auth: operator('signIn'),
    async handler({ ctx, caller, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, sessionPages, (before, limit) =>
        listOperatorSessions(ctx.db, { did: sessionsOf(caller), before }, aliveBounds(ctx), limit),
      )
      return {
        sessions: rows.map(({ id, did, handle, browserHash, openedAt, usedAt, openedWith, openedFrom }) => ({
          id,
          did,
          handle,
          kind: browserHash === null ? 'program' : 'browser',
          isThis: caller.kind === 'account' && caller.sessionId === id,
          openedAt: wireTime(openedAt),
          usedAt: wireTime(usedAt),
          openedWith,
          openedFrom,
        })),
        cursor,
      }
    },
  }),

  route('POST', '/v1/admin/sessions/:id/end', {
    auth: operator('signIn'),
    async handler(call) {
      const { ctx, caller, path } = call
      const { id = '' } = path
      const ended = await ctx.db.transaction(async (tx) => {
        const actor = actorOf(caller)
        await requireStanding(call, tx, { actor, action: 'operator_session_ended' })
        const count = await deleteOperatorSession(tx, id, sessionsOf(caller))
        if (count > 0)
          await recordAudit(call, tx, { actor, action: 'operator_session_ended', subject: id, isDone: true })
        return count
      })
      if (ended === 0) throw notFound('No such session')
      return { id }
    },
  }),

  route('GET', '/v1/admin/operators', {
    auth: operator('readRoles'),
    async handler({ ctx, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, rolePages, (after, limit) =>
        listRoles(ctx.db, after?.did ?? '', limit),
      )
      return { operators: rows.map(({ givenAt, ...row }) => ({ ...row, givenAt: wireTime(givenAt) })), cursor }
    },
  }),

  /** Give an account a role, or (null) take it away. Ends the account's sessions as an operator. */
  route('POST', '/v1/admin/operators', {
    auth: operator('manageRoles'),
    async handler(call) {
      const { ctx, caller, body } = call
      const given = await readJson(
        body,
        Type.Object({ account: Type.String(), role: Type.Union([Type.String(), Type.Null()]) }),
      )
      const role = given.role === null ? null : parseRole(given.role)
      if (given.role !== null && role === null) throw invalidRequest(`role must be one of ${roles.join(', ')}`)
      return ctx.db.transaction(async (tx) => {
        const account = await accountNamed(tx, given.account)
        if (account === null) throw notFound('No such account')
        const { did, handle, hasPassword } = account
        if (role !== null && !hasPassword)
          throw forbidden('The account has no password, and operators sign in with one')
        const before = await findRole(tx, did)
        if (before === role) return { did, handle, role }
        const actor = actorOf(caller)
        await recordAudit(call, tx, {
          actor,
          action: role === null ? 'operator_role_removed' : 'operator_role_set',
          subject: did,
          detail: JSON.stringify({ before, role }),
        })
        await deleteOperatorSessionsOf(tx, did)
        await (role === null ? deleteRole(tx, did) : setRole(tx, did, role, actor, ctx.clock.now()))
        return { did, handle, role }
      })
    },
  }),
]
