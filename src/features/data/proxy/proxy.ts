/**
 * Calls other services on behalf of an account.
 *
 * The account's session token is never forwarded. The outgoing request carries a service token for one method of one
 * service, and only those headers of the client that describe its body and the response it wants, or that are for the
 * service by their name. Bodies stream in both directions. If the client disconnects, the outgoing request is aborted.
 *
 * Source: atproto "HTTP API (XRPC)", "Service Proxying".
 */
import type { Exchange, Outline } from '../../../http/endpoint.ts'
import { invalidRequest, upstreamFailure } from '../../../http/errors.ts'
import type { Beside } from '../../../platform/database/database.ts'
import type { CounterLabels } from '../../../platform/running/metrics.ts'
import { discardBody, OutboundError, type OutboundRequest } from '../../../platform/network/outbound.ts'
import { isReadByName } from '../../../protocol/guarded-methods.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountSigner, type FoundSigner } from '../../identity/account-keys/account-keys.ts'
import { chargeRecord, isRecorded, recordUse, revalidationOf, type AccessCaller } from '../../access/callers/callers.ts'
import { refusedBy, revalidatedBody, revalidator } from './revalidated-streams.ts'
import { serviceText, type ServiceName } from './proxy-header.ts'
import { refuseSpacesIn } from './rpc-guard.ts'
import { readJson, refuseFailed, relayed } from './upstream-reply.ts'
import { isConfigured, locate, type Located } from './upstream-services.ts'
import { noteAcceptsOnce, upstreamToken, type UpstreamToken } from './upstream-token.ts'

export { serviceText } from './proxy-header.ts'
export { appviewService, otherAppview } from './upstream-services.ts'

const passedHeaders = ['accept-language', 'atproto-accept-labelers', 'x-bsky-topics']
/** Of the names of headers that apps and services agree on between themselves. */
const PASSED_PREFIX = 'x-atproto-'
const passedBodyHeaders = ['content-type', 'content-length', 'content-encoding']

const HEADERS_TIMEOUT_MILLIS = 10_000
const BODY_TIMEOUT_MILLIS = 30_000
const MAX_RESPONSE_BYTES = 10 * 1024 ** 2
/** Longest response that is parsed here, from a service that the caller chose. */
const MAX_ASKED_BYTES = 512 * 1024

export interface Forwarding {
  service: ServiceName
  /** The caller, for whose account the token is issued; null sends no token. */
  caller: AccessCaller | null
  /** The signer of the account, if `callerSigner` has read it. */
  signer?: FoundSigner | null
  /** Method and audience of the token, if they are not the method of the request and the DID of the service. */
  lxm?: string
  aud?: Did
  /** Also forward for an account that was taken down. */
  appeals?: boolean
  /** Path and query to GET, in place of the path and query of the request. */
  path?: string
  /** Body to send as JSON, in place of the body of the request. */
  json?: unknown
  /** The body of the request, if it was read already; null to send it as it arrives. */
  text?: string | null
  /** `Accept-Encoding` to send, in place of the header of the request. */
  acceptEncoding?: string
  /** Messages for a service that cannot be found. */
  faults?: LocationFaults
}

type LocationFaults = Record<Extract<Located, { ok: false }>['fault'], string>

const proxyFaults: LocationFaults = {
  unresolved: 'could not resolve proxy did',
  unlisted: 'could not resolve proxy did service url',
}

/**
 * Forward the request and return the response of the other service. An error response is thrown as a `Refusal`.
 * Otherwise throws as `ask` does.
 */
export async function forward(call: Exchange, forwarding: Forwarding): Promise<Outline> {
  return relayed(call.request, await ask(call, forwarding))
}

/**
 * Send a query of our own and return the JSON of the response. Throws the other service's error as a `Refusal`, and
 * `UpstreamFailure` if the response is not JSON, too long or cut off. Otherwise throws as `ask` does.
 */
export async function askJson(
  call: Exchange,
  { maxBytes = MAX_ASKED_BYTES, ...forwarding }: Forwarding & { path: string; maxBytes?: number },
): Promise<unknown> {
  const response = await ask(call, { ...forwarding, acceptEncoding: 'identity' })
  await refuseFailed(call.request, response)
  const value = await readJson(response, maxBytes)
  if (value === undefined) throw upstreamFailure()
  return value
}

/**
 * Forward the request and return the response of the other service, with any status and its body unchanged.
 *
 * Throws `InvalidRequest` if the service cannot be found, `UpstreamFailure` if it cannot be reached, `LookupsFull` if
 * too many names are being looked up, `RateLimitExceeded` if agents and delegates change too much, and what
 * `upstreamToken` throws.
 */
export async function ask(call: Exchange, forwarding: Forwarding): Promise<Response> {
  const { ctx, request } = call
  // Comes first, because it revalidates the caller.
  const token = await tokenOf(call, forwarding)
  const headers = outgoingHeaders(call, forwarding, token)
  const located = await locate(ctx, forwarding.service)
  if (!located.ok) throw invalidRequest((forwarding.faults ?? proxyFaults)[located.fault])
  const { label, url, outbound, toldName } = located.upstream
  if (toldName !== null) headers['atproto-proxy'] = toldName
  await recordCall(call, forwarding)
  const { caller, appeals = false } = forwarding
  const revalidate = caller && revalidator(call, caller, { appeals })
  const body = revalidatedBody(outgoingBody(call, forwarding, headers), revalidate)
  const send = () =>
    outbound.fetch(url + (forwarding.path ?? pathAndQuery(request.url)), {
      method: forwarding.path === undefined ? request.method : 'GET',
      headers,
      body,
      signal: request.signal,
      // The other side may not respond before it has received the whole body.
      headersTimeoutMillis: HEADERS_TIMEOUT_MILLIS + (body ? BODY_TIMEOUT_MILLIS : 0),
      bodyTimeoutMillis: BODY_TIMEOUT_MILLIS,
      maxBytes: MAX_RESPONSE_BYTES,
      raw: true,
      ...(revalidate && { admit: revalidate }),
    })
  const count = (status: number) =>
    ctx.metrics.count('proxy_requests_total', { upstream: label, status_class: statusClass(status) })
  try {
    let response = await send()
    count(response.status)
    if (token !== null && token.requests > 1 && refusesToken(response)) {
      token.isRefused = true
      await discardBody(response)
      const { text } = (await tokenOf(call, { ...forwarding, signer: null }))!
      headers['authorization'] = `Bearer ${text}`
      response = await send()
      count(response.status)
      if (!refusesToken(response)) noteAcceptsOnce(ctx, token.aud)
    }
    const [lagMillis] = /^\d{1,12}$/.exec(response.headers.get('atproto-upstream-lag') ?? '') ?? []
    if (lagMillis !== undefined) ctx.metrics.observe('proxy_upstream_lag_seconds', Number(lagMillis) / 1000)
    if (revalidate) await refusedBy(response, revalidate)
    return response
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    if (revalidate) await revalidate()
    ctx.metrics.count('proxy_requests_total', { upstream: label, status_class: '5xx' })
    call.ctx.log.warn('upstream unreachable', { route: call.nsid, reason: error.fault })
    throw upstreamFailure()
  }
}

/** Record a call by which an agent or a delegate changes something at another service, which cannot be undone here. */
async function recordCall(call: Exchange, { caller, service, path }: Forwarding): Promise<void> {
  const { ctx, request, nsid } = call
  if (caller === null || !isRecorded(caller) || path !== undefined) return
  if (request.method !== 'POST' || isReadByName(nsid!)) return
  await chargeRecord(call, caller)
  const act = { type: 'service_call', detail: { method: nsid, service: serviceText(service) } } as const
  await ctx.db.transaction((tx) => recordUse(ctx, tx, caller, act))
}

/**
 * Reads the signer of the caller's account and revalidates the caller, with what `beside` reads in the same statement.
 */
export const callerSigner = <Row>(
  { ctx }: Exchange,
  caller: AccessCaller,
  beside: Beside,
): Promise<FoundSigner<Row> | null> => accountSigner(ctx, ctx.db, caller.did, revalidationOf(ctx, caller), beside)

/** By names in lower case. */
type OutgoingHeaders = Record<string, string>

/** Returns the token that the request carries; null if it carries none. Throws what `upstreamToken` throws. */
async function tokenOf(
  { ctx, request, nsid }: Exchange,
  { service, caller, signer, lxm, aud = service.did, appeals, path }: Forwarding,
): Promise<UpstreamToken | null> {
  if (caller === null) return null
  const isQuery = path !== undefined || request.method !== 'POST'
  return upstreamToken(ctx, {
    iss: caller.did,
    aud,
    lxm: lxm ?? nsid!,
    appeals,
    revalidation: revalidationOf(ctx, caller),
    signer,
    // Do not keep a token with another audience: the service passes it on, and its response may not show that the
    // audience refused it.
    mayKeep: isQuery && aud === service.did && isConfigured(ctx.config, service),
  })
}

const refusesToken = ({ status }: Response): boolean => status === 401 || status === 403

function outgoingHeaders(
  { request }: Exchange,
  { acceptEncoding }: Forwarding,
  token: UpstreamToken | null,
): OutgoingHeaders {
  const headers: OutgoingHeaders = {
    'accept-encoding': acceptEncoding ?? request.headers.get('accept-encoding') ?? 'identity',
  }
  const agreed = [...request.headers.keys()].filter((name) => name.startsWith(PASSED_PREFIX))
  copy(request.headers, headers, [...passedHeaders, ...agreed])
  if (token !== null) headers['authorization'] = `Bearer ${token.text}`
  return headers
}

function statusClass(status: number): CounterLabels<'proxy_requests_total'>['status_class'] {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

function outgoingBody(
  { request, nsid }: Exchange,
  { json, path, text = null }: Forwarding,
  headers: OutgoingHeaders,
): OutboundRequest['body'] {
  if (text !== null) {
    copy(request.headers, headers, ['content-type'])
    return text
  }
  if (json !== undefined) {
    const written = JSON.stringify(json)
    refuseSpacesIn(nsid!, written)
    headers['content-type'] = 'application/json'
    return written
  }
  if (path !== undefined || request.method !== 'POST') return undefined
  copy(request.headers, headers, passedBodyHeaders)
  return request.body ?? undefined
}

function copy(from: Headers, to: OutgoingHeaders, names: readonly string[]): void {
  for (const name of names) {
    const value = from.get(name)
    if (value !== null) to[name] = value
  }
}

/** The path and query exactly as the client sent them. */
const pathAndQuery = (url: string): string => url.slice(url.indexOf('/', url.indexOf('://') + 3))
