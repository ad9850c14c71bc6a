/** Addresses that the operator wrote down for host names, in the file that the operating system reads too. */
import { readFileSync, statSync } from 'node:fs'
import { isIpAddress } from '../../protocol/ip-address.ts'

export const HOSTS_PATH =
  process.platform === 'win32' ? `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts` : '/etc/hosts'

/** Reads the file again once it has changed. A file that is not there names nothing. */
export class HostsFile {
  #addresses = new Map<string, string[]>()
  #version = ''

  constructor(readonly path: string) {}

  /** In the order of the file; empty when it does not name the host. */
  addressesOf(host: string): readonly string[] {
    const stat = statSync(this.path, { throwIfNoEntry: false })
    const version = stat ? `${stat.mtimeMs} ${stat.size}` : ''
    if (version !== this.#version) {
      this.#addresses = stat ? parseHosts(readFileSync(this.path, 'utf8')) : new Map()
      this.#version = version
    }
    return this.#addresses.get(host.toLowerCase()) ?? []
  }
}

/** Lines of `address name alias…`; a number sign begins a comment. */
export function parseHosts(text: string): Map<string, string[]> {
  const addresses = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    if (!isIpAddress(address)) continue
    for (const name of names) addresses.set(name, [...(addresses.get(name) ?? []), address])
  }
  return addresses
}
