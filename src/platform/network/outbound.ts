/**
 * Outgoing HTTP requests. If a stranger chose the target (handles, did:web, client metadata, key sets, lexicons,
 * proxied services), a request reaches public hosts only. Requests to services that the operator configured reach any
 * host.
 *
 * A request to a stranger's target must use https. It resolves the host itself, refuses it unless *all* of its
 * addresses are public unicast addresses, and connects to an address that it has checked. The name is kept for `Host`
 * and the certificate. So a name that changes its address between check and use (DNS rebinding) gains nothing.
 *
 * Redirects are followed only if the caller asks for it, and each hop is checked like the first. Time, size and the
 * number of requests at a time (`outbound-places.ts`) are bounded. Bodies are decoded here piece by piece. The runtime
 * would decode everything that has arrived at once, and a kilobyte may decompress to gigabytes.
 *
 * Development and tests also permit loopback addresses, and plain http to them, and nothing else.
 */
import { codingsIn, decoded, isKnownCoding, MAX_CODINGS, Miscoded } from '../../base/content-codings.ts'
import { resumed } from '../running/request-scope.ts'
import { isIpAddress, isLoopbackAddress, isPublicAddress } from '../../protocol/ip-address.ts'
import { certificateWords, type ClockComparison } from './clock-comparison.ts'
import { OutboundPlaces, placesFull } from './outbound-places.ts'
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
  /** By names in lower case. */
  headers?: Record<string, string>
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
  /** Keep the body and its `content-encoding` as the server sent them. A short body is then in `arrivedBody`. */
  raw?: boolean
  /** Look the host up again instead of using a cached address, because the response decides something. */
  fresh?: boolean
  /** Certificate authorities to trust instead of those of the client, as PEM. */
  certificateAuthorities?: string
  /** Called before a piece of a body that streams is passed on. The body fails with the error that it throws. */
  admit?: () => Promise<void>
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

/** Bodies that were short enough to be read before their responses were returned. */
const arrivedBodies = new WeakMap<Response, ArrayBuffer>()

/** Returns the body of a response to a `raw` request if it has been read already; else null. */
export const arrivedBody = (response: Response): ArrayBuffer | null => arrivedBodies.get(response) ?? null

/** Discard the body of a response, if it has not been read. */
export async function discardBody(response: Response): Promise<void> {
  if (arrivedBody(response) === null) await response.body?.cancel()
}

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

/** Most concurrent requests, by reach. With those to a bucket, no more than the runtime makes at a time. */
const maxAtOnce = { public: 64, loopback: 64, anywhere: 128 } as const satisfies Record<Reach, number>

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
const bodylessStatuses = new Set([204, 205, 304])
/** Statuses of final responses. RFC 9110, 15. */
const statuses = { first: 200, last: 599 }
const unsentCodes = new Set(['ConnectionRefused', 'FailedToOpenSocket', 'ECONNREFUSED'])

export function createOutbound(options: OutboundOptions): Outbound {
  const places = new OutboundPlaces(maxAtOnce[options.reach])
  return {
    async fetch(url, given) {
      const request = { ...defaults, ...given }
      request.signal?.throwIfAborted()
      const life = new Life(request.signal, places)
      try {
        life.atMost(request.headersTimeoutMillis)
        const response = await follow(options, url, request, life)
        const bounded = await boundedResponse(response, request, life)
        resumed()
        return bounded
      } catch (error) {
        life.end()
        throw named(error, life.signal)
      }
    },
  }
}

/**
 * A request under way. It is aborted with the signal of its caller, if it takes too long, or if others need its place.
 * It gives its place back as soon as it is over.
 */
class Life implements EventListenerObject {
  readonly #abort = new AbortController()
  readonly signal = this.#abort.signal
  #timer: ReturnType<typeof setTimeout> | undefined
  #leave: (() => void) | null = null
  /** Whether the request had to wait for its place, which has left the other side less than its full time. */
  #hasWaited = false

  constructor(
    readonly caller: AbortSignal | undefined,
    readonly places: OutboundPlaces,
  ) {
    caller?.addEventListener('abort', this)
  }

  handleEvent(): void {
    this.#stop(this.caller!.reason)
  }

  #stop(reason: unknown): void {
    this.#abort.abort(reason)
    this.end()
  }

  /**
   * Take a place, unless there is one already. Returns a promise if it has to wait. Throws as `OutboundPlaces.enter`
   * does.
   */
  enter(): void | Promise<void> {
    if (this.#leave !== null) return
    const cut = () => this.#stop(placesFull())
    const leave = this.places.enter(this.signal, cut, this.caller === undefined)
    if (typeof leave === 'function') this.#leave = leave
    else return this.#wait(leave)
  }

  async #wait(place: Promise<() => void>): Promise<void> {
    this.#hasWaited = true
    this.#leave = await place
    if (this.signal.aborted) this.end()
  }

  /** Starts the timeout again, from now. */
  atMost(millis: number): void {
    clearTimeout(this.#timer)
    this.#hasWaited = false
    this.#timer = setTimeout(() => {
      this.#stop(this.#hasWaited ? placesFull() : new OutboundError('timeout', `no response within ${millis} ms`))
    }, millis)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.caller?.removeEventListener('abort', this)
    this.#leave?.()
    this.#leave = null
  }
}

type BoundedRequest = OutboundRequest & typeof defaults

function follow(options: OutboundOptions, start: string | URL, request: BoundedRequest, life: Life): Promise<Response> {
  const target = parseTarget(start)
  const followsRedirects = request.maxRedirects > 0 && (request.method === 'GET' || request.method === 'HEAD')
  return followsRedirects ? redirected(options, target, request, life) : connect(options, target, request, life)
}

async function redirected(
  options: OutboundOptions,
  start: URL,
  request: BoundedRequest,
  life: Life,
): Promise<Response> {
  let target = start
  for (let hops = 0; ; hops++) {
    const response = await connect(options, target, request, life)
    const location = response.headers.get('location')
    if (!redirectStatuses.has(response.status) || location === null) return response
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

async function connect(options: OutboundOptions, target: URL, request: BoundedRequest, life: Life): Promise<Response> {
  const { signal } = life
  const { hostname } = target
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  const isAddress = isIpAddress(host)
  const known = isAddress ? [host] : request.fresh ? null : options.resolver.known?.(host)
  const addresses = known ?? (await resolve(options.resolver, host, request.fresh, signal))
  requirePermitted(options, target, addresses, isAddress)
  // Not before the look-up: while the servers of a name are silent, the request holds no place.
  const waits = life.enter()
  if (waits) await waits
  signal.throwIfAborted()
  const last = Math.min(addresses.length, MAX_ADDRESSES_TRIED) - 1
  for (const [index, address] of addresses.entries()) {
    try {
      const response = await send(options, target, address, request, signal)
      options.comparison?.answered(target.host, response.headers)
      return response
    } catch (error) {
      options.comparison?.failed(target.host, error)
      const retriable =
        unsentCodes.has((error as NodeJS.ErrnoException).code ?? '') && !(request.body instanceof ReadableStream)
      if (!retriable || index === last) throw error
    }
  }
  throw new OutboundError('unresolved', `${target.hostname} has no address`)
}

/** Throws `OutboundError` if a target at these addresses is not permitted. `isAddress`: its host is an address. */
function requirePermitted(
  { reach }: OutboundOptions,
  { protocol, hostname }: URL,
  addresses: readonly string[],
  isAddress: boolean,
): void {
  if (reach === 'anywhere' || (reach === 'loopback' && addresses.every(isLoopbackAddress))) return
  if (protocol !== 'https:') throw new OutboundError('refused', 'not an https URL')
  if (isAddress) throw new OutboundError('refused', 'a URL without a host name')
  if (!addresses.every(isPublicAddress)) throw new OutboundError('refused', `${hostname} is not a public host`)
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

function send(
  options: OutboundOptions,
  target: URL,
  address: string,
  request: BoundedRequest,
  signal: AbortSignal,
): Promise<Response> {
  const port = target.port === '' && target.protocol === 'https:' ? (options.httpsPort ?? '') : target.port
  const host = address.includes(':') ? `[${address}]` : address
  const pinned = `${target.protocol}//${host}${port === '' ? '' : `:${port}`}${target.pathname}${target.search}`
  const headers = {
    'user-agent': 'holdfast',
    ...(!request.raw && { 'accept-encoding': 'identity' }),
    ...request.headers,
    host: target.host,
  }
  return fetch(pinned, {
    method: request.method,
    headers,
    body: request.body,
    redirect: 'manual',
    decompress: false,
    signal,
    // Connections are reused per address *and* server name, so a certificate is always checked against its own name.
    ...(target.protocol === 'https:' && {
      tls: { serverName: target.hostname, ca: request.certificateAuthorities ?? options.certificateAuthorities },
    }),
  })
}

/** Returns the response with a body that enforces its bounds, and ends its life once no more bytes will come. */
async function boundedResponse(response: Response, request: BoundedRequest, life: Life): Promise<Response> {
  const { status } = response
  // The runtime accepts a response with any three digits, but constructs none with most of them.
  if (status < statuses.first || status > statuses.last) {
    void response.body?.cancel()
    throw new OutboundError('unreachable', `the response has the status ${status}`)
  }
  const codings = request.raw ? [] : codingsIn(response.headers.get('content-encoding'))
  // The length that a response in chunks states says nothing about its body, which may be endless. RFC 9112, 6.3.
  const isMisstated = response.headers.has('transfer-encoding') && response.headers.has('content-length')
  const headers = codings.length > 0 || isMisstated ? new Headers(response.headers) : response.headers
  if (isMisstated) headers.delete('content-length')
  if (codings.length > 0) {
    if (codings.length > MAX_CODINGS || !codings.every(isKnownCoding)) {
      void response.body?.cancel()
      throw new OutboundError('unreachable', 'the response has an unknown content-encoding')
    }
    headers.delete('content-encoding')
    headers.delete('content-length')
  }
  const announced = headers.get('content-length')
  const announcedBytes = announced === null ? null : Number(announced)
  const init = { status, statusText: response.statusText, headers }
  const isBodyless = announcedBytes === 0 || request.method === 'HEAD' || bodylessStatuses.has(status)
  const isShort = announcedBytes !== null && announcedBytes <= Math.min(MAX_BUFFERED_BYTES, request.maxBytes)
  // `response.body` comes last: reading it makes a stream of a body that could be read at once.
  if (isBodyless || (!isShort && !response.body)) {
    life.end()
    return new Response(null, init)
  }
  const arriving = isShort ? response.arrayBuffer() : null
  // A short body usually comes with its headers, and a timer takes longer than waiting for it.
  if (arriving === null || Bun.peek.status(arriving) === 'pending') life.atMost(request.bodyTimeoutMillis)
  if (arriving !== null) {
    const bytes = await arriving
    life.end()
    if (!request.raw) return new Response(bytes, init)
    arrivedBodies.set(response, bytes)
    return response
  }
  if (announcedBytes !== null && announcedBytes > request.maxBytes) {
    void response.body!.cancel()
    throw tooLarge(request)
  }
  const pieces = response.body!.getReader()
  return new Response(boundedBody(codings.length > 0 ? decodedPieces(pieces, codings) : pieces, request, life), init)
}

/** Reads a body piece by piece. */
interface Pieces {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(reason?: unknown): Promise<void>
}

/** Returns the decoded pieces of a body. */
function decodedPieces(pieces: Pieces, codings: readonly string[]): Pieces {
  const coded = async function* () {
    for (let piece = await pieces.read(); piece.value !== undefined; piece = await pieces.read()) yield piece.value
  }
  const plain = decoded(coded(), codings)
  return {
    async read() {
      const { done = false, value } = await plain.next()
      return { done, value: value ?? undefined }
    },
    async cancel(reason) {
      // Cancel the source first: `plain` may be waiting for it.
      await pieces.cancel(reason)
      await plain.return(undefined)
    },
  }
}

const tooLarge = ({ maxBytes }: BoundedRequest) =>
  new OutboundError('too-large', `a body of more than ${maxBytes} bytes`)

function boundedBody(reader: Pieces, request: BoundedRequest, life: Life): ReadableStream<Uint8Array> {
  let received = 0
  const fail = (controller: ReadableStreamDefaultController, error: unknown) => {
    life.end()
    void reader.cancel().catch(() => undefined)
    controller.error(error)
  }
  return new ReadableStream({
    async pull(controller) {
      let next: Awaited<ReturnType<Pieces['read']>>
      try {
        next = await reader.read()
        resumed()
        received += next.value?.byteLength ?? 0
        if (received > request.maxBytes) throw tooLarge(request)
      } catch (error) {
        return fail(controller, named(error, life.signal))
      }
      try {
        await request.admit?.()
      } catch (error) {
        return fail(controller, error)
      }
      if (next.value) controller.enqueue(next.value)
      if (!next.done) return
      controller.close()
      life.end()
    },
    cancel(reason) {
      life.end()
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
  if (error instanceof Miscoded) return new OutboundError('unreachable', error.message, { cause: error })
  const message = certificateWords(error) ?? 'the host could not be reached'
  return new OutboundError('unreachable', message, { cause: withoutUrl(error) })
}

/** The runtime quotes the URL in some errors. They are logged, and the URL of a webhook is a secret. */
function withoutUrl(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { message, code } = error as NodeJS.ErrnoException
  const end = message.indexOf(' fetching "')
  return end < 0 ? error : Object.assign(new TypeError(message.slice(0, end)), { code })
}
