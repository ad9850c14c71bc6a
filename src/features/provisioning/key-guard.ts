import type { Guard } from '../../http/endpoint.ts'
import { requireMasterKey } from '../../http/master-key.ts'

/** Returns a guard that throws `ServiceUnavailable` before it looks at the credential, unless a master key is configured. */
export const underMasterKey = <Caller>(guard: Guard<Caller>): Guard<Caller> => ({
  ...guard,
  check(exchange) {
    requireMasterKey(exchange.ctx)
    return guard.check(exchange)
  },
})
