/**
 * Forwards methods that this server does not implement to the service that does. Source: atproto "HTTP API (XRPC)",
 * "Service Proxying".
 */
import { fallback } from '../../../http/endpoint.ts'
import type { Feature } from '../../../http/feature.ts'
import { mungedRoutes } from './munged-routes.ts'
import { appviewService, forward } from './proxy.ts'
import { namedService } from './upstream-services.ts'
import { relayRoutes } from './relay-routes.ts'
import { publicJson, refuseSpaces, rpc } from './rpc-guard.ts'

export const proxy: Feature = {
  name: 'proxy',
  async passOn(exchange) {
    refuseSpaces(exchange.url.searchParams.values())
    const service = namedService(exchange.request) ?? appviewService(exchange.ctx.config)
    return forward(exchange, { service, caller: null })
  },
  routes: [
    ...mungedRoutes,
    ...relayRoutes,
    fallback({
      auth: rpc(),
      async handler(call) {
        const { service } = call.caller
        return forward(call, { service, caller: call.caller, text: await publicJson(call) })
      },
    }),
  ],
}
