import type { Config } from './config.ts'

type Place = Pick<Config, 'bindAddress' | 'port'> & { readonly tls: Pick<Config['tls'], 'mode'> }

/**
 * Returns the address at which `port` is open. A server that encrypts connections itself accepts unencrypted ones from
 * this machine only: from commands and health checks.
 */
export const plainAddress = ({ bindAddress, tls }: Place): string => (tls.mode === 'off' ? bindAddress : '127.0.0.1')

/** Returns the URL at which this machine reaches the server directly, bypassing the reverse proxy. */
export function ownUrl(config: Place): string {
  const address = plainAddress(config)
  const host = address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
  return `http://${host.includes(':') ? `[${host}]` : host}:${config.port}`
}
