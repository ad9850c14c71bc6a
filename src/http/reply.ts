/** From what a handler answers, or throws, to the response on the wire. */
import { encoded, matches, weakEtag } from './encoding.ts'
import type { Exchange } from './endpoint.ts'
import { internalError, refusalOf } from './errors.ts'
import { RATE_LIMIT_HEADERS } from './limiting.ts'
import type { Surface } from './surfaces.ts'

const EXPOSED_HEADERS = [
  'DPoP-Nonce',
  'WWW-Authenticate',
  'Atproto-Repo-Rev',
  'Atproto-Upstream-Lag',
  'Atproto-Content-Labelers',
  'Content-Disposition',
  'Content-Length',
  'ETag',
  ...RATE_LIMIT_HEADERS,
].join(', ')

/** How long a browser may remember a preflight. */
const PREFLIGHT_SECS = 86_400
const METHODS = 'GET,HEAD,PUT,PATCH,POST,DELETE'

/**
 * A handler's value as a response: a `Response` as it is, nothing as an empty 200, the rest as JSON, and as a 304 when
 * the client shows that it has the same.
 */
export function success(request: Request, value: unknown): Response {
  if (value instanceof Response) return value
  if (value === undefined || value === null) return new Response(null, { status: 200 })
  const text = JSON.stringify(value)
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': String(Buffer.byteLength(text)) }
  if (request.method === 'POST') return new Response(text, { headers })
  const etag = weakEtag(text)
  if (matches(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers: { ETag: etag } })
  return new Response(text, { headers: { ...headers, ETag: etag } })
}

/** A refusal in the dialect of its surface. Anything else is logged, and answered without its text. */
export function failure(exchange: Exchange, surface: Surface, error: unknown): Response {
  const known = refusalOf(error)
  const refusal = known ?? internalError()
  // A client that went away gets no answer, and is no fault of ours.
  if (known === null && !exchange.request.signal.aborted) exchange.log.error('request failed', { route: exchange.nsid ?? surface.prefix, error })
  const { contentType, text } = surface.body(refusal)
  return new Response(text, { status: refusal.status, headers: { 'Content-Type': contentType, ...refusal.options.headers } })
}

/** Add what belongs to the request and to its surface, whatever the answer is. */
export function finish(exchange: Exchange, surface: Surface, response: Response): Response {
  const { headers } = response
  if (surface.cors) {
    headers.set('Access-Control-Allow-Origin', '*')
    headers.set('Access-Control-Expose-Headers', EXPOSED_HEADERS)
  }
  for (const [name, value] of exchange.replyHeaders) headers.set(name, value)
  return encoded(exchange.request, response)
}

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
