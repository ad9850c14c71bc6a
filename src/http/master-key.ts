import type { Config } from '../platform/configuration/config.ts'
import { serviceUnavailable } from './errors.ts'

/**
 * For what is offered only under a key that the operator configured, and keeps apart from the data. Throws
 * `ServiceUnavailable` if there is none; the key that the server made for itself does not count.
 */
export function requireMasterKey({ config }: { config: Pick<Config, 'signingKeyMasterKey'> }): void {
  if (config.signingKeyMasterKey === null) throw serviceUnavailable('This server has no master key configured')
}
