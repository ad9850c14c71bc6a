/**
 * The services that requests are forwarded to: those that the operator configured, and any other that a caller names
 * and whose DID document lists its endpoint.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { CounterLabels } from '../../../platform/running/metrics.ts'
import type { Outbound } from '../../../platform/network/outbound.ts'
import { serviceEndpoint } from '../../../protocol/did-document.ts'
import { resolveDid } from '../../identity/identity/identity.ts'
import { parseProxyHeader, serviceText, type ServiceName } from './proxy-header.ts'

type ServiceLabel = CounterLabels<'proxy_requests_total'>['upstream']

interface ConfiguredService {
  name: ServiceName
  /** The name in the form of `serviceText`. */
  text: string
  label: ServiceLabel
  url: string
  /** Prefixes of the methods that go to this service if the request names no service. */
  prefixes: readonly string[]
}

export interface Upstream {
  /** Label of its requests in the metrics. */
  label: ServiceLabel
  /** Without a trailing slash. */
  url: string
  outbound: Outbound
  /** Sent as `atproto-proxy`, to tell a configured service under which name it was called; null sends none. */
  toldName: string | null
}

const LABELER_FRAGMENT = 'atproto_labeler'

/** Social methods go to the AppView, and so do methods about the network that this server does not implement. */
const appviewPrefixes = [
  'app.bsky.',
  'com.atproto.identity.',
  'com.atproto.label.',
  'com.atproto.lexicon.',
  'com.atproto.sync.',
  'com.atproto.temp.',
]

const known = new WeakMap<Config, readonly ConfiguredService[]>()

function configuredServices(config: Config): readonly ConfiguredService[] {
  const services = known.get(config) ?? servicesOf(config)
  known.set(config, services)
  return services
}

const servicesOf = (config: Config): ConfiguredService[] =>
  [
    { name: appviewService(config), label: 'appview' as const, url: config.appview.url, prefixes: appviewPrefixes },
    { name: checkedName(config.chat.did), label: 'chat' as const, url: config.chat.url, prefixes: ['chat.bsky.'] },
    {
      name: reportService(config),
      label: 'moderation' as const,
      url: config.moderation.reportUrl,
      prefixes: ['tools.ozone.', 'com.atproto.moderation.'],
    },
  ].map((service) => ({ ...service, text: serviceText(service.name) }))

export const appviewService = (config: Config): ServiceName => checkedName(config.appview.did)

/** The service that receives reports and serves the methods of moderators. */
const reportService = (config: Config): ServiceName => ({
  did: config.moderation.reportDid,
  fragment: LABELER_FRAGMENT,
})

function checkedName(text: string): ServiceName {
  const parsed = parseProxyHeader(text)
  if (!parsed.ok) throw new Error(`${text} names no service`)
  return parsed.service
}

/** Returns null if no configured service handles the method, so that the caller must name one. */
export const defaultService = (config: Config, nsid: string): ServiceName | null =>
  configuredServices(config).find(({ prefixes }) => prefixes.some((prefix) => nsid.startsWith(prefix)))?.name ?? null

/**
 * Returns the service that the request names in `atproto-proxy`, or null if it names none. Throws `InvalidRequest` if
 * it is malformed.
 */
export function namedService(request: Request): ServiceName | null {
  const header = request.headers.get('atproto-proxy')
  if (header === null || header === '') return null
  const parsed = parseProxyHeader(header)
  if (!parsed.ok) throw invalidRequest(parsed.fault)
  return parsed.service
}

/**
 * Returns the service that the request names in place of the configured AppView, or null if it names none or that
 * AppView. Throws `InvalidRequest` if the header is malformed.
 */
export function otherAppview({ ctx, request }: Pick<Exchange, 'ctx' | 'request'>): ServiceName | null {
  const named = namedService(request)
  return named === null || serviceText(named) === ctx.config.appview.did ? null : named
}

function configuredAs(config: Config, service: ServiceName): ConfiguredService | undefined {
  const name = serviceText(service)
  return configuredServices(config).find(({ text }) => text === name)
}

export const isConfigured = (config: Config, service: ServiceName): boolean =>
  configuredAs(config, service) !== undefined

export type Located = { ok: true; upstream: Upstream } | { ok: false; fault: 'unresolved' | 'unlisted' }

/**
 * Returns where a service is, or the fault: `unresolved` if its DID does not resolve, `unlisted` if its DID document
 * has no such entry. Only a configured service may be at a private address. Throws `LookupsFull` if too many names are
 * being looked up.
 */
export async function locate(ctx: Context, service: ServiceName): Promise<Located> {
  const configured = configuredAs(ctx.config, service)
  if (configured) {
    const { label, url, text } = configured
    return { ok: true, upstream: { label, url, outbound: ctx.upstream, toldName: text } }
  }
  const resolution = await resolveDid(ctx, service.did)
  if (!resolution.ok) return { ok: false, fault: 'unresolved' }
  const url = serviceEndpoint(resolution.document, service.fragment)
  if (url === null) return { ok: false, fault: 'unlisted' }
  return { ok: true, upstream: { label: 'header_target', url, outbound: ctx.outbound, toldName: null } }
}
