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
import { rpc } from './rpc-guard.ts'

export const proxy: Feature = {
  name: 'proxy',
  passOn: (exchange) =>
    forward(exchange, { service: namedService(exchange.request) ?? appviewService(exchange.ctx.config), caller: null }),
  routes: [
    ...mungedRoutes,
    ...relayRoutes,
    fallback({
      auth: rpc(),
      handler: (call) => forward(call, { service: call.caller.service, caller: call.caller }),
    }),
  ],
}
