/** Decides who may have a request forwarded, and to which service. */
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { invalidRequest, invalidToken, methodNotImplemented } from '../../../http/errors.ts'
import { queryOf } from '../../../http/query.ts'
import {
  isDraftAudience,
  isDraftMethod,
  isProtectedMethod,
  isPublicMethod,
  isReadByName,
} from '../../../protocol/guarded-methods.ts'
import { hasAddressInSpace, isInSpace } from '../../../protocol/space-address.ts'
import { access, mayHaveCalled, refusePrivate, requirePermission } from '../../access/auth/auth.ts'
import type { AccessCaller } from '../../access/callers/callers.ts'
import { serviceText, type ServiceName } from './proxy-header.ts'
import { defaultService, namedService } from './upstream-services.ts'
import type { RequiredScope } from '../../../http/credential.ts'

/** The caller, with the service that the request names, or else the default service of its method. */
export type RpcCaller = AccessCaller & { service: ServiceName }

interface RpcOptions extends Pick<RequiredScope, 'sessions' | 'handlerRevalidates'> {
  /** Another method of the service that the token is used for, which the caller must be granted too. */
  also?: string
}

/**
 * Guard of requests that are forwarded, whose handler revalidates the caller (`ask`). It checks the syntax of
 * `atproto-proxy` before it identifies the caller. The named service is resolved later, when the request is forwarded.
 *
 * Throws `InvalidToken` if the method must not be called with a service token or by this caller, `MethodNotImplemented`
 * for draft methods and services, `InvalidRequest` if the header is malformed, if a parameter of a public method names
 * a space, or if no service is configured for the method, what `requireRpc` throws, and what `access` throws.
 */
export function rpc({ also, handlerRevalidates = true, ...options }: RpcOptions = {}): Guard<RpcCaller> {
  const holder = access({ ...options, handlerRevalidates, grants: 'any', agents: true })
  return {
    ...holder,
    async check(exchange) {
      const nsid = exchange.nsid!
      if (isProtectedMethod(nsid)) throw invalidToken('Bad token method')
      const named = namedService(exchange.request)
      if (isDraftMethod(nsid) || (named !== null && isDraftAudience(serviceText(named)))) throw methodNotImplemented()
      if (isPublicMethod(nsid)) refuseSpaces(queryOf(exchange.request.url).map(([, text]) => text))
      const caller = await holder.check(exchange)
      if (!mayHaveCalled(caller, nsid)) throw invalidToken('Bad token method')
      if (exchange.request.method !== 'POST' || isReadByName(nsid)) refusePrivate(caller, nsid)
      const service = named ?? defaultService(exchange.ctx.config, nsid)
      if (service === null) throw invalidRequest(`No service configured for ${nsid}`)
      if (caller.credential === 'agent' && named === null && isOpenRead(exchange.request.method, nsid))
        return { ...caller, service }
      requireRpc(caller, nsid, service)
      if (also !== undefined) requireRpc(caller, also, service)
      return { ...caller, service }
    },
  }
}

/** Throws `InvalidRequest` if a text names a space: the service would learn what is shared with few people. */
export function refuseSpaces(texts: Iterable<string>): void {
  for (const text of texts) if (isInSpace(text)) throw inSpace()
}

const inSpace = () => invalidRequest('a request that names a space is not forwarded to services of the public network')

/** Longest JSON that is sent to a service of the public network. */
const MAX_JSON_BYTES = 1024 ** 2
const jsonPattern = /^application\/(?:[\w.-]+\+)?json$/

/**
 * Returns the JSON body of a request for a service of the public network, which has been read to see that it names no
 * space, and null for any other body, which may stream. Throws `InvalidRequest` if it names one, and what reading
 * throws.
 */
export async function publicJson({ request, nsid, body }: Exchange): Promise<string | null> {
  if (request.method !== 'POST' || !isPublicMethod(nsid!) || !jsonPattern.test(body.contentType ?? '')) return null
  const text = await body.text(MAX_JSON_BYTES)
  refuseSpacesIn(nsid!, text)
  return text
}

/** Throws `InvalidRequest` if a JSON text for a method of the public network names a space. */
export function refuseSpacesIn(nsid: string, json: string): void {
  if (isPublicMethod(nsid) && hasAddressInSpace(json)) throw inSpace()
}

/** Throws `ScopeMissingError` (apps) or `InsufficientScope` (agents) if the grant lacks this method of this service. */
export function requireRpc(caller: AccessCaller, lxm: string, service: ServiceName): void {
  requirePermission(caller, (permissions) => permissions.assertRpc({ lxm, aud: serviceText(service) }))
}

/**
 * The account's preferences, which this server keeps. Matches any spelling, because another service may ignore the case
 * of names.
 */
const preferencesMethod = /^app\.bsky\.actor\.getpreferences$/i

/**
 * Whether an agent may call the method of the configured AppView without a scope: every read, except of preferences.
 */
export const isOpenRead = (method: string, nsid: string): boolean =>
  method !== 'POST' && nsid.startsWith('app.bsky.') && !preferencesMethod.test(nsid)
