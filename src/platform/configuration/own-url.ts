import type { Config } from './config.ts'

/** Returns the URL at which this machine reaches the server directly, bypassing the reverse proxy. */
export function ownUrl({ bindAddress, port }: Pick<Config, 'bindAddress' | 'port'>): string {
  const host = bindAddress === '0.0.0.0' || bindAddress === '::' ? '127.0.0.1' : bindAddress
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
