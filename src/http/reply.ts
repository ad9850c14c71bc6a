/** Turns what a handler returns or throws into the response on the wire. */
import { DAY_SECS } from '../base/durations.ts'
import { JsonText, Outline } from './endpoint.ts'
import { CodingRoom, encoded, knownTag, MIN_CODED_BYTES, WholeResponse } from './encoding.ts'
import { errorPage } from './error-page.ts'
import { internalError, refusalOf, type Refusal } from './errors.ts'
import type { RequestExchange } from './exchange.ts'
import { noteFailure } from './failure-memory.ts'
import { perContext, type Context } from '../platform/context.ts'
import { storageFaultOf } from '../platform/files/storage-faults.ts'
import { LogRateLimiter } from '../platform/running/log-rate-limiter.ts'
import { parseHost } from './host.ts'
import { LONG_CHARS, queued } from './long-text.ts'
import { JSON_TYPE, REQUEST_ID_HEADER, surfaceOf, type Surface } from './surfaces.ts'

const codingRoom = perContext(() => new CodingRoom())

/** How long a browser may cache a preflight. */
const PREFLIGHT_SECS = DAY_SECS
const METHODS = 'GET,HEAD,PUT,PATCH,POST,DELETE'

/**
 * Returns a handler's value as a response: a `Response` unchanged apart from its headers and coding, nothing as an
 * empty 200, anything else as JSON, or as a 304 if the client already has it (RFC 9110 section 13.1.2).
 */
export function success(exchange: RequestExchange, value: unknown): Response {
  const { request } = exchange
  if (value instanceof Response) return finished(exchange, value)
  if (value instanceof Outline) return drawn(exchange, value)
  if (value === undefined || value === null) return new Response(null, { headers: exchange.headersToSend })
  const json = value instanceof JsonText ? value : new JsonText(JSON.stringify(value))
  if (request.method === 'POST') return textual(exchange, 200, JSON_TYPE, json.text)
  const { etag } = json
  const isKnown = knownTag(request.headers.get('if-none-match'), etag) !== null
  const response = isKnown
    ? new Response(null, { status: 304, headers: exchange.headersToSend })
    : textual(exchange, 200, JSON_TYPE, json.text)
  response.headers.set('ETag', etag)
  return response
}

/**
 * Returns a refusal in the dialect of its surface. Any other error is logged, and becomes a 500 without its message, or
 * a 503 if this machine has no room left.
 */
export function failure(exchange: RequestExchange, error: unknown): Response | Promise<Response> {
  const { surface, request, nsid } = exchange
  const known = refusalOf(error)
  const refusal = known ?? internalError()
  // An error after the client has gone is not a fault worth logging. A full disk is one, although clients are told of
  // it.
  const isFault = known === null || storageFaultOf(error) !== null
  if (isFault && !request.signal.aborted) logFailure(exchange.ctx, nsid ?? surface.prefix, error)
  const id = noteFailure(exchange, refusal)
  if (isPage(exchange)) return pageOf(exchange, refusal, id).then((shown) => named(finished(exchange, shown), id))
  const { contentType, text } = surface.body(refusal)
  const response = named(textual(exchange, refusal.status, contentType, text), id)
  for (const [name, value] of Object.entries(refusal.options.headers ?? {}))
    if (!response.headers.has(name)) response.headers.set(name, value)
  return response
}

/** Adds the id under which operators find the request. */
function named(response: Response, id: string | null): Response {
  if (id !== null) response.headers.set(REQUEST_ID_HEADER, id)
  return response
}

/** Returns the response to send in place of one whose file the runtime could not open. Only blobs are sent as files. */
export function unsentFile(ctx: Context, error: unknown): Response {
  logFailure(ctx, 'com.atproto.sync.getBlob', error)
  const refusal = refusalOf(error) ?? internalError()
  const surface = surfaceOf('/xrpc/')
  const { contentType, text } = surface.body(refusal)
  const headers = new Headers({ ...refusal.options.headers, 'Content-Type': contentType })
  surface.headers.forEach((value, name) => headers.set(name, value))
  return new Response(text, { status: refusal.status, headers })
}

/** Limits the log lines of failing requests, which a stranger may repeat as often as the rate limits allow. */
const failureLines = perContext(({ clock }) => new LogRateLimiter(clock))

function logFailure(ctx: Context, route: string, error: unknown): void {
  failureLines(ctx).within(route, (omitted) => ctx.log.error('request failed', { route, error, omitted }))
}

/** Whether the path is that of a page for people, or leads nowhere, and the client is a browser. */
export const isPage = ({ surface, request }: RequestExchange): boolean =>
  surface.pages === 'always' ||
  (surface.pages === 'for browsers' && (request.headers.get('accept') ?? '').includes('text/html'))

/** Sends a browser that knows the service by a former name to the same page under its present one. */
export function redirection({ ctx, request, rawPath }: RequestExchange): Response {
  const { search } = new URL(request.url)
  return new Response(null, { status: 308, headers: { Location: ctx.config.publicUrl + rawPath + search } })
}

function pageOf(exchange: RequestExchange, refusal: Refusal, id: string | null): Promise<Response> {
  const { ctx, request, rawPath, headersToSend } = exchange
  const { config } = ctx
  const own = new URL(config.publicUrl)
  const origin = parseHost(request.headers.get('host') ?? '')?.name === own.hostname ? '' : own.origin
  return errorPage(exchange, refusal, {
    path: rawPath,
    id,
    retryAt: retryAt(request, rawPath, refusal),
    origin,
    retryAfterSecs: Number(headersToSend.get('retry-after') ?? refusal.options.headers?.['Retry-After'] ?? 0),
  })
}

/** The page of an app's request, after its form failed for a reason that does not end the request. */
function retryAt({ method, url }: Request, path: string, { status }: Refusal): string | null {
  const { search } = new URL(url)
  return method === 'POST' && path === '/oauth/authorize' && search !== '' && status !== 400 ? path + search : null
}

/** Sets headers on the finished response: headers that are set before would be copied twice. */
function textual(exchange: RequestExchange, status: number, contentType: string, text: string): Response {
  const init = { status, headers: headersOf(exchange, status) }
  const isShort = text.length < MIN_CODED_BYTES
  const response = isShort ? new Response(text, init) : new WholeResponse(text, init)
  response.headers.set('Content-Type', contentType)
  if (isShort) return response
  const { request } = exchange
  const coded = encoded(codingRoom(exchange.ctx), request, response)
  return text.length < LONG_CHARS || request.method === 'HEAD' ? coded : queued(exchange, coded)
}

/** The handler's own response, with the headers of the request and its surface added. */
function finished(exchange: RequestExchange, response: Response): Response {
  const { headers } = response
  // There is one header for each cookie.
  headersOf(exchange, response.status).forEach((value, name) =>
    name === 'set-cookie' ? headers.append(name, value) : headers.set(name, value),
  )
  return encoded(codingRoom(exchange.ctx), exchange.request, response)
}

/** Headers of the request and its surface override those of the outline, as in `finished`. */
function drawn(exchange: RequestExchange, { status, headers: own, body }: Outline): Response {
  const headers = new Headers(headersOf(exchange, status))
  for (const name in own) if (!headers.has(name)) headers.set(name, own[name]!)
  return encoded(codingRoom(exchange.ctx), exchange.request, new Response(body, { status, headers }))
}

/** Before it failed, a handler may have allowed public caching, which would keep the error for days. */
function headersOf({ headersToSend }: RequestExchange, status: number): Headers {
  if (status < 400 || !headersToSend.get('cache-control')?.startsWith('public')) return headersToSend
  const headers = new Headers(headersToSend)
  headers.set('Cache-Control', 'no-store')
  return headers
}

/** Returns the response to an `OPTIONS` request. Fetch Standard, "CORS-preflight request". */
export function preflight(surface: Surface, request: Request): Response {
  if (!surface.cors) return new Response(null, { status: 204 })
  return new Response(null, {
    status: 204,
    headers: {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': request.headers.get('access-control-request-headers') ?? '*',
      'Access-Control-Max-Age': String(PREFLIGHT_SECS),
      Vary: 'Access-Control-Request-Headers',
    },
  })
}
