/** Turns what a handler returns or throws into the response on the wire. */
import { JsonText } from './endpoint.ts'
import { encoded, knownTag, MIN_CODED_BYTES } from './encoding.ts'
import { errorPage } from './error-page.ts'
import { internalError, refusalOf, type Refusal } from './errors.ts'
import type { RequestExchange } from './exchange.ts'
import { parseHost } from './host.ts'
import { JSON_TYPE, type Surface } from './surfaces.ts'

/** How long a browser may cache a preflight. */
const PREFLIGHT_SECS = 86_400
const METHODS = 'GET,HEAD,PUT,PATCH,POST,DELETE'

/**
 * Returns a handler's value as a response: a `Response` unchanged apart from its headers and coding, nothing as an
 * empty 200, anything else as JSON, or as a 304 if the client already has it (RFC 9110 section 13.1.2).
 */
export function success(exchange: RequestExchange, value: unknown): Response {
  const { request } = exchange
  if (value instanceof Response) return finished(exchange, value)
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

/** Returns a refusal in the dialect of its surface. Any other error is logged, and becomes a 500 without its message. */
export function failure(exchange: RequestExchange, error: unknown): Response {
  const { surface, request, nsid } = exchange
  const known = refusalOf(error)
  const refusal = known ?? internalError()
  // An error after the client has gone is not a fault worth logging.
  if (known === null && !request.signal.aborted) exchange.ctx.log.error('request failed', { route: nsid ?? surface.prefix, error })
  if (isPage(exchange)) return finished(exchange, pageOf(exchange, refusal))
  const { contentType, text } = surface.body(refusal)
  const response = textual(exchange, refusal.status, contentType, text)
  for (const [name, value] of Object.entries(refusal.options.headers ?? {}))
    if (!response.headers.has(name)) response.headers.set(name, value)
  return response
}

const isPage = ({ surface, request }: RequestExchange): boolean =>
  surface.pages === 'always' || (surface.pages === 'for browsers' && (request.headers.get('accept') ?? '').includes('text/html'))

function pageOf({ ctx: { config }, request, rawPath, headersToSend }: RequestExchange, refusal: Refusal): Response {
  const own = new URL(config.publicUrl)
  const origin = parseHost(request.headers.get('host') ?? '')?.name === own.hostname ? '' : own.origin
  return errorPage(config, refusal, {
    path: rawPath,
    origin,
    retryAfterSecs: Number(headersToSend.get('retry-after') ?? refusal.options.headers?.['Retry-After'] ?? 0),
  })
}

/** Sets headers on the finished response: headers that are set before would be copied twice. */
function textual(exchange: RequestExchange, status: number, contentType: string, text: string): Response {
  const response = new Response(text, { status, headers: exchange.headersToSend })
  response.headers.set('Content-Type', contentType)
  return text.length < MIN_CODED_BYTES ? response : encoded(exchange.request, response)
}

/** The handler's own response, with the headers of the request and its surface added. */
function finished({ request, headersToSend }: RequestExchange, response: Response): Response {
  headersToSend.forEach((value, name) => response.headers.set(name, value))
  return encoded(request, response)
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
