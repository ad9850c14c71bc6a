/**
 * Turns declarations into targets: the steps that a request goes through once its path is known. `endpoint.ts` gives
 * their order.
 */
import { perList } from '../base/per-list.ts'
import type { LimitName } from '../platform/running/limits.ts'
import {
  decodeParams,
  methods,
  validateInput,
  validateOutput,
  type Method,
  type MethodName,
} from '../protocol/lexicons/lexicons.ts'
import { parseNsid } from '../protocol/identifiers.ts'
import { announcedBytes, DEFAULT_JSON_BYTES, type RequestBody } from './body.ts'
import { anyone, isRead, JsonText, limitsOf, Outline, type CallLimit, type Common, type Endpoint } from './endpoint.ts'
import { invalidRequest, methodNotImplemented, notFound, Refusal } from './errors.ts'
import type { RequestExchange } from './exchange.ts'
import { chargeDeclared } from './limiting.ts'
import { PathTable } from './path-table.ts'
import { queryOf } from './query.ts'

/** What a path leads to. */
export interface Target {
  /** Its name in metrics and traces. */
  name: string
  /** Charged to the client's address. */
  limits: readonly LimitName[]
  /** Declaration of the endpoint; null if there is none. */
  spec: Common<unknown> | null
  /** Returns what the handler returns. Throws a `Refusal` if a step before it refuses. */
  run(exchange: RequestExchange): unknown
}

/** Target of an XRPC method. */
export interface MethodTarget extends Target {
  /** Target of a request for a WebSocket; null unless the method is a subscription. */
  upgrade: Target | null
}

/** Every target of the server, by how a request reaches it. */
export interface Targets {
  /** By NSID. */
  methods: ReadonlyMap<string, MethodTarget>
  routes: PathTable<Target>
  /** NSIDs that are not served here. */
  unserved: Target
  /** Paths outside `/xrpc` without an endpoint. */
  nowhere: Target
}

type Of<Kind extends Endpoint['kind']> = Extract<Endpoint, { kind: Kind }>

export const XRPC_PREFIX = '/xrpc/'

/** Returns the NSID in a path below `XRPC_PREFIX`. */
export const nsidOf = (path: string): string => path.slice(XRPC_PREFIX.length, path.endsWith('/') ? -1 : undefined)

/** Returns the path of an absolute URL without building a `URL`. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return '/'
  const query = url.indexOf('?', start)
  return query < 0 ? url.slice(start) : url.slice(start, query)
}

/** Metric label of any path without an endpoint: clients must not be able to create labels. */
const UNMATCHED = 'unmatched'

/** Returns the targets, which are the same for every server with the same endpoints. */
export const targetsOf = perList((endpoints: readonly Endpoint[]): Targets => {
  const methodTargets = new Map<string, MethodTarget>()
  const routes = new PathTable<Target>()
  const fallback = endpoints.find((endpoint) => endpoint.kind === 'fallback') ?? null
  const unserved = target(UNMATCHED, fallback?.spec ?? null, (exchange, limits) =>
    runUnserved(exchange, fallback, limits),
  )
  for (const endpoint of endpoints) {
    if (endpoint.kind === 'fallback') continue
    if (endpoint.kind === 'route') {
      const found = target(endpoint.path, endpoint.spec, (exchange, limits) => runRoute(exchange, endpoint, limits))
      for (const method of endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method])
        routes.add(method, endpoint.path, found)
      continue
    }
    if (methodTargets.has(endpoint.nsid)) throw new Error(`${endpoint.nsid} is declared twice`)
    methodTargets.set(endpoint.nsid, methodTarget(endpoint, unserved))
  }
  const nowhere = target(UNMATCHED, null, ({ rawPath }) => {
    const allowed = routes.methodsAt(rawPath)
    if (allowed.length === 0) throw notFound()
    throw new Refusal(405, 'MethodNotAllowed', `This path accepts ${allowed.join(' and ')}`, {
      headers: { Allow: allowed.join(', ') },
    })
  })
  return { methods: methodTargets, routes, unserved, nowhere }
})

type CallLimits = readonly CallLimit<unknown>[]

/** `run` charges the limits that it receives, once the caller and the input are known. */
function target(
  name: string,
  spec: Common<unknown> | null,
  run: (exchange: RequestExchange, limits: CallLimits) => unknown,
): Target {
  const limits = callLimitsOf(spec)
  return {
    name,
    limits: addressLimitsOf(spec),
    spec,
    run: (exchange) => (spec?.long ? patiently(exchange, () => run(exchange, limits)) : run(exchange, limits)),
  }
}

async function patiently(exchange: RequestExchange, run: () => unknown): Promise<unknown> {
  exchange.mayIdle(true)
  try {
    return await run()
  } finally {
    exchange.mayIdle(false)
  }
}

function methodTarget(endpoint: Of<'query' | 'procedure' | 'subscription'>, unserved: Target): MethodTarget {
  const { nsid, kind } = endpoint
  const method = methods().get(nsid as MethodName)
  if (!method || method.kind !== kind) throw new Error(`the lexicon does not declare ${nsid} as a ${kind}`)
  switch (kind) {
    case 'query':
      return {
        ...target(nsid, endpoint.spec, (exchange, limits) => runQuery(exchange, endpoint, method, limits)),
        upgrade: null,
      }
    case 'procedure':
      return {
        ...target(nsid, endpoint.spec, (exchange, limits) => runProcedure(exchange, endpoint, method, limits)),
        upgrade: null,
      }
    case 'subscription':
      // The event stream is exempt from limits; a plain HTTP request to its path is not.
      return {
        ...unserved,
        name: nsid,
        upgrade: { name: nsid, limits: [], spec: null, run: (exchange) => openSocket(exchange, endpoint) },
      }
  }
}

const everyRequest: readonly LimitName[] = ['globalIp']

function addressLimitsOf(spec: Common<unknown> | null): readonly LimitName[] {
  const own = limitsOf(spec).filter((limit) => typeof limit === 'string')
  return spec?.unlimited ? own : [...own, ...everyRequest]
}

const callLimitsOf = (spec: Common<unknown> | null): CallLimits =>
  limitsOf(spec).filter((limit) => typeof limit !== 'string')

async function runQuery(
  exchange: RequestExchange,
  endpoint: Of<'query'>,
  method: Method,
  limits: CallLimits,
): Promise<unknown> {
  const { request } = exchange
  if (request.method === 'POST') throw invalidRequest('Incorrect HTTP method (POST) expected GET')
  if (!isRead(request)) throw invalidRequest('XRPC requests only supports GET and POST')
  exchange.params = paramsOf(exchange, method.nsid)
  const caller = authenticate(exchange, endpoint.spec)
  // Most readers are strangers, whose guard has nothing to wait for.
  exchange.caller = caller instanceof Promise ? await caller : caller
  // The runtime does not expose the body of a GET, so its announced length has to do.
  if ((announcedBytes(request) ?? 0) > 0) throw unexpectedBody()
  const charged = chargeDeclared(exchange, limits)
  if (charged) await charged
  return checked(exchange, method, await endpoint.handler(exchange))
}

async function runProcedure(
  exchange: RequestExchange,
  endpoint: Of<'procedure'>,
  method: Method,
  limits: CallLimits,
): Promise<unknown> {
  const { request } = exchange
  if (isRead(request)) throw invalidRequest('Incorrect HTTP method (GET) expected POST')
  if (request.method !== 'POST') throw invalidRequest('XRPC requests only supports GET and POST')
  exchange.params = paramsOf(exchange, method.nsid)
  exchange.caller = await authenticate(exchange, endpoint.spec)
  exchange.input = await inputOf(exchange.body, method, endpoint.spec.maxBytes ?? DEFAULT_JSON_BYTES)
  const charged = chargeDeclared(exchange, limits)
  if (charged) await charged
  return checked(exchange, method, await endpoint.handler(exchange))
}

async function runRoute(
  exchange: RequestExchange,
  { spec, handler }: Of<'route'>,
  limits: CallLimits,
): Promise<unknown> {
  exchange.caller = await authenticate(exchange, spec)
  const charged = chargeDeclared(exchange, limits)
  if (charged) await charged
  return handler(exchange)
}

async function runUnserved(
  exchange: RequestExchange,
  fallback: Of<'fallback'> | null,
  limits: CallLimits,
): Promise<unknown> {
  const nsid = parseNsid(exchange.nsid ?? '')
  if (nsid === null) throw invalidRequest('invalid xrpc path')
  if (!['GET', 'HEAD', 'POST'].includes(exchange.request.method))
    throw invalidRequest('XRPC requests only supports GET and POST')
  if (fallback === null) throw methodNotImplemented()
  exchange.caller = await authenticate(exchange, fallback.spec)
  const charged = chargeDeclared(exchange, limits)
  if (charged) await charged
  return fallback.handler(exchange as RequestExchange & { nsid: string })
}

function paramsOf({ request: { url } }: RequestExchange, nsid: MethodName): unknown {
  const outcome = decodeParams(nsid, queryOf(url))
  if (!outcome.ok) throw invalidRequest(outcome.message)
  return outcome.value
}

/** Returns the caller, or a promise of it if the guard has to wait. */
const authenticate = (exchange: RequestExchange, { auth = anyone }: Common<unknown>): unknown => auth.check(exchange)

async function inputOf(body: RequestBody, method: Method, maxBytes: number): Promise<unknown> {
  if (method.inputEncoding === null) {
    if (body.isAnnounced && (await body.bytes(DEFAULT_JSON_BYTES)).byteLength > 0) throw unexpectedBody()
    return null
  }
  if (!body.isAnnounced) throw invalidRequest('A request body is expected but none was provided')
  const { contentType } = body
  // A blob must not get a type that no record may then give it.
  if (contentType === null || !contentType.includes('/'))
    throw invalidRequest('Request encoding (Content-Type) required but not provided')
  if (method.inputEncoding !== '*/*' && contentType !== method.inputEncoding)
    throw invalidRequest(`Wrong request encoding (Content-Type): ${contentType}`)
  if (method.inputEncoding !== 'application/json') return body
  const json = await body.json(maxBytes)
  // The reference accepts only objects and arrays as JSON, and reports anything else as a `SyntaxError` of its parser.
  if (json === null || (json !== undefined && typeof json !== 'object'))
    throw new Refusal(400, 'SyntaxError', 'JSON Parse error: Expected an object')
  const outcome = validateInput(method.nsid, json ?? {})
  if (!outcome.ok) throw invalidRequest(outcome.message)
  return outcome.value
}

/** In development and in tests, validate the output too: output that breaks its lexicon is a bug. */
function checked({ ctx }: RequestExchange, { nsid }: Method, answer: unknown): unknown {
  if (!ctx.config.development || answer instanceof Response || answer instanceof Outline) return answer
  const outcome = validateOutput(nsid, answer instanceof JsonText ? JSON.parse(answer.text) : answer)
  if (!outcome.ok) throw new Error(`the output of ${nsid} does not match its lexicon: ${outcome.message}`)
  return answer
}

const unexpectedBody = () => invalidRequest('A request body was provided when none was expected')

async function openSocket(exchange: RequestExchange, { accept }: Of<'subscription'>): Promise<Response> {
  const handler = await accept(exchange)
  let upgraded = false
  try {
    upgraded = exchange.peer.upgrade(exchange.request, handler)
  } finally {
    if (!upgraded) handler.closed()
  }
  if (!upgraded) throw invalidRequest('Expected a WebSocket upgrade')
  // The connection now belongs to the socket; this response is never sent.
  return new Response(null)
}
