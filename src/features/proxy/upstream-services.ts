/**
 * The services that requests are forwarded to: those the operator configured, by name, and any other that a caller
 * names and whose DID document says where it is.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { invalidRequest } from '../../http/errors.ts'
import type { Config } from '../../platform/configuration/config.ts'
import type { Context } from '../../platform/context.ts'
import type { CounterLabels } from '../../platform/running/metrics.ts'
import type { Outbound } from '../../platform/network/outbound.ts'
import { serviceEndpoint } from '../../protocol/did-document.ts'
import { resolveDid } from '../identity/identity.ts'
import { parseProxyHeader, serviceText, type ServiceName } from './proxy-header.ts'

type ServiceLabel = CounterLabels<'proxy_requests_total'>['upstream']

interface ConfiguredService {
  name: ServiceName
  label: ServiceLabel
  url: string
  /** Methods that go there when the request names no service. */
  prefixes: readonly string[]
}

export interface Upstream {
  /** What its requests are counted as. */
  label: ServiceLabel
  /** Without a trailing slash. */
  url: string
  outbound: Outbound
  /** Sent as `atproto-proxy`: configured services are told under which name they were reached. */
  toldName: string | null
}

const LABELER_FRAGMENT = 'atproto_labeler'

/** Social methods go to the AppView, and so do the questions about the network that are not answered here. */
const appviewPrefixes = [
  'app.bsky.',
  'com.atproto.identity.',
  'com.atproto.label.',
  'com.atproto.lexicon.',
  'com.atproto.sync.',
  'com.atproto.temp.',
]

const configuredServices = (config: Config): ConfiguredService[] => [
  { name: appviewService(config), label: 'appview', url: config.appview.url, prefixes: appviewPrefixes },
  { name: checkedName(config.chat.did), label: 'chat', url: config.chat.url, prefixes: ['chat.bsky.'] },
  {
    name: reportService(config),
    label: 'moderation',
    url: config.moderation.reportUrl,
    prefixes: ['tools.ozone.', 'com.atproto.moderation.'],
  },
]

export const appviewService = (config: Config): ServiceName => checkedName(config.appview.did)

/** Where reports go, and what moderators work with. */
const reportService = (config: Config): ServiceName => ({ did: config.moderation.reportDid, fragment: LABELER_FRAGMENT })

function checkedName(text: string): ServiceName {
  const parsed = parseProxyHeader(text)
  if (!parsed.ok) throw new Error(`${text} names no service`)
  return parsed.service
}

/** Null when the method goes nowhere unless the caller says where. */
export const defaultService = (config: Config, nsid: string): ServiceName | null =>
  configuredServices(config).find(({ prefixes }) => prefixes.some((prefix) => nsid.startsWith(prefix)))?.name ?? null

/** The service that the request names in `atproto-proxy`; null when it names none. */
export function namedService(request: Request): ServiceName | null {
  const header = request.headers.get('atproto-proxy')
  if (header === null || header === '') return null
  const parsed = parseProxyHeader(header)
  if (!parsed.ok) throw invalidRequest(parsed.fault)
  return parsed.service
}

/** The service that the request names instead of our AppView; null when it names none, or ours. */
export function otherAppview({ ctx, request }: Pick<Exchange, 'ctx' | 'request'>): ServiceName | null {
  const named = namedService(request)
  return named === null || serviceText(named) === ctx.config.appview.did ? null : named
}

export type Located = { ok: true; upstream: Upstream } | { ok: false; fault: 'unresolved' | 'unlisted' }

/** Where a service is. Only what the operator configured may be at any address. */
export async function locate(ctx: Context, service: ServiceName): Promise<Located> {
  const name = serviceText(service)
  const configured = configuredServices(ctx.config).find((one) => serviceText(one.name) === name)
  if (configured) return { ok: true, upstream: { label: configured.label, url: configured.url, outbound: ctx.upstream, toldName: name } }
  const resolution = await resolveDid(ctx, service.did)
  if (!resolution.ok) return { ok: false, fault: 'unresolved' }
  const url = serviceEndpoint(resolution.document, service.fragment)
  if (url === null) return { ok: false, fault: 'unlisted' }
  return { ok: true, upstream: { label: 'header_target', url: url.replace(/\/+$/, ''), outbound: ctx.outbound, toldName: null } }
}
