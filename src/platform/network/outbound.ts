/**
 * Outgoing HTTP requests. If a stranger chose the target (handles, did:web, client metadata, key sets, lexicons,
 * proxied services), a request reaches public hosts only. Requests to services that the operator configured reach any
 * host.
 *
 * A request to a stranger's target must use https. It resolves the host itself, refuses it unless *all* of its
 * addresses are public unicast addresses, and connects to an address that it has checked. The name is kept for `Host`
 * and the certificate. So a name that changes its address between check and use (DNS rebinding) gains nothing.
 *
 * Redirects are followed only if the caller asks for it, and each hop is checked like the first. Time and size are
 * bounded.
 *
 * Development and tests also permit loopback addresses, and plain http to them, and nothing else.
 */
import { resumed } from '../running/request-scope.ts'
import { isIpAddress, isLoopbackAddress, isPublicAddress } from '../../protocol/ip-address.ts'
import { certificateWords, type ClockComparison } from './clock-comparison.ts'
import { LookupsFull, type Resolver } from './resolver.ts'

export type OutboundFault =
  | 'refused' // the target is not permitted
  | 'unresolved' // the name has no address
  | 'unreachable' // no connection, an invalid certificate, a malformed response
  | 'timeout'
  | 'too-large'
  | 'redirects' // more than `maxRedirects`

export class OutboundError extends Error {
  constructor(
    readonly fault: OutboundFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

export interface OutboundRequest {
  method?: string
  headers?: Headers | Record<string, string>
  body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  /** Aborts the request, and the body if it has begun. */
  signal?: AbortSignal
  /** From the call to the response headers, name resolution and redirects included. */
  headersTimeoutMillis?: number
  /** From the response headers to the last byte of the body. */
  bodyTimeoutMillis?: number
  /** Longest body, counted after decompression unless `raw`. */
  maxBytes?: number
  /** Redirects to follow, for GET and HEAD only. Otherwise a redirect is returned like any other response. */
  maxRedirects?: number
  /** Keep the body and its `content-encoding` as the server sent them. */
  raw?: boolean
  /** Look the host up again instead of using a cached address, because the response decides something. */
  fresh?: boolean
  /** Certificate authorities to trust instead of those of the client, as PEM. */
  certificateAuthorities?: string
}

export interface Outbound {
  /**
   * Returns a response of any status. Its body fails if it exceeds its bounds. The URL must be absolute. Throws
   * `OutboundError`, `LookupsFull`, or the reason of `signal`.
   */
  fetch(url: string | URL, request?: OutboundRequest): Promise<Response>
}

/**
 * `public`: https to public unicast addresses. `loopback`: the same, and http(s) to loopback. `anywhere`: http(s) to
 * any address, for targets that the operator named.
 */
export type Reach = 'public' | 'loopback' | 'anywhere'

/** Bodies that had arrived when their responses were returned, and were short enough to be read at once. */
const arrivedBodies = new WeakMap<Response, ArrayBuffer>()

/** Returns the body of a response of `fetch` if all of it has arrived, which is cheaper than its stream; else null. */
export const arrivedBody = (response: Response): ArrayBuffer | null => arrivedBodies.get(response) ?? null

export interface OutboundOptions {
  resolver: Resolver
  reach: Reach
  /** Port of https if the URL names none. */
  httpsPort?: number
  /** Certificate authorities to trust instead of the system's, as PEM. */
  certificateAuthorities?: string
  /** Learns the time from responses. */
  comparison?: ClockComparison
}

const defaults = {
  method: 'GET',
  headersTimeoutMillis: 10_000,
  bodyTimeoutMillis: 30_000,
  maxBytes: 10 * 1024 * 1024,
  maxRedirects: 0,
  fresh: false,
}
/** Addresses of one host to try in turn, as long as nothing has been sent. */
const MAX_ADDRESSES_TRIED = 3
const MAX_URL_CHARS = 8192
/** A body whose announced length is at most this is read at once, which is faster than streaming it. */
const MAX_BUFFERED_BYTES = 64 * 1024
const redirectStatuses = new Set([301, 302, 303, 307, 308])
const bodylessStatuses = new Set([101, 204, 205, 304])
const unsentCodes = new Set(['ConnectionRefused', 'FailedToOpenSocket', 'ECONNREFUSED'])

export function createOutbound(options: OutboundOptions): Outbound {
  return {
    async fetch(url, given = {}) {
      const request = { ...defaults, ...given }
      const abort = new AbortController()
      const forward = () => abort.abort(request.signal?.reason)
      request.signal?.throwIfAborted()
      request.signal?.addEventListener('abort', forward, { once: true })
      const timer = new Deadline(abort)
      const finish = () => {
        timer.stop()
        request.signal?.removeEventListener('abort', forward)
      }
      try {
        timer.start(request.headersTimeoutMillis)
        const response = await follow(options, url, request, abort.signal)
        timer.start(request.bodyTimeoutMillis)
        const bounded = await boundedResponse(response, request, abort.signal, finish)
        resumed()
        return bounded
      } catch (error) {
        finish()
        throw named(error, abort.signal)
      }
    },
  }
}

class Deadline {
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly abort: AbortController) {}

  start(afterMillis: number) {
    this.stop()
    this.#timer = setTimeout(
      () => this.abort.abort(new OutboundError('timeout', `no response within ${afterMillis} ms`)),
      afterMillis,
    )
  }

  stop() {
    clearTimeout(this.#timer)
  }
}

type BoundedRequest = OutboundRequest & typeof defaults

async function follow(
  options: OutboundOptions,
  start: string | URL,
  request: BoundedRequest,
  signal: AbortSignal,
): Promise<Response> {
  const followsRedirects = request.maxRedirects > 0 && (request.method === 'GET' || request.method === 'HEAD')
  let target = parseTarget(start)
  for (let hops = 0; ; hops++) {
    const response = await connect(options, target, request, signal)
    const location = response.headers.get('location')
    if (!followsRedirects || !redirectStatuses.has(response.status) || location === null) return response
    await response.body?.cancel()
    if (hops === request.maxRedirects)
      throw new OutboundError('redirects', `more than ${request.maxRedirects} redirects`)
    target = parseTarget(location, target)
  }
}

function parseTarget(text: string | URL, base?: URL): URL {
  const target = String(text).length <= MAX_URL_CHARS ? URL.parse(String(text), base?.href) : null
  if (target?.protocol !== 'https:' && target?.protocol !== 'http:')
    throw new OutboundError('refused', 'not an http or https URL')
  if (target.username || target.password) throw new OutboundError('refused', 'a URL with credentials')
  return target
}

async function connect(
  options: OutboundOptions,
  target: URL,
  request: BoundedRequest,
  signal: AbortSignal,
): Promise<Response> {
  const addresses = await checkedAddresses(options, target, request.fresh, signal)
  for (const [index, address] of addresses.entries()) {
    try {
      const response = await send(options, target, address, request, signal)
      options.comparison?.answered(target.host, response.headers)
      return response
    } catch (error) {
      options.comparison?.failed(target.host, error)
      const retriable =
        unsentCodes.has((error as NodeJS.ErrnoException).code ?? '') && !(request.body instanceof ReadableStream)
      if (!retriable || index === addresses.length - 1) throw error
    }
  }
  throw new OutboundError('unresolved', `${target.hostname} has no address`)
}

/** Returns the addresses to try, all of them permitted. Throws `OutboundError` if the target is not permitted. */
async function checkedAddresses(
  options: OutboundOptions,
  target: URL,
  fresh: boolean,
  signal: AbortSignal,
): Promise<string[]> {
  const host = target.hostname.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIpAddress(host) ? [host] : await resolve(options.resolver, host, fresh, signal)
  const isFree = options.reach === 'anywhere' || (options.reach === 'loopback' && addresses.every(isLoopbackAddress))
  if (isFree) return addresses.slice(0, MAX_ADDRESSES_TRIED)
  if (target.protocol !== 'https:') throw new OutboundError('refused', 'not an https URL')
  if (isIpAddress(host)) throw new OutboundError('refused', 'a URL without a host name')
  if (!addresses.every(isPublicAddress)) throw new OutboundError('refused', `${host} is not a public host`)
  return addresses.slice(0, MAX_ADDRESSES_TRIED)
}

async function resolve(resolver: Resolver, host: string, fresh: boolean, signal: AbortSignal): Promise<string[]> {
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
  const addresses = await Promise.race([
    resolver.addresses(host, { fresh }).catch((cause: unknown) => {
      if (cause instanceof LookupsFull) throw cause
      throw new OutboundError('unresolved', `${host} has no address`, { cause })
    }),
    aborted,
  ])
  if (addresses.length === 0) throw new OutboundError('unresolved', `${host} has no address`)
  return addresses
}

async function send(
  options: OutboundOptions,
  target: URL,
  address: string,
  request: BoundedRequest,
  signal: AbortSignal,
): Promise<Response> {
  const port = target.port === '' && target.protocol === 'https:' ? (options.httpsPort ?? '') : target.port
  const host = address.includes(':') ? `[${address}]` : address
  const pinned = `${target.protocol}//${host}${port === '' ? '' : `:${port}`}${target.pathname}${target.search}`
  const headers = new Headers(request.headers)
  headers.set('host', target.host)
  if (!headers.has('user-agent')) headers.set('user-agent', 'holdfast')
  return fetch(pinned, {
    method: request.method,
    headers,
    body: request.body,
    redirect: 'manual',
    decompress: !request.raw,
    signal,
    // Connections are reused per address *and* server name, so a certificate is always checked against its own name.
    ...(target.protocol === 'https:' && {
      tls: { serverName: target.hostname, ca: request.certificateAuthorities ?? options.certificateAuthorities },
    }),
  })
}

/** Returns the response with a body that enforces its bounds. Calls `finish` once no more bytes will come. */
async function boundedResponse(
  response: Response,
  request: BoundedRequest,
  signal: AbortSignal,
  finish: () => void,
): Promise<Response> {
  const isDecoded = !request.raw && response.headers.has('content-encoding')
  const headers = isDecoded ? new Headers(response.headers) : response.headers
  if (isDecoded) {
    headers.delete('content-encoding')
    headers.delete('content-length')
  }
  const announced = headers.get('content-length')
  const announcedBytes = announced === null ? null : Number(announced)
  const init = { status: response.status, statusText: response.statusText, headers }
  if (!response.body || request.method === 'HEAD' || bodylessStatuses.has(response.status)) {
    finish()
    return new Response(null, init)
  }
  if (announcedBytes !== null && announcedBytes > request.maxBytes) {
    void response.body.cancel()
    throw tooLarge(request)
  }
  if (announcedBytes === null || announcedBytes > MAX_BUFFERED_BYTES)
    return new Response(boundedBody(response.body, request, signal, finish), init)
  const bytes = await response.arrayBuffer()
  finish()
  const bounded = new Response(bytes, init)
  arrivedBodies.set(bounded, bytes)
  return bounded
}

const tooLarge = ({ maxBytes }: BoundedRequest) =>
  new OutboundError('too-large', `a body of more than ${maxBytes} bytes`)

function boundedBody(
  source: ReadableStream<Uint8Array>,
  request: BoundedRequest,
  signal: AbortSignal,
  finish: () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let received = 0
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        resumed()
        received += value?.byteLength ?? 0
        if (received > request.maxBytes) throw tooLarge(request)
        if (value) controller.enqueue(value)
        if (!done) return
        controller.close()
        finish()
      } catch (error) {
        finish()
        void reader.cancel().catch(() => undefined)
        controller.error(named(error, signal))
      }
    },
    cancel(reason) {
      finish()
      return reader.cancel(reason)
    },
  })
}

/**
 * Returns the error to report: our own fault or the caller's abort takes precedence over the network error it caused.
 */
function named(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof OutboundError || error instanceof LookupsFull) return error
  return new OutboundError('unreachable', certificateWords(error) ?? 'the host could not be reached', { cause: error })
}
