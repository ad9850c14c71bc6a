/**
 * Which IP addresses are public unicast addresses. If a stranger chose the target of a request, it may go to no others.
 *
 * IPv4 is public unless a table says otherwise; IPv6 is not unless it is global unicast (2000::/3) and no table says
 * otherwise. Forms that embed an IPv4 address count as that address.
 *
 * Source: IANA special-purpose address registries (RFC 6890 and its updates).
 */

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
].map(parseRange)

const globalUnicast = parseRange('2000::/3')
const reservedIpv6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
].map(parseRange)

/** IPv6 ranges that carry an IPv4 address, and how many bits follow it. */
const embeddings = [
  { range: parseRange('::ffff:0:0/96'), trailingBits: 0n }, // IPv4-mapped
  { range: parseRange('2002::/16'), trailingBits: 80n }, // 6to4
]

interface Address {
  bits: 32 | 128
  value: bigint
}
interface Range {
  start: Address
  prefix: number
}

/** Also returns false for text that is not an IP address. Zone identifiers (`fe80::1%eth0`) are not accepted. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && isPublic(address)
}

function isPublic(address: Address): boolean {
  if (address.bits === 32) return !reservedIpv4.some((range) => contains(range, address))
  const embedding = embeddings.find(({ range }) => contains(range, address))
  if (embedding) return isPublic({ bits: 32, value: (address.value >> embedding.trailingBits) & 0xffff_ffffn })
  return contains(globalUnicast, address) && !reservedIpv6.some((range) => contains(range, address))
}

/** 127/8, ::1, and 127/8 in its IPv4-mapped form. */
export function isLoopbackAddress(text: string): boolean {
  const address = parseAddress(text)
  return address !== null && loopback.some((range) => contains(range, address))
}

const loopback = ['127.0.0.0/8', '::1/128', '::ffff:127.0.0.0/104'].map(parseRange)

export const isIpAddress = (text: string): boolean => parseAddress(text) !== null

function contains({ start, prefix }: Range, address: Address): boolean {
  return start.bits === address.bits && (start.value ^ address.value) >> BigInt(start.bits - prefix) === 0n
}

function parseRange(text: string): Range {
  const [base = '', prefix] = text.split('/')
  return { start: parseAddress(base)!, prefix: Number(prefix) }
}

function parseAddress(text: string): Address | null {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

function parseIpv4(text: string): Address | null {
  const octets = text.split('.')
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255))
    return null
  return { bits: 32, value: octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n) }
}

function parseIpv6(text: string): Address | null {
  const halves = withHexTail(text)?.split('::')
  if (!halves || halves.length > 2) return null
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail]
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null
  return { bits: 128, value: groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n) }
}

/** Rewrite a dotted-quad ending (`::ffff:1.2.3.4`) as two hexadecimal groups. */
function withHexTail(text: string): string | null {
  const dotted = /^(.*:)([0-9.]+)$/.exec(text)
  if (!dotted || !dotted[2]!.includes('.')) return text
  const tail = parseIpv4(dotted[2]!)
  return tail && `${dotted[1]}${(tail.value >> 16n).toString(16)}:${(tail.value & 0xffffn).toString(16)}`
}

/**
 * The network of an address, /24 or, for IPv6, /48: coarse enough to stand for many people. Null if the text is not an
 * address.
 */
export function networkOf(text: string): string | null {
  const address = parseAddress(text)
  if (address === null) return null
  if (address.bits === 32) return `${[24n, 16n, 8n].map((shift) => (address.value >> shift) & 0xffn).join('.')}.0/24`
  const groups = [112n, 96n, 80n].map((shift) => ((address.value >> shift) & 0xffffn).toString(16))
  while (groups.at(-1) === '0') groups.pop()
  return `${groups.join(':')}::/48`
}
