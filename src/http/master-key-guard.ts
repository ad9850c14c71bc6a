import type { Config } from '../platform/configuration/config.ts'
import type { Guard } from './endpoint.ts'
import { serviceUnavailable } from './errors.ts'

/**
 * Guards what is offered only if the operator has configured a master key, which is kept apart from the data. Throws
 * `ServiceUnavailable` if there is none; a key that the server made for itself does not count.
 */
export function requireMasterKey({ config }: { config: Pick<Config, 'signingKeyMasterKey'> }): void {
  if (config.signingKeyMasterKey === null) throw serviceUnavailable('This server has no master key configured')
}

/**
 * Returns a guard that throws `ServiceUnavailable` before it looks at the credential, unless a master key is
 * configured.
 */
export const underMasterKey = <Caller>(guard: Guard<Caller>): Guard<Caller> => ({
  ...guard,
  check(exchange) {
    requireMasterKey(exchange.ctx)
    return guard.check(exchange)
  },
})
