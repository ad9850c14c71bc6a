/** Addresses of host names from the hosts file of the operating system. */
import { readFileSync, statSync } from 'node:fs'
import { isIpAddress } from '../../protocol/ip-address.ts'

export const HOSTS_PATH =
  process.platform === 'win32'
    ? `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts`
    : '/etc/hosts'

/** Rereads the file when it has changed. A missing file counts as empty. */
export class HostsFile {
  #addresses = new Map<string, string[]>()
  #version = ''

  constructor(readonly path: string) {}

  /** Returns the addresses of a host in the order of the file; empty if the file does not name it. */
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

/** Parses lines of `address name alias…`. A number sign starts a comment. Returns addresses by name. */
export function parseHosts(text: string): Map<string, string[]> {
  const addresses = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    if (!isIpAddress(address)) continue
    for (const name of names) addresses.set(name, [...(addresses.get(name) ?? []), address])
  }
  return addresses
}
