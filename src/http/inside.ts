/**
 * Requests that pages make to endpoints of this server, with the credential of the person who looks at the page. They
 * go the way of all requests: guards, limits and the audit log treat them as if a program of that person had sent them.
 */
import { perContext, type Context } from '../platform/context.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Exchange } from './endpoint.ts'
import { serviceUnavailable } from './errors.ts'

const registry = perContext<{ dispatcher: Dispatcher | null }>(() => ({ dispatcher: null }))

/** Lets pages reach the endpoints of the server. `app.ts` calls it once for each context. */
export function registerDispatcher(ctx: Context, dispatcher: Dispatcher): void {
  registry(ctx).dispatcher = dispatcher
}

export interface InsideRequest {
  /** Path and query. */
  path: string
  /** Sent as a bearer token. */
  token: string
  /** Makes it a POST. */
  json?: object
  headers?: Readonly<Record<string, string>>
}

export type InsideAnswer =
  | { ok: true; body: unknown }
  /** `name` is the name of the error, as its surface writes it. */
  | { ok: false; status: number; name: string; message: string }

/**
 * Asks an endpoint that answers with JSON, in the name of the client that sent this request. Throws
 * `ServiceUnavailable` if the endpoint does.
 */
export async function askInside(
  exchange: Exchange,
  { path, token, json, headers }: InsideRequest,
): Promise<InsideAnswer> {
  const { ctx, request, ip } = exchange
  const { dispatcher } = registry(ctx)
  if (dispatcher === null) throw new Error('the server has no dispatcher yet')
  const sent = new Headers({ authorization: `Bearer ${token}`, ...headers })
  for (const name of ['host', 'user-agent']) {
    const value = request.headers.get(name)
    if (value !== null) sent.set(name, value)
  }
  const text = json === undefined ? null : JSON.stringify(json)
  if (text !== null) {
    sent.set('content-type', 'application/json')
    sent.set('content-length', String(Buffer.byteLength(text)))
  }
  const inner = new Request(new URL(path, exchange.url).href, {
    method: text === null ? 'GET' : 'POST',
    headers: sent,
    ...(text === null ? {} : { body: text }),
  })
  const response = await dispatcher.dispatch(inner, {
    addressOf: () => ip,
    isDirect: true,
    mayIdle() {},
    upgrade: () => false,
  })
  const answered = await response.text()
  const body: unknown = answered === '' ? null : JSON.parse(answered)
  if (response.ok) return { ok: true, body }
  const fault = faultIn(body)
  if (response.status === 503) throw serviceUnavailable(fault.message, response.headers.get('retry-after'))
  return { ok: false, status: response.status, ...fault }
}

/** The error of `/xrpc` is `{ error, message }`, that of `/v1` is `{ error: { code, message } }`. */
function faultIn(body: unknown): { name: string; message: string } {
  const { error, message } = body as { error: string | { code: string; message: string }; message?: string }
  return typeof error === 'string'
    ? { name: error, message: message ?? error }
    : { name: error.code, message: error.message }
}
