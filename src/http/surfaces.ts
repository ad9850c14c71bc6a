/**
 * How the parts of the address space differ: the format of errors, whether browsers on other origins may call, and
 * which headers those may read. An error of the edge itself takes the format of the requested path.
 */
import { nestedCodes, type Refusal } from './errors.ts'
import { rateLimitHeaders } from './limit-headers.ts'

export interface Surface {
  prefix: string
  cors: boolean
  /** Headers of every response. Shared, so never modified. */
  headers: Headers
  /** Headers of every response that depends on the caller. */
  personalHeaders: Headers
  body(refusal: Refusal): { contentType: string; text: string }
  /** Whether refusals are HTML pages, for every client or for browsers alone. */
  pages?: 'always' | 'for browsers'
}

export const JSON_TYPE = 'application/json; charset=utf-8'

const flat = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ error: refusal.name, message: refusal.message, ...description(refusal), ...details(refusal) }),
})

const nested = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({
    error: {
      code: refusal.options.code ?? nestedCodes[refusal.name] ?? refusal.name,
      message: refusal.message,
      ...details(refusal),
    },
  }),
})

const oauth = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ error: oauthCodes[refusal.name] ?? refusal.name, error_description: refusal.message }),
})

const event = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ err: oauthCodes[refusal.name] ?? refusal.name, description: refusal.message }),
})

const plain = (refusal: Refusal) => ({ contentType: 'text/plain; charset=utf-8', text: `${refusal.message}\n` })

/** Error codes of RFC 6749 section 5.2 for refusals of the edge itself. */
const oauthCodes: Record<string, string> = {
  InvalidRequest: 'invalid_request',
  PayloadTooLarge: 'invalid_request',
  PayloadTooLargeError: 'invalid_request',
  SyntaxError: 'invalid_request',
  RateLimitExceeded: 'temporarily_unavailable',
  ServiceUnavailable: 'temporarily_unavailable',
  InternalServerError: 'server_error',
}

const description = (refusal: Refusal) => refusal.options.described && { error_description: refusal.message }

const details = (refusal: Refusal) =>
  refusal.options.details === undefined ? {} : { details: refusal.options.details }

/** The id of a refused or failed request, which its user may show to an operator. */
export const REQUEST_ID_HEADER = 'X-Request-Id'

const exposedHeaders = [
  'DPoP-Nonce',
  'WWW-Authenticate',
  'Atproto-Repo-Rev',
  'Atproto-Upstream-Lag',
  'Atproto-Content-Labelers',
  'Content-Disposition',
  'Content-Length',
  'ETag',
  REQUEST_ID_HEADER,
  ...rateLimitHeaders,
]

/** A response may repeat what strangers sent: browsers must take it for what its type says. */
const everywhere = { 'X-Content-Type-Options': 'nosniff' }
const crossOrigin = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': exposedHeaders.join(', ') }
const personal = { 'Cache-Control': 'private', Vary: 'Authorization' }

/** `more` are headers of every response, beside those that follow from `cors`. */
const declared: readonly (Omit<Surface, 'headers' | 'personalHeaders'> & { more?: Record<string, string> })[] = [
  { prefix: '/xrpc/', cors: true, body: flat },
  { prefix: '/v1/', cors: false, body: nested },
  { prefix: '/oauth/authorize/complete', cors: false, body: plain, pages: 'always' },
  { prefix: '/oauth/authorize/', cors: true, body: nested },
  { prefix: '/oauth/authorize', cors: false, body: plain, pages: 'always' },
  { prefix: '/oauth/', cors: true, body: oauth },
  { prefix: '/agent/claim', cors: false, body: plain, pages: 'always' },
  { prefix: '/agent/child', cors: true, body: nested },
  { prefix: '/agent/identity', cors: true, body: oauth },
  // RFC 8935, 2.3: the language of descriptions.
  { prefix: '/agent/event', cors: true, body: event, more: { 'Content-Language': 'en' } },
  { prefix: '/waitlist', cors: true, body: nested },
  { prefix: '/admin', cors: false, body: plain, pages: 'always' },
  { prefix: '/account', cors: false, body: plain, pages: 'always' },
  { prefix: '/metrics', cors: false, body: nested },
  { prefix: '/.well-known/', cors: true, body: flat },
  { prefix: '/tls-check', cors: true, body: flat },
  { prefix: '/', cors: true, body: plain, pages: 'for browsers' },
]

/** The first prefix that matches decides. */
const surfaces: readonly Surface[] = declared.map(({ more, ...surface }) => {
  const every = { ...everywhere, ...(surface.cors && crossOrigin), ...more }
  return { ...surface, headers: new Headers(every), personalHeaders: new Headers({ ...every, ...personal }) }
})

export const surfaceOf = (path: string): Surface =>
  surfaces.find((surface) => path.startsWith(surface.prefix)) ?? surfaces.at(-1)!
