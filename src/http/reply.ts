/** From what a handler answers, or throws, to the response on the wire. */
import { encoded, matches, MIN_CODED_BYTES, weakEtag } from './encoding.ts'
import { internalError, refusalOf } from './errors.ts'
import type { RequestExchange } from './exchange.ts'
import { JSON_TYPE, type Surface } from './surfaces.ts'

/** How long a browser may remember a preflight. */
const PREFLIGHT_SECS = 86_400
const METHODS = 'GET,HEAD,PUT,PATCH,POST,DELETE'

/**
 * A handler's value as a response: a `Response` as it is, nothing as an empty 200, the rest as JSON, and as a 304 when
 * the client shows that it has the same. Bytes are JSON text already.
 */
export function success(exchange: RequestExchange, value: unknown): Response {
  const { request, replyHeaders: headers } = exchange
  if (value instanceof Response) return finished(exchange, value)
  if (value === undefined || value === null) return new Response(null, { headers })
  const text = value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value))
  if (request.method === 'POST') return textual(exchange, 200, JSON_TYPE, text)
  const etag = weakEtag(text)
  headers.set('ETag', etag)
  if (matches(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers })
  return textual(exchange, 200, JSON_TYPE, text)
}

/** A refusal in the dialect of its surface. Anything else is logged, and answered without its text. */
export function failure(exchange: RequestExchange, error: unknown): Response {
  const { surface, replyHeaders, request, nsid } = exchange
  const known = refusalOf(error)
  const refusal = known ?? internalError()
  // A client that went away gets no answer, and is no fault of ours.
  if (known === null && !request.signal.aborted) exchange.log.error('request failed', { route: nsid ?? surface.prefix, error })
  for (const [name, value] of Object.entries(refusal.options.headers ?? {})) if (!replyHeaders.has(name)) replyHeaders.set(name, value)
  const { contentType, text } = surface.body(refusal)
  return textual(exchange, refusal.status, contentType, Buffer.from(text))
}

function textual({ request, replyHeaders: headers }: RequestExchange, status: number, contentType: string, text: Uint8Array): Response {
  headers.set('Content-Type', contentType)
  headers.set('Content-Length', String(text.byteLength))
  const response = new Response(text, { status, headers })
  return text.byteLength < MIN_CODED_BYTES ? response : encoded(request, response)
}

/** What a handler answered by itself, with what belongs to the request and to its surface. */
function finished({ request, replyHeaders }: RequestExchange, response: Response): Response {
  replyHeaders.forEach((value, name) => response.headers.set(name, value))
  return encoded(request, response)
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
