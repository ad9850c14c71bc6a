/**
 * The edge of a reader thread. It handles requests as the dispatcher does, but sends only successful responses. The
 * main thread answers everything else: credentials, writes, refusals, errors, pages and WebSockets. On a machine that
 * follows another one, `follower-edge.ts` takes the place of the main thread.
 */
import { Elsewhere } from '../base/elsewhere.ts'
import type { Context } from '../platform/context.ts'
import { inRequest } from '../platform/running/request-scope.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Endpoint } from './endpoint.ts'
import { RequestExchange } from './exchange.ts'
import { chargeDeclared, takeBackDeclared } from './limiting.ts'
import type { Peer } from './peer.ts'
import { success } from './reply.ts'
import { Hosts } from './site.ts'
import { badHost, logRequest } from './dispatcher.ts'
import { nsidOf, pathOf, targetsOf, XRPC_PREFIX, type Target } from './targets.ts'

/** Headers of requests that may be about more than public data. */
const personalHeaders = ['authorization', 'dpop', 'atproto-proxy', 'upgrade'] as const

export interface ReaderEdge {
  ctx: Context
  endpoints: readonly Endpoint[]
  /** Whether this thread reads all that was acknowledged before the request. */
  isCurrent(): boolean
  /** Has the main thread answer. `failed` says how far this thread came, and why it did not answer. */
  forward(request: Request, peer: Peer, failed?: { exchange: RequestExchange; error: unknown }): Promise<Response>
  /** Whether the main thread charges limits that were charged here. */
  chargesAgain: boolean
  /** A request was answered here. */
  answered(route: string, status: number): void
  /** Whether each request has a line in the log. */
  logsRequests: boolean
}

export function createReaderEdge({
  ctx,
  endpoints,
  isCurrent,
  forward,
  chargesAgain,
  answered,
  logsRequests,
}: ReaderEdge): Pick<Dispatcher, 'dispatch'> {
  const { methods, routes } = targetsOf(endpoints)
  const hosts = new Hosts(() => ctx.config)

  const answer = async (exchange: RequestExchange, target: Target): Promise<Response> => {
    const { request, peer } = exchange
    const startedAt = logsRequests ? performance.now() : 0
    let charged = false
    try {
      await chargeDeclared(exchange, target.limits)
      charged = true
      const response = success(exchange, await target.run(exchange))
      if (response.status >= 400) throw new Elsewhere('it is refused')
      const { name: route } = target
      const { status } = response
      answered(route, status)
      if (logsRequests) logRequest(ctx, request, { route, status, startedAt })
      return response
    } catch (error) {
      // Whatever the error is, the main thread meets it too, and reports it.
      if (charged && chargesAgain) takeBackDeclared(exchange, target.limits)
      return forward(request, peer, { exchange, error })
    }
  }

  return {
    dispatch(request, peer) {
      const { method, headers, url } = request
      const site = hosts.siteAt(headers.get('host'))
      // Such a request may have no valid URL, so it cannot be forwarded.
      if (site === null) return Promise.resolve(badHost())
      if ((method !== 'GET' && method !== 'HEAD') || personalHeaders.some((name) => headers.has(name)))
        return forward(request, peer)
      const path = pathOf(url)
      const nsid = path.startsWith(XRPC_PREFIX) ? nsidOf(path) : null
      const found = nsid === null ? routes.find(method, path) : null
      const target = nsid === null ? found?.value : methods.get(nsid)
      const isServed = site === 'service' || (site === 'handle' && path.startsWith('/.well-known/'))
      if (target === undefined || !isServed || !isCurrent()) return forward(request, peer)
      const exchange = new RequestExchange(ctx, request, peer, path, nsid, target.name, target.spec, found?.params)
      return inRequest(exchange, answer, exchange, target)
    },
  }
}
