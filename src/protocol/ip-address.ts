/**
 * Decides which IP addresses are public unicast addresses. A request whose target a stranger chose may go to no others.
 *
 * IPv4 is public unless a table says otherwise; IPv6 is public only if it is global unicast (2000::/3) and no table
 * says otherwise. Forms that embed an IPv4 address count as that address.
 *
 * The runtime parses addresses and compares them with ranges. Libraries for it are more lenient than a guard may be:
 * `ipaddr.js` reads 010.0.0.1 as 8.0.0.1, and unassigned ranges of IPv6 as public.
 *
 * Source: IANA special-purpose address registries (RFC 6890 and its updates).
 */
import { BlockList, isIP } from 'node:net'

const reservedIpv4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier NAT
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, and cloud metadata services
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]
const reservedIpv6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
]

/** The range of 6to4 (RFC 3056) that embeds a range of IPv4. */
function embedding(range: string): string {
  const [start = '', prefix] = range.split('/')
  const digits = Buffer.from(start.split('.').map(Number)).toString('hex')
  return `2002:${digits.slice(0, 4)}:${digits.slice(4)}::/${16 + Number(prefix)}`
}

/** A range of IPv4 also contains the IPv4-mapped forms of its addresses (::ffff:0:0/96). */
function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [start = '', prefix] = range.split('/')
    list.addSubnet(start, Number(prefix), familyOf(start)!)
  }
  return list
}

const unicast = listOf(['0.0.0.0/0', '2000::/3'])
const reserved = listOf([...reservedIpv4, ...reservedIpv4.map(embedding), ...reservedIpv6])
const loopback = listOf(['127.0.0.0/8', '::1/128'])

/** Null if the text is not an address. Zone identifiers (`fe80::1%eth0`) are not accepted. */
function familyOf(text: string): 'ipv4' | 'ipv6' | null {
  const version = text.includes('%') ? 0 : isIP(text)
  return version === 0 ? null : `ipv${version as 4 | 6}`
}

export const isIpAddress = (text: string): boolean => familyOf(text) !== null

/** Also returns false for text that is not an IP address. */
export function isPublicAddress(text: string): boolean {
  const family = familyOf(text)
  return family !== null && unicast.check(text, family) && !reserved.check(text, family)
}

/** 127/8, ::1, and 127/8 in its IPv4-mapped form. */
export function isLoopbackAddress(text: string): boolean {
  const family = familyOf(text)
  return family !== null && loopback.check(text, family)
}

/** Returns the first groups of an IPv6 address, without leading zeros. `count` is at most 6. */
export function leadingGroups(ip: string, count: number): string[] {
  const [head = '', tail] = ip.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  // An ending in four octets stands for two groups.
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length - (tail.includes('.') ? 1 : 0))
  return [...left, ...Array<string>(zeros).fill('0'), ...right]
    .slice(0, count)
    .map((group) => group.replace(/^0+(?=.)/, ''))
}

/**
 * The network of an address, /24 or, for IPv6, /48: coarse enough to stand for many people. Null if the text is not an
 * address.
 */
export function networkOf(text: string): string | null {
  const family = familyOf(text)
  if (family === null) return null
  if (family === 'ipv4') return `${text.slice(0, text.lastIndexOf('.'))}.0/24`
  const groups = leadingGroups(text.toLowerCase(), 3)
  while (groups.at(-1) === '0') groups.pop()
  return `${groups.join(':')}::/48`
}
