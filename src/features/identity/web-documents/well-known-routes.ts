/**
 * The `/.well-known` documents of the server's host, of hosts that are handles of accounts, and of hosts whose did:web
 * documents are served here.
 *
 * Source: did:web method specification, "Read (Resolve)"; atproto "Handle", "HTTPS well-known Method".
 */
import { route, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { parseHost, type Host } from '../../../http/host.ts'
import { charge } from '../../../http/limiting.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { didWebOfHost } from '../../../protocol/did-document.ts'
import { parseHandle, type Did } from '../../../protocol/identifiers.ts'
import { pdsService, PDS_SERVICE_NAME } from '../../../protocol/plc.ts'
import { accountAt } from '../accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { isServedHandle } from '../identity/identity.ts'
import { hostedDocument } from './web-documents.ts'

/** Returns the host that the client requested, as the outermost proxy saw it. */
const requestedHost = ({ request, forwardedHost }: Pick<Exchange, 'request' | 'forwardedHost'>): Host | null =>
  parseHost(forwardedHost || request.headers.get('host') || '')

/**
 * Returns the DID document of the service itself under its present or a former DID, as JSON. It names the endpoint and
 * no key, because the service signs nothing as this DID.
 */
function serverDocument({ config: { publicUrl } }: Context, did: Did): string {
  const { type, endpoint } = pdsService(publicUrl)
  return JSON.stringify({
    '@context': ['https://www.w3.org/ns/did/v1'],
    id: did,
    service: [{ id: `#${PDS_SERVICE_NAME}`, type, serviceEndpoint: endpoint }],
  })
}

export const wellKnownRoutes = [
  route('GET', '/.well-known/did.json', {
    async handler(call) {
      const { ctx } = call
      const host = requestedHost(call)
      const did = host && didWebOfHost(host.name + host.port)
      const document =
        did && isOwnDid(ctx.config, did) ? serverDocument(ctx, did) : did && (await hostedDocument(ctx, did))
      // The same answer for all other hosts, because it must not reveal which accounts exist.
      if (document === null) return new Response(null, { status: 404 })
      // Not cached: once a document is no longer served here, a cached copy must not open sessions
      // (`signing-authority.ts`).
      return new Response(document, {
        headers: { 'Content-Type': 'application/did+json', 'Cache-Control': 'no-store' },
      })
    },
  }),
  route('GET', '/.well-known/atproto-did', {
    async handler(call) {
      const handle = parseHandle(requestedHost(call)?.name ?? '')
      const account = handle && (await accountAt(call.ctx.db, handle))
      if (!account) throw new Refusal(404, 'NotFound', 'User not found')
      // Not cached: a proxy that trusts its clients about the host could answer for one handle with the cached proof of
      // another.
      return new Response(account.did, { headers: { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store' } })
    },
  }),
  /**
   * A reverse proxy calls this before it orders a certificate, for any name that a client has used in a handshake. Not
   * limited: a stranger who tries many names would use up the limit of the proxy and of all programs on the same
   * machine.
   */
  route('GET', '/tls-check', {
    unlimited: true,
    async handler(call) {
      const { ctx, url } = call
      if (!call.isOfProxy) await charge(call, 'globalIp')
      const domain = url.searchParams.get('domain')
      const handle = domain ? parseHandle(domain) : null
      if (!domain) throw invalidRequest('bad or missing domain query param')
      if (
        [ctx.config.publicUrl, ...ctx.config.formerUrls].some((url) => new URL(url).hostname === domain.toLowerCase())
      )
        return { success: true }
      const did = didWebOfHost(domain)
      if (did && (await hostedDocument(ctx, did)) !== null) return { success: true }
      if (!handle || !isServedHandle(ctx, handle)) throw invalidRequest('handles are not provided on this domain')
      const account = await accountAt(ctx.db, handle)
      if (!account || !activityOf(account).active) throw notFound('handle not found for this domain')
      return { success: true }
    },
  }),
]
