/**
 * The edge: from declarations to a listening server. The only module that knows Elysia.
 *
 * Elysia never parses a body for us and handlers never see it: every route is `({ request }) => …` with
 * `parse: 'none'`, answering a `Response`. Elysia guesses from a handler's source text what to parse, and a minifier
 * changes that text; literal destructuring is what survives.
 */
import { Elysia } from 'elysia'
import type { ServerWebSocket } from 'bun'
import type { Context } from '../platform/context.ts'
import type { LimitName } from '../platform/running/limits.ts'
import { decodeParams, methods, validateInput, validateOutput, type Method, type MethodName } from '../protocol/lexicons/lexicons.ts'
import { inRequest } from '../platform/running/request-scope.ts'
import { listenFault } from '../platform/files/system-faults.ts'
import { parseNsid } from '../protocol/identifiers.ts'
import { announcedBytes, DEFAULT_JSON_BYTES, type RequestBody } from './body.ts'
import { anyone, JsonText, type Common, type Endpoint, type Socket, type SocketHandler } from './endpoint.ts'
import { invalidRequest, methodNotImplemented, Refusal } from './errors.ts'
import { RequestExchange, type RequestServer } from './exchange.ts'
import { parseHost } from './host.ts'
import { chargeAddress } from './limiting.ts'
import { queryOf } from './query.ts'
import { failure, preflight, success } from './reply.ts'

/** Bound of what the listener lets through at all; each route has its own, lower one. */
const MAX_REQUEST_BYTES = 16 * 1024 ** 3
/** A connection on which nothing moves for so long is closed; `long` endpoints are exempt. */
const IDLE_TIMEOUT_SECS = 90
/** Nobody has anything to say to us. A longer message would be kept until it is complete. */
const SOCKET_MESSAGE_BYTES = 1024
/** What a client may leave unread before a message to it is dropped. `Socket.send` tells. */
const SOCKET_BACKPRESSURE_BYTES = 16 * 1024 ** 2
/** The server pings a silent WebSocket client, and drops it after this. */
const SOCKET_IDLE_SECS = 30

const XRPC_PREFIX = '/xrpc/'

/** The endpoint that a request reached, as far as counting goes. */
interface Found {
  /** What metrics and traces call it. */
  route: string
  /** Charged to the client's address. */
  limits: readonly LimitName[]
}

const EVERY_REQUEST: readonly LimitName[] = ['globalIp']
/** A path that is no endpoint of ours: a name of somebody else's choice is no label. */
const unmatched: Found = { route: 'unmatched', limits: EVERY_REQUEST }

export interface Edge {
  /** `http://<address>:<port>` of the listener. */
  url: string
  port: number
  /** Refuse new connections, let running requests end (at most `graceMillis`), then close what is left. */
  stop(graceMillis: number): Promise<void>
}

type XrpcEndpoint = Extract<Endpoint, { kind: 'query' | 'procedure' | 'subscription' }>
type FallbackEndpoint = Extract<Endpoint, { kind: 'fallback' }>
type RouteEndpoint = Extract<Endpoint, { kind: 'route' }>

export function serve(ctx: Context, endpoints: readonly Endpoint[]): Edge {
  const table = xrpcTable(endpoints)
  const catchAll = endpoints.find((endpoint) => endpoint.kind === 'fallback') ?? null
  const hosts = new Hosts(ctx)
  const sockets = new Set<ServerWebSocket<unknown>>()
  let running = 0
  let stopping = false

  const logsRequests = ctx.log.writes('debug')

  /** Everything a request goes through, whichever route it takes. `work` gives what the handler answers. */
  const answer = (exchange: RequestExchange, found: Found, work: () => unknown) => inRequest(exchange, answerIn, exchange, found, work)

  const answerIn = async (exchange: RequestExchange, { route, limits }: Found, work: () => unknown) => {
    const startedAt = logsRequests ? performance.now() : 0
    const { request, rawPath } = exchange
    const site = hosts.siteAt(request.headers.get('host'))
    if (stopping) return new Response('shutting down\n', { status: 503, headers: { Connection: 'close' } })
    // The runtime builds the URL with the Host, and the path is taken from the URL: with a bad one it may be any path.
    if (site === null) return new Response('The Host header is missing or names no host\n', { status: 400 })
    if (request.method === 'OPTIONS') return preflight(exchange.surface, request)
    const span = ctx.tracing?.request({ method: request.method, route, target: rawPath, traceparent: request.headers.get('traceparent') })
    let response: Response | null = null
    running++
    try {
      chargeAddress(exchange, limits)
      if (site === 'handle' && !rawPath.startsWith('/.well-known/')) throw new Refusal(404, 'NotFound', 'Not Found')
      return (response = success(exchange, await work()))
    } catch (error) {
      return (response = failure(exchange, error))
    } finally {
      running--
      const status = response?.status ?? 500
      ctx.metrics.request(route, status)
      span?.end(status)
      if (logsRequests) ctx.log.debug('request answered', { method: request.method, route, status, durationMillis: Math.round((performance.now() - startedAt) * 1000) / 1000 })
    }
  }

  // A property of Elysia's context would cost every request a getter.
  const exchangeOf = (request: Request, path: string, nsid: string | null, spec: Common<unknown> | null, params: Record<string, string> = {}) =>
    new RequestExchange(ctx, request, app.server as unknown as RequestServer, path, nsid, spec, params)

  const xrpc = (request: Request) => {
    const path = pathOf(request.url)
    const nsid = path.slice(XRPC_PREFIX.length).replace(/\/$/, '')
    const entry = table.get(nsid)
    const exchange = exchangeOf(request, path, nsid, entry ? entry.spec : (catchAll?.spec ?? null))
    const opensSocket = entry?.endpoint.kind === 'subscription' && request.headers.get('upgrade')?.toLowerCase() === 'websocket'
    // The event stream is exempt; a plain request for it is not.
    return answer(exchange, opensSocket ? { route: nsid, limits: [] } : (entry ?? unmatched), () => {
      if (entry?.endpoint.kind === 'query') return runQuery(exchange, entry as Entry<'query'>)
      if (entry?.endpoint.kind === 'procedure') return runProcedure(exchange, entry as Entry<'procedure'>)
      if (opensSocket) return openSocket(exchange, entry.endpoint as Entry<'subscription'>['endpoint'], sockets)
      if (parseNsid(nsid) === null) throw invalidRequest('invalid xrpc path')
      if (!['GET', 'HEAD', 'POST'].includes(request.method)) throw invalidRequest('XRPC requests only supports GET and POST')
      if (!catchAll) throw methodNotImplemented()
      return runFallback(exchange, nsid, catchAll)
    })
  }

  const nowhere = (request: Request) =>
    answer(exchangeOf(request, pathOf(request.url), null, null), unmatched, () => {
      throw new Refusal(404, 'NotFound', 'Not Found')
    })

  const app = new Elysia({
    aot: true,
    // Look for the path behind `http://`, and not some characters later: hosts may be short.
    handler: { standardHostname: false },
    serve: {
      hostname: ctx.config.bindAddress,
      port: ctx.config.port,
      reusePort: false,
      development: false,
      maxRequestBodySize: MAX_REQUEST_BYTES,
      idleTimeout: IDLE_TIMEOUT_SECS,
    },
    websocket: {
      perMessageDeflate: false,
      maxPayloadLength: SOCKET_MESSAGE_BYTES,
      backpressureLimit: SOCKET_BACKPRESSURE_BYTES,
      closeOnBackpressureLimit: false,
      idleTimeout: SOCKET_IDLE_SECS,
      sendPings: true,
    },
  })
  app.all('/xrpc/*', ({ request }) => xrpc(request), { parse: 'none' })
  for (const endpoint of endpoints) {
    if (endpoint.kind !== 'route') continue
    const found = { route: endpoint.path, limits: limitsOf(endpoint.spec) }
    const run = (request: Request, params: Record<string, string>) => {
      const exchange = exchangeOf(request, pathOf(request.url), null, endpoint.spec, params)
      return answer(exchange, found, () => runRoute(exchange, endpoint))
    }
    for (const method of endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method])
      app.route(method, endpoint.path, ({ request, params }) => run(request, params as Record<string, string>), { parse: 'none', config: {} } as never)
  }
  app.all('/*', ({ request }) => nowhere(request), { parse: 'none' })
  try {
    app.listen({})
  } catch (error) {
    throw listenFault(error, ctx.config)
  }

  const server = app.server!
  return {
    url: `http://${server.hostname}:${server.port}`,
    port: server.port!,
    async stop(graceMillis) {
      stopping = true
      ctx.signals.stopping.notify()
      const closed = server.stop()
      for (const socket of sockets) socket.close(1001, 'server is going down')
      const deadline = performance.now() + graceMillis
      while (running > 0 && performance.now() < deadline) await Bun.sleep(5)
      await server.stop(true)
      await closed
    },
  }
}

interface Entry<Kind extends XrpcEndpoint['kind'] = XrpcEndpoint['kind']> extends Found {
  endpoint: Extract<XrpcEndpoint, { kind: Kind }>
  method: Method
  spec: Common<unknown> | null
}

function xrpcTable(endpoints: readonly Endpoint[]): Map<string, Entry> {
  const table = new Map<string, Entry>()
  for (const endpoint of endpoints) {
    if (endpoint.kind === 'route' || endpoint.kind === 'fallback') continue
    if (table.has(endpoint.nsid)) throw new Error(`${endpoint.nsid} is declared twice`)
    const method = methods().get(endpoint.nsid as MethodName)
    if (!method || method.kind !== endpoint.kind) throw new Error(`${endpoint.nsid} is no ${endpoint.kind} of its lexicon`)
    const spec = endpoint.kind === 'subscription' ? null : endpoint.spec
    table.set(endpoint.nsid, { route: endpoint.nsid, limits: limitsOf(spec), endpoint, method, spec })
  }
  return table
}

function limitsOf(spec: Common<unknown> | null): readonly LimitName[] {
  const { limit = [], unlimited = false } = spec ?? {}
  const own = typeof limit === 'string' ? [limit] : limit
  return unlimited ? own : [...own, ...EVERY_REQUEST]
}

async function runQuery(exchange: RequestExchange, { endpoint, method }: Entry<'query'>): Promise<unknown> {
  const { request } = exchange
  if (request.method === 'POST') throw invalidRequest('Incorrect HTTP method (POST) expected GET')
  if (request.method !== 'GET' && request.method !== 'HEAD') throw invalidRequest('XRPC requests only supports GET and POST')
  exchange.params = paramsOf(exchange, method.nsid)
  exchange.caller = await authenticate(exchange, endpoint.spec)
  // The runtime does not hand over what a GET carries, so its announcement has to do.
  if ((announcedBytes(request) ?? 0) > 0) throw unexpectedBody()
  return checked(exchange, method, await endpoint.handler(exchange))
}

async function runProcedure(exchange: RequestExchange, { endpoint, method }: Entry<'procedure'>): Promise<unknown> {
  const { request } = exchange
  if (request.method === 'GET' || request.method === 'HEAD') throw invalidRequest('Incorrect HTTP method (GET) expected POST')
  if (request.method !== 'POST') throw invalidRequest('XRPC requests only supports GET and POST')
  exchange.params = paramsOf(exchange, method.nsid)
  exchange.caller = await authenticate(exchange, endpoint.spec)
  exchange.input = await inputOf(exchange.body, method, endpoint.spec.maxBytes ?? DEFAULT_JSON_BYTES)
  return checked(exchange, method, await endpoint.handler(exchange))
}

async function runRoute(exchange: RequestExchange, { spec, handler }: RouteEndpoint): Promise<unknown> {
  exchange.caller = await authenticate(exchange, spec)
  return handler(exchange)
}

async function runFallback(exchange: RequestExchange, nsid: string, { spec, handler }: FallbackEndpoint): Promise<unknown> {
  exchange.caller = await authenticate(exchange, spec)
  return handler(Object.assign(exchange, { nsid }))
}

function paramsOf({ request: { url } }: RequestExchange, nsid: MethodName): unknown {
  const outcome = decodeParams(nsid, queryOf(url))
  if (!outcome.ok) throw invalidRequest(outcome.message)
  return outcome.value
}

/** A promise of the caller, where the guard has to wait for something. */
function authenticate(exchange: RequestExchange, { auth = anyone, long }: Common<unknown>): unknown {
  if (long) exchange.server.timeout(exchange.request, 0)
  return auth.check(exchange)
}

async function inputOf(body: RequestBody, method: Method, maxBytes: number): Promise<unknown> {
  if (method.inputEncoding === null) {
    if (body.isAnnounced && (await body.bytes(DEFAULT_JSON_BYTES)).byteLength > 0) throw unexpectedBody()
    return null
  }
  if (!body.isAnnounced) throw invalidRequest('A request body is expected but none was provided')
  const { contentType } = body
  if (contentType === null) throw invalidRequest('Request encoding (Content-Type) required but not provided')
  if (method.inputEncoding !== '*/*' && contentType !== method.inputEncoding) throw invalidRequest(`Wrong request encoding (Content-Type): ${contentType}`)
  if (method.inputEncoding !== 'application/json') return body
  const json = await body.json(maxBytes)
  // The reference reads nothing but objects and lists as JSON, and calls the rest by the name of its parser's error.
  if (json === null || (json !== undefined && typeof json !== 'object')) throw new Refusal(400, 'SyntaxError', 'JSON Parse error: Expected an object')
  const outcome = validateInput(method.nsid, json ?? {})
  if (!outcome.ok) throw invalidRequest(outcome.message)
  return outcome.value
}

/** In development and in tests an answer that breaks its lexicon is a fault of ours. */
function checked({ ctx }: RequestExchange, { nsid }: Method, answer: unknown): unknown {
  if (!ctx.config.development || answer instanceof Response) return answer
  const outcome = validateOutput(nsid, answer instanceof JsonText ? JSON.parse(answer.text) : answer)
  if (!outcome.ok) throw new Error(`${nsid} answered against its lexicon: ${outcome.message}`)
  return answer
}

const unexpectedBody = () => invalidRequest('A request body was provided when none was expected')

function openSocket(exchange: RequestExchange, endpoint: Extract<Endpoint, { kind: 'subscription' }>, sockets: Set<ServerWebSocket<unknown>>): Response {
  const handler: SocketHandler = endpoint.accept(exchange)
  const data = {
    open(raw: ServerWebSocket<unknown>) {
      sockets.add(raw)
      handler.open(socketOf(raw))
    },
    drain: () => handler.drain(),
    close(raw: ServerWebSocket<unknown>) {
      sockets.delete(raw)
      handler.closed()
    },
  }
  let upgraded = false
  try {
    upgraded = exchange.server.upgrade(exchange.request, { data })
  } finally {
    if (!upgraded) handler.closed()
  }
  if (!upgraded) throw invalidRequest('Expected a WebSocket upgrade')
  // The connection belongs to the socket now; what is answered here reaches nobody.
  return new Response(null)
}

const socketOf = (raw: ServerWebSocket<unknown>): Socket => ({
  send: (message) => raw.sendBinary(message) !== 0,
  bufferedBytes: () => raw.getBufferedAmount(),
  batch: (work) => void raw.cork(work),
  close: (code, reason) => raw.close(code, reason),
})

/** Path of an absolute URL, without building a `URL`. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** What is at a host: the service, or a handle, which serves what proves it and nothing else. */
type Site = 'service' | 'handle'

class Hosts {
  readonly #own: string
  readonly #suffixes: string[]
  /** The last header that was for the service: nearly always the same one. */
  #known: string | null = null

  constructor({ config }: Context) {
    this.#own = new URL(config.publicUrl).hostname
    this.#suffixes = config.availableUserDomains.map((domain) => `.${domain}`)
  }

  /** Null when the header is no host. */
  siteAt(header: string | null): Site | null {
    if (header === null) return null
    if (header === this.#known) return 'service'
    const name = parseHost(header)?.name
    if (name === undefined) return null
    if (name !== this.#own && this.#suffixes.some((suffix) => name.endsWith(suffix))) return 'handle'
    this.#known = header
    return 'service'
  }
}
