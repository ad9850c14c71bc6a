/**
 * Who is signed in at the console in this browser. A cookie with the path `/admin` contains the token of an operator's
 * session, which is valid in this browser alone. No other part of the server reads the cookie.
 */
import { createHmac } from 'node:crypto'
import { cookieOf } from '../../../http/cookies.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden } from '../../../http/errors.ts'
import type { Html } from '../../../http/html.ts'
import { askInside, type InsideAnswer } from '../../../http/inside.ts'
import type { Context } from '../../../platform/context.ts'
import { formProof, readOwnForm } from '../../access/pages/pages.ts'
import { hidden, type PageCall } from '../../access/page-parts/page-parts.ts'
import { sessionOperator, type OperatorAccount } from '../operators/operators.ts'

/** The session of a console, and what its pages need. */
export interface Desk {
  call: PageCall
  who: OperatorAccount
  token: string
}

const isSecure = ({ config }: Context) => config.publicUrl.startsWith('https://')
/** The prefix `__Host-` would require the path `/`. */
const cookieName = (ctx: Context) => (isSecure(ctx) ? '__Secure-holdfast-operator' : 'holdfast-operator')

function cookie(ctx: Context, value: string, age = ''): string {
  return `${cookieName(ctx)}=${value}; Path=/admin; HttpOnly; SameSite=Strict${isSecure(ctx) ? '; Secure' : ''}${age}`
}

/** Set the cookie, which the browser forgets when it closes. */
export const setToken = ({ ctx, replyHeaders }: Exchange, token: string): void =>
  replyHeaders.append('Set-Cookie', cookie(ctx, token))

export const clearToken = ({ ctx, replyHeaders }: Exchange): void =>
  replyHeaders.append('Set-Cookie', cookie(ctx, '', '; Max-Age=0'))

/** Returns the session of this browser; null without one. */
export async function deskOf(call: PageCall): Promise<Desk | null> {
  const token = cookieOf(call.request, cookieName(call.ctx))
  const who = token === null ? null : await sessionOperator(call, token)
  return who && token !== null ? { call, who, token } : null
}

/** The form token for the pages of this session. */
const formTokenOf = (token: string): string => createHmac('sha256', token).update('console form').digest('base64url')

/** What every form of the console contains. */
export const consoleProof = ({ call, token }: Desk): Html[] => [
  ...(formProof(call) ?? []),
  ...hidden({ console_token: formTokenOf(token) }),
]

/** Returns a form of this session, sent from a page of ours. Throws `Forbidden` otherwise. */
export async function readConsoleForm({ call, token }: Desk): Promise<URLSearchParams> {
  const form = await readOwnForm(call)
  if (form.get('console_token') !== formTokenOf(token))
    throw forbidden('This form was not sent from a page of this session. Please go back, reload and try again.')
  return form
}

/** Send a request to an endpoint on behalf of the operator. `reason` is for the audit log. */
export const ask = ({ call, token }: Desk, path: string, json?: object, reason?: string): Promise<InsideAnswer> =>
  askInside(call, {
    path,
    token,
    json,
    headers: reason === undefined ? {} : { 'x-admin-reason': encodeURIComponent(reason) },
  })
