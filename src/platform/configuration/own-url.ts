import type { Config } from './config.ts'

/** Where this machine reaches the server of a configuration, without the proxy in front of it. */
export function ownUrl({ bindAddress, port }: Pick<Config, 'bindAddress' | 'port'>): string {
  const host = bindAddress === '0.0.0.0' || bindAddress === '::' ? '127.0.0.1' : bindAddress
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
