/**
 * What differs between the parts of the address space: the dialect of errors, whether browsers of other origins may
 * call, and how much is told to them. Middleware errors take the shape of the path they hit.
 */
import { nestedCodes, type Refusal } from './errors.ts'
import { rateLimitHeaders } from './limiting.ts'

export interface Surface {
  prefix: string
  cors: boolean
  /** What every answer carries. Shared: never to be changed. */
  headers: Headers
  /** The same on an answer that depends on who asks. */
  personalHeaders: Headers
  body(refusal: Refusal): { contentType: string; text: string }
  /** Refusals are pages: whoever asks, or for browsers alone. */
  pages?: 'always' | 'for browsers'
}

export const JSON_TYPE = 'application/json; charset=utf-8'

const flat = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ error: refusal.name, message: refusal.message, ...details(refusal) }),
})

const nested = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({
    error: { code: refusal.options.code ?? nestedCodes[refusal.name] ?? refusal.name, message: refusal.message, ...details(refusal) },
  }),
})

const oauth = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ error: oauthCodes[refusal.name] ?? refusal.name, error_description: refusal.message }),
})

const event = (refusal: Refusal) => ({
  contentType: JSON_TYPE,
  text: JSON.stringify({ err: refusal.name, description: refusal.message }),
})

const plain = (refusal: Refusal) => ({ contentType: 'text/plain; charset=utf-8', text: `${refusal.message}\n` })

/** What refusals of the edge itself are called in the vocabulary of RFC 6749. */
const oauthCodes: Record<string, string> = {
  InvalidRequest: 'invalid_request',
  PayloadTooLarge: 'invalid_request',
  PayloadTooLargeError: 'invalid_request',
  SyntaxError: 'invalid_request',
  RateLimitExceeded: 'temporarily_unavailable',
  ServiceUnavailable: 'temporarily_unavailable',
  InternalServerError: 'server_error',
}

const details = (refusal: Refusal) => (refusal.options.details === undefined ? {} : { details: refusal.options.details })

const exposedHeaders = [
  'DPoP-Nonce',
  'WWW-Authenticate',
  'Atproto-Repo-Rev',
  'Atproto-Upstream-Lag',
  'Atproto-Content-Labelers',
  'Content-Disposition',
  'Content-Length',
  'ETag',
  ...rateLimitHeaders,
]

const crossOrigin = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': exposedHeaders.join(', ') }
const personal = { 'Cache-Control': 'private', Vary: 'Authorization' }

const declared: readonly Omit<Surface, 'headers' | 'personalHeaders'>[] = [
  { prefix: '/xrpc/', cors: true, body: flat },
  { prefix: '/v1/', cors: false, body: nested },
  { prefix: '/oauth/authorize/', cors: true, body: nested },
  { prefix: '/oauth/authorize', cors: false, body: plain, pages: 'always' },
  { prefix: '/oauth/', cors: true, body: oauth },
  { prefix: '/agent/child', cors: true, body: nested },
  { prefix: '/agent/identity', cors: true, body: oauth },
  { prefix: '/agent/event', cors: true, body: event },
  { prefix: '/waitlist', cors: true, body: nested },
  { prefix: '/account', cors: false, body: plain, pages: 'always' },
  { prefix: '/metrics', cors: false, body: nested },
  { prefix: '/.well-known/', cors: true, body: flat },
  { prefix: '/tls-check', cors: true, body: flat },
  { prefix: '/', cors: true, body: plain, pages: 'for browsers' },
]

/** The first prefix that fits decides. */
const surfaces: readonly Surface[] = declared.map((surface) => {
  const every = surface.cors ? crossOrigin : {}
  return { ...surface, headers: new Headers(every), personalHeaders: new Headers({ ...every, ...personal }) }
})

export const surfaceOf = (path: string): Surface => surfaces.find((surface) => path.startsWith(surface.prefix)) ?? surfaces.at(-1)!
