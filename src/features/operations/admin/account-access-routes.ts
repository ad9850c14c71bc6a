/** Lists all access to an account, and ends any of it: sessions, apps, agents, browsers and app passwords. */
import { Type } from '@sinclair/typebox'
import { route, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { KnownOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { wireTimeOrNull, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { deleteOAuthSession, findOAuthSession, oauthSessionsOf } from '../../access/oauth/oauth.ts'
import { deleteSignIn, listBrowsers } from '../../access/pages/pages.ts'
import {
  deleteSession,
  deleteWalletSession,
  endAppPassword,
  findSession,
  listAppPasswords,
  listSessions,
  listWalletSessions,
} from '../../access/sessions/sessions.ts'
import { endForOperator, listAgents, visibleAgent } from '../../agents/agents/agents.ts'
import { actorOf, namedAccount, operator, recordAudit } from '../operators/operators.ts'

interface Access extends KnownOrigin {
  /** Identifies the access among its kind. Not a credential. */
  key: string
  name: string | null
  usedAt: Millis | null
  expiresAt: Millis | null
}

interface Kind {
  list(ctx: Context, did: Did, now: Millis): Promise<Access[]>
  /** Returns false if there was no such access. */
  end(call: Exchange, tx: Tx, did: Did, key: string, actor: string): Promise<boolean>
}

const unknownOrigin = { openedWith: null, openedFrom: null }

const kinds: Readonly<Record<string, Kind>> = {
  session: {
    async list({ db }, did, now) {
      const sessions = await listSessions(db, did, now)
      return sessions.map(({ id, appPassword, rotatedAt, ...rest }) => ({
        ...rest,
        key: id,
        name: appPassword,
        usedAt: rotatedAt,
      }))
    },
    async end(_, tx, did, key) {
      return (await findSession(tx, key, did)) !== null && (await deleteSession(tx, key)) > 0
    },
  },
  app: {
    async list({ db }, did, now) {
      const sessions = await oauthSessionsOf(db, did, now)
      return sessions.map(
        ({ id, clientId, clientName, createdAt, refreshedAt, expiresAt, openedWith, openedFrom }) => ({
          key: id,
          name: clientName === null ? clientId : `${clientName} (${clientId})`,
          openedAt: createdAt,
          usedAt: refreshedAt,
          expiresAt,
          openedWith,
          openedFrom,
        }),
      )
    },
    async end(_, tx, did, key) {
      return (await findOAuthSession(tx, key))?.did === did && (await deleteOAuthSession(tx, key)) > 0
    },
  },
  wallet: {
    async list({ db }, did, now) {
      const sessions = await listWalletSessions(db, did, now)
      return sessions.map(({ tokenHash, ...rest }) => ({ ...rest, key: tokenHash, name: null }))
    },
    end: async (_, tx, did, key) => (await deleteWalletSession(tx, did, key)) > 0,
  },
  browser: {
    async list({ db }, did, now) {
      const browsers = await listBrowsers(db, did, now)
      return browsers.map((browser) => ({
        key: browser.tokenHash,
        name: null,
        openedAt: browser.openedAt ?? browser.signedInAt,
        usedAt: browser.usedAt ?? browser.signedInAt,
        expiresAt: browser.ends.unused,
        openedWith: browser.openedWith,
        openedFrom: browser.openedFrom,
      }))
    },
    end: async (_, tx, did, key) => (await deleteSignIn(tx, key, did)) > 0,
  },
  agent: {
    async list({ db }, did) {
      const agents = await listAgents(db, did)
      return agents
        .filter(({ status }) => status === 'claimed')
        .map(({ id, clientName, confirmedAt, lastUsedAt, openedWith, openedFrom }) => ({
          key: id,
          name: clientName,
          openedAt: confirmedAt,
          usedAt: lastUsedAt,
          expiresAt: null,
          openedWith,
          openedFrom,
        }))
    },
    async end(call, tx, did, key, actor) {
      const agent = await visibleAgent(tx, did, key)
      if (agent === null || agent.status === 'revoked') return false
      await endForOperator(call, tx, actor, agent)
      return true
    },
  },
  'app-password': {
    async list({ db }, did) {
      const passwords = await listAppPasswords(db, did)
      return passwords.map(({ name, createdAt, lastUsedAt, expiresAt }) => ({
        ...unknownOrigin,
        key: name,
        name,
        openedAt: createdAt,
        usedAt: lastUsedAt,
        expiresAt,
      }))
    },
    end: (call, tx, did, key) => endAppPassword(call, tx, did, key),
  },
}

export const accountAccessRoutes = [
  route('GET', '/v1/admin/accounts/:did/access', {
    auth: operator('readAccounts'),
    async handler({ ctx, path }) {
      const { did } = await namedAccount(ctx.db, path)
      const lists = await Promise.all(
        Object.entries(kinds).map(async ([kind, { list }]) =>
          (await list(ctx, did, ctx.clock.now())).map(({ key, name, openedAt, usedAt, expiresAt, ...from }) => ({
            id: `${kind}:${key}`,
            kind,
            name,
            openedAt: wireTimeOrNull(openedAt),
            usedAt: wireTimeOrNull(usedAt),
            expiresAt: wireTimeOrNull(expiresAt),
            openedWith: from.openedWith,
            openedFrom: from.openedFrom,
          })),
        ),
      )
      return { did, access: lists.flat() }
    },
  }),

  /** End one access. Ending an app password also ends its sessions. */
  route('POST', '/v1/admin/accounts/:did/access/end', {
    auth: operator('endAccess'),
    async handler(call) {
      const { ctx, caller, path, body } = call
      const { id } = await readJson(body, Type.Object({ id: Type.String({ maxLength: 600 }) }))
      const [name = '', ...rest] = id.split(':')
      const kind = Object.hasOwn(kinds, name) ? kinds[name]! : null
      if (kind === null || rest.length === 0)
        throw invalidRequest(`id must begin with one of ${Object.keys(kinds).join(', ')}, and a colon`)
      const { did } = await namedAccount(ctx.db, path)
      const actor = actorOf(caller)
      const key = rest.join(':')
      await ctx.db.transaction(async (tx) => {
        if (!(await kind.end(call, tx, did, key, actor))) throw notFound('The account has no such access')
        await recordAudit(call, tx, {
          actor,
          action: 'access_ended',
          subject: did,
          detail: JSON.stringify({ kind: name }),
        })
      })
      return { did, id }
    },
  }),
]
