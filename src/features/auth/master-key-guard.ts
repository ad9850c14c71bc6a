/** Keys of identities are made only under a master key that the operator has configured, never under the key file. */
import type { Exchange, Guard } from '../../http/endpoint.ts'
import { serviceUnavailable } from '../../http/errors.ts'

/** Throws `ServiceUnavailable` unless a master key is configured. */
export function requireMasterKey({ ctx }: Pick<Exchange, 'ctx'>): void {
  if (ctx.config.signingKeyMasterKey === null) throw serviceUnavailable('No master key is configured')
}

/** Returns a guard that requires a configured master key before it looks at the credential. */
export const underMasterKey = <Caller>(guard: Guard<Caller>): Guard<Caller> => ({
  ...guard,
  check(exchange) {
    requireMasterKey(exchange)
    return guard.check(exchange)
  },
})
