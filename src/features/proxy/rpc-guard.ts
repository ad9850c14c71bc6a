/** Who may have a request forwarded, and to which service. */
import type { Guard } from '../../http/endpoint.ts'
import { invalidRequest, invalidToken, methodNotImplemented } from '../../http/errors.ts'
import { isDraftAudience, isDraftMethod, isProtectedMethod } from '../../protocol/guarded-methods.ts'
import { access, mayHaveCalled, requirePermission, type AccessCaller, type Demand } from '../auth/auth.ts'
import { serviceText, type ServiceName } from './proxy-header.ts'
import { defaultService, namedService } from './upstream-services.ts'

/** With the service that the request names, or else the one its method goes to. */
export type RpcCaller = AccessCaller & { service: ServiceName }

interface RpcOptions extends Pick<Demand, 'sessions'> {
  /** Another method of the service that is called with the token. */
  also?: string
}

/**
 * For requests that another service answers. The form of the named target is checked before the caller is, and the
 * target is looked up only after that.
 */
export function rpc({ also, ...options }: RpcOptions = {}): Guard<RpcCaller> {
  const holder = access({ ...options, grants: 'any' })
  return {
    ...holder,
    async check(exchange) {
      const nsid = exchange.nsid!
      if (isProtectedMethod(nsid)) throw invalidToken('Bad token method')
      const named = namedService(exchange.request)
      if (isDraftMethod(nsid) || (named !== null && isDraftAudience(serviceText(named)))) throw methodNotImplemented()
      const caller = await holder.check(exchange)
      if (!mayHaveCalled(caller, nsid)) throw invalidToken('Bad token method')
      const service = named ?? defaultService(exchange.ctx.config, nsid)
      if (service === null) throw invalidRequest(`No service configured for ${nsid}`)
      if (caller.credential === 'agent' && named === null && isOpenRead(exchange.request.method, nsid)) return { ...caller, service }
      requireRpc(caller, nsid, service)
      if (also !== undefined) requireRpc(caller, also, service)
      return { ...caller, service }
    },
  }
}

/** Refuses apps and agents that were not granted this method of this service. */
export function requireRpc(caller: AccessCaller, lxm: string, service: ServiceName): void {
  requirePermission(caller, (permissions) => permissions.assertRpc({ lxm, aud: serviceText(service) }))
}

/** Reads that show an account's private state; the rest of the AppView shows what is public. */
const privateReads = [
  'app.bsky.actor.getPreferences',
  'app.bsky.ageassurance.',
  'app.bsky.bookmark.',
  'app.bsky.contact.',
  'app.bsky.draft.',
  'app.bsky.graph.getBlocks',
  'app.bsky.graph.getListBlocks',
  'app.bsky.graph.getListMutes',
  'app.bsky.graph.getMutes',
  'app.bsky.notification.',
]

/** Agents read the AppView like anybody, without a scope that says so. */
export const isOpenRead = (method: string, nsid: string): boolean =>
  method !== 'POST' && nsid.startsWith('app.bsky.') && !privateReads.some((prefix) => nsid.startsWith(prefix))
