/** How our own programs name themselves in requests, so that account holders recognise them in lists and mails. */
import { SOFTWARE_NAME, VERSION } from './version.ts'

/** Words from which servers and browsers tell the system. */
const systems: Partial<Record<NodeJS.Platform, string>> = {
  linux: 'Linux',
  darwin: 'Macintosh',
  win32: 'Windows',
  android: 'Android',
}

/** Returns the value of `User-Agent`, such as `holdfast-wallet/1.2.3 (Linux)`. */
export function userAgentHeader(program: 'wallet' | 'agent' | 'cli'): string {
  const system = systems[process.platform]
  return `${SOFTWARE_NAME}-${program}/${VERSION}${system === undefined ? '' : ` (${system})`}`
}
