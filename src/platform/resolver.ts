/** Name resolution, as a handle: tests answer from a table instead of the network. */
import { lookup, Resolver as DnsClient } from 'node:dns/promises'
import { Generations } from '../protocol/generations.ts'

export interface Resolver {
  /** Every IPv4 and IPv6 address of a host. Throws when there is none. */
  addresses(host: string): Promise<string[]>
  /** Every TXT record of a name, its parts joined. Empty when there is none; throws when nobody answers in time. */
  texts(name: string): Promise<string[]>
}

const textTimeoutMillis = 3000
const absentCodes = new Set(['ENOTFOUND', 'ENODATA'])

/** How long a host keeps its addresses here. Whoever connects checks them each time, so an old answer is safe. */
const addressMillis = 30_000
const maxKeptHosts = 1000

/** Host addresses come from the operating system (so `/etc/hosts` counts), TXT records from its name servers. */
export function systemResolver(): Resolver {
  const dns = new DnsClient()
  const kept = new Generations<{ addresses: Promise<string[]>; until: number }>(maxKeptHosts)
  return {
    addresses(host) {
      const known = kept.get(host)
      if (known && known.until > performance.now()) return known.addresses
      const addresses = lookUpAddresses(host)
      kept.set(host, { addresses, until: performance.now() + addressMillis })
      addresses.catch(() => kept.delete(host))
      return addresses
    },
    texts: (name) => queryTexts(dns, name),
  }
}

async function lookUpAddresses(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true, order: 'ipv4first' })
  return found.map(({ address }) => address)
}

async function queryTexts(dns: DnsClient, name: string): Promise<string[]> {
  // The runtime waits for silent name servers for minutes, whatever timeout it is given.
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no name server answered for ${name}`)), textTimeoutMillis)
  try {
    const records = await Promise.race([dns.resolveTxt(name), late.promise])
    return records.map((parts) => parts.join(''))
  } catch (error) {
    if (error instanceof Error && absentCodes.has((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  } finally {
    clearTimeout(timer)
  }
}
