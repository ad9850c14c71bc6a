/**
 * Asking other services on behalf of an account.
 *
 * The account's session stays here: what goes out carries a service token for one method of one service, and of the
 * request's headers only those that describe its body and the answer wanted. Bodies stream both ways, and a client
 * that goes away takes the request to the other service with it.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidRequest, upstreamFailure } from '../../http/errors.ts'
import type { CounterLabels } from '../../platform/running/metrics.ts'
import { OutboundError, type OutboundRequest } from '../../platform/network/outbound.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { ServiceName } from './proxy-header.ts'
import { readJson, relayed } from './upstream-reply.ts'
import { locate, type Located } from './upstream-services.ts'
import { upstreamToken } from './upstream-token.ts'

export { serviceText } from './proxy-header.ts'
export { appviewService, namedService, otherAppview } from './upstream-services.ts'

const passedHeaders = ['accept-language', 'atproto-accept-labelers', 'x-bsky-topics']
const passedBodyHeaders = ['content-type', 'content-length', 'content-encoding']

const HEADERS_TIMEOUT_MILLIS = 10_000
const BODY_TIMEOUT_MILLIS = 30_000
export const MAX_RESPONSE_BYTES = 10 * 1024 ** 2

export interface Forwarding {
  service: ServiceName
  /** Whom the token speaks for; null sends none. */
  iss: Did | null
  /** What the token is for, where it is not the request's own method and the service's own DID. */
  lxm?: string
  aud?: Did
  /** Also for an account that was taken down. */
  appeals?: boolean
  /** Instead of the request's own path and query. */
  path?: string
  /** Instead of the request's own body. */
  json?: unknown
  /** Instead of the request's own header. */
  acceptEncoding?: string
  /** What to say when the service is nowhere to be found. */
  faults?: LocationFaults
}

type LocationFaults = Record<Extract<Located, { ok: false }>['fault'], string>

const proxyFaults: LocationFaults = { unresolved: 'could not resolve proxy did', unlisted: 'could not resolve proxy did service url' }

/** Pass the request on and the answer back. Errors of the other service are thrown as refusals. */
export async function forward(call: Exchange, forwarding: Forwarding): Promise<Response> {
  return relayed(call.request, await ask(call, forwarding))
}

/** Ask a question of our own, as JSON. Throws the refusal of the other service, or ours when it answers something else. */
export async function askJson(call: Exchange, forwarding: Forwarding & { path: string }): Promise<unknown> {
  const response = await forward(call, { ...forwarding, acceptEncoding: 'identity' })
  const value = await readJson(response, MAX_RESPONSE_BYTES)
  if (value === undefined) throw upstreamFailure()
  return value
}

/** Pass the request on. Returns the response of the other service, with its body unchanged. */
export async function ask(call: Exchange, forwarding: Forwarding): Promise<Response> {
  const { ctx, request } = call
  const located = await locate(ctx, forwarding.service)
  if (!located.ok) throw invalidRequest((forwarding.faults ?? proxyFaults)[located.fault])
  const { label, url, outbound, toldName } = located.upstream
  const headers = await outgoingHeaders(call, forwarding)
  if (toldName !== null) headers.set('atproto-proxy', toldName)
  const body = outgoingBody(request, forwarding, headers)
  try {
    const response = await outbound.fetch(url + (forwarding.path ?? pathAndQuery(request.url)), {
      method: forwarding.path === undefined ? request.method : 'GET',
      headers,
      body,
      signal: request.signal,
      // A body takes its time to arrive before the other side can answer.
      headersTimeoutMillis: HEADERS_TIMEOUT_MILLIS + (body ? BODY_TIMEOUT_MILLIS : 0),
      bodyTimeoutMillis: BODY_TIMEOUT_MILLIS,
      maxBytes: MAX_RESPONSE_BYTES,
      raw: true,
    })
    ctx.metrics.count('proxy_requests_total', { upstream: label, status_class: statusClass(response.status) })
    const [lagMillis] = /^\d{1,12}$/.exec(response.headers.get('atproto-upstream-lag') ?? '') ?? []
    if (lagMillis !== undefined) ctx.metrics.observe('proxy_upstream_lag_seconds', Number(lagMillis) / 1000)
    return response
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    ctx.metrics.count('proxy_requests_total', { upstream: label, status_class: '5xx' })
    call.ctx.log.warn('upstream unreachable', { route: call.nsid, reason: error.fault })
    throw upstreamFailure()
  }
}

async function outgoingHeaders(
  { ctx, request, nsid }: Exchange,
  { service, iss, lxm, aud, appeals, acceptEncoding }: Forwarding,
): Promise<Headers> {
  const headers = new Headers({ 'accept-encoding': acceptEncoding ?? request.headers.get('accept-encoding') ?? 'identity' })
  copy(request.headers, headers, passedHeaders)
  if (iss === null) return headers
  const token = await upstreamToken(ctx, { iss, aud: aud ?? service.did, lxm: lxm ?? nsid!, appeals })
  headers.set('authorization', `Bearer ${token}`)
  return headers
}

function statusClass(status: number): CounterLabels<'proxy_requests_total'>['status_class'] {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

function outgoingBody(request: Request, { json, path }: Forwarding, headers: Headers): OutboundRequest['body'] {
  if (json !== undefined) {
    headers.set('content-type', 'application/json')
    return JSON.stringify(json)
  }
  if (path !== undefined || request.method !== 'POST') return undefined
  copy(request.headers, headers, passedBodyHeaders)
  return request.body ?? undefined
}

function copy(from: Headers, to: Headers, names: readonly string[]): void {
  for (const name of names) {
    const value = from.get(name)
    if (value !== null) to.set(name, value)
  }
}

/** As the client wrote it. */
const pathAndQuery = (url: string): string => url.slice(url.indexOf('/', url.indexOf('://') + 3))
