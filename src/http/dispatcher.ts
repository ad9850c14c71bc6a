/**
 * The dispatcher turns a request and its peer into a response. It knows nothing of sockets or HTTP libraries: a
 * listener calls it, and so may a test.
 */
import type { Context } from '../platform/context.ts'
import { inRequest } from '../platform/running/request-scope.ts'
import { isRead, type Endpoint } from './endpoint.ts'
import { notFound } from './errors.ts'
import { RequestExchange } from './exchange.ts'
import { chargeDeclared } from './limiting.ts'
import type { Peer } from './peer.ts'
import { failure, isPage, preflight, redirection, success, unsentFile } from './reply.ts'
import { Hosts } from './site.ts'
import { nsidOf, pathOf, targetsOf, XRPC_PREFIX, type Target } from './targets.ts'

/** How often `stop` checks whether every request has ended. */
const STOP_POLL_MILLIS = 5

export interface Dispatcher {
  dispatch(request: Request, peer: Peer): Promise<Response>
  /** Returns what to send instead of a response whose file cannot be opened. */
  unsent(error: unknown): Response
  /** Refuse new requests with 503, and wait at most `graceMillis` for those in progress. */
  stop(graceMillis: number): Promise<void>
}

export function createDispatcher(ctx: Context, endpoints: readonly Endpoint[]): Dispatcher {
  const { methods, routes, unserved, nowhere } = targetsOf(endpoints)
  const hosts = new Hosts(() => ctx.config)
  const logsRequests = ctx.log.writes('debug')
  let running = 0
  let stopping = false

  /** The steps that every request goes through, whatever its target. */
  const answer = async (exchange: RequestExchange, target: Target): Promise<Response> => {
    const startedAt = logsRequests ? performance.now() : 0
    const { request, rawPath } = exchange
    const site = hosts.siteAt(request.headers.get('host'))
    if (stopping) return new Response('shutting down\n', { status: 503, headers: { Connection: 'close' } })
    // The runtime builds the URL from the Host header, and the path is taken from that URL: a bad Host could forge a
    // path.
    if (site === null) return badHost()
    if (request.method === 'OPTIONS') return preflight(exchange.surface, request)
    const route = target.name
    const span = ctx.tracing?.request({
      method: request.method,
      route,
      target: rawPath,
      traceparent: request.headers.get('traceparent'),
    })
    let response: Response | null = null
    running++
    try {
      const charged = chargeDeclared(exchange, target.limits)
      if (charged) await charged
      if (site === 'handle' && !rawPath.startsWith('/.well-known/')) throw notFound()
      if (site === 'former' && isPage(exchange) && isRead(request)) return (response = redirection(exchange))
      return (response = success(exchange, await target.run(exchange)))
    } catch (error) {
      return (response = await failure(exchange, error))
    } finally {
      running--
      const status = response?.status ?? 500
      ctx.metrics.request(route, status)
      ctx.loop.leave(route)
      span?.end(status)
      if (logsRequests) logRequest(ctx, request, { route, status, startedAt })
    }
  }

  const enter = (
    request: Request,
    peer: Peer,
    path: string,
    nsid: string | null,
    target: Target,
    params?: Record<string, string>,
  ) => {
    const exchange = new RequestExchange(ctx, request, peer, path, nsid, target.name, target.spec, params)
    return inRequest(exchange, answer, exchange, target)
  }

  return {
    dispatch(request, peer) {
      const path = pathOf(request.url)
      const nsid = path.startsWith(XRPC_PREFIX) ? nsidOf(path) : null
      const method = nsid === null ? undefined : methods.get(nsid)
      if (method !== undefined)
        return enter(
          request,
          peer,
          path,
          nsid,
          method.upgrade !== null && asksForSocket(request) ? method.upgrade : method,
        )
      const route = routes.find(request.method, path)
      if (route !== null) return enter(request, peer, path, null, route.value, route.params)
      return enter(request, peer, path, nsid, nsid === null ? nowhere : unserved)
    },
    unsent: (error) => unsentFile(ctx, error),
    async stop(graceMillis) {
      stopping = true
      ctx.signals.stopping.notify()
      const deadline = performance.now() + graceMillis
      while (running > 0 && performance.now() < deadline) await Bun.sleep(STOP_POLL_MILLIS)
    },
  }
}

export const badHost = () => new Response('The Host header is missing or names no host\n', { status: 400 })

/** `startedAt` is of `performance.now()`. */
export function logRequest(
  { log }: Context,
  { method }: Request,
  { route, status, startedAt }: { route: string; status: number; startedAt: number },
): void {
  const durationMillis = Math.round((performance.now() - startedAt) * 1000) / 1000
  log.debug('request handled', { method, route, status, durationMillis })
}

const asksForSocket = (request: Request): boolean => request.headers.get('upgrade')?.toLowerCase() === 'websocket'
