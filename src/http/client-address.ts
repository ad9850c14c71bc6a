/** Which address a request comes from. */
import { BlockList, isIP } from 'node:net'

/** `::ffff:192.0.2.1` is what a dual-stack listener calls an IPv4 peer. */
const normalizeAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').toLowerCase()

/** Loopback, link-local, private and unique-local addresses: where a reverse proxy of ours may stand. */
export function isNear(address: string): boolean {
  if (isIP(address) === 4) return /^(127|10)\.|^192\.168\.|^169\.254\.|^172\.(1[6-9]|2\d|3[01])\./.test(address)
  return address === '::1' || /^fe[89ab]/.test(address) || /^f[cd]/.test(address)
}

/**
 * The client's address. A peer nearby, or one of the operator's `proxies`, is taken for a proxy: `X-Forwarded-For` is
 * read from the right, skipping proxies. Any other peer's header is ignored. With nothing usable, the peer itself.
 */
export function clientAddress(peer: string, forwardedFor: string | null, proxies: BlockList | null = null): string {
  const direct = normalizeAddress(peer)
  const isProxy = (address: string) => isNear(address) || (proxies?.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') ?? false)
  if (forwardedFor === null || !isProxy(direct)) return direct
  const hops = forwardedFor.split(',').map((hop) => normalizeAddress(hop.trim()))
  return hops.reverse().find((hop) => isIP(hop) !== 0 && !isProxy(hop)) ?? direct
}

/** The operator's proxies, `address/prefix` each; null when there are none. */
export function proxyList(networks: readonly string[]): BlockList | null {
  if (networks.length === 0) return null
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  return list
}

/** What limits count by: the address, or the /64 network of an IPv6 client. */
export function limitKey(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${groups.join(':')}::/64`
}
