/** Determines which address a request comes from. */
import { BlockList, isIP } from 'node:net'
import type { Client } from '../base/fair-queue.ts'
import { leadingGroups } from '../protocol/ip-address.ts'

/** A dual-stack listener reports an IPv4 peer as `::ffff:192.0.2.1`. */
const normalizeAddress = (address: string): string =>
  address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').toLowerCase()

/** Whether an address is loopback, link-local, private or unique-local: a peer there is trusted as a reverse proxy. */
export function isNear(address: string): boolean {
  if (isIP(address) === 4) return /^(127|10)\.|^192\.168\.|^169\.254\.|^172\.(1[6-9]|2\d|3[01])\./.test(address)
  return address === '::1' || /^fe[89ab]/.test(address) || /^f[cd]/.test(address)
}

/** Whether what a direct peer says of its clients is believed. `isDirect` as in `clientAddress`. */
export const isProxy = (peer: string, proxies: BlockList | null, isDirect = false): boolean =>
  isTrusted(normalizeAddress(peer), proxies, isDirect)

const isTrusted = (address: string, proxies: BlockList | null, isDirect: boolean): boolean =>
  (!isDirect && isNear(address)) || (proxies?.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') ?? false)

/** Replaces the address of a client whose proxy does not reveal it. All such clients share one budget. */
const UNKNOWN = 'unknown'

/**
 * Returns the client's address, or `unknown`. A peer on a private network, or in the operator's `proxies`, is trusted
 * as a proxy: its forwarding header is read from right to left, skipping other trusted proxies. An unreadable hop ends
 * the walk, because the client may have written everything to its left. Headers from any other peer are ignored.
 *
 * `isDirect`: clients connect to the listener themselves, so peers on a private network are believed no more than
 * others.
 *
 * `X-Forwarded-For` wins over `Forwarded`: nearly every proxy writes the former, and then passes the latter through as
 * the client sent it.
 */
export function clientAddress(
  peer: string,
  headers: Pick<Headers, 'get'>,
  proxies: BlockList | null = null,
  isDirect = false,
): string {
  const direct = normalizeAddress(peer)
  if (!isTrusted(direct, proxies, isDirect)) return direct
  const hops = headers.get('x-forwarded-for')?.split(',') ?? forwardedHops(headers.get('forwarded') ?? '')
  if (hops === null) return UNKNOWN
  for (const hop of hops.reverse()) {
    if (hop.trim() === '') continue // empty list elements are ignored: RFC 9110 section 5.6.1
    const address = hopAddress(hop.trim())
    if (address === null) return UNKNOWN
    if (!isTrusted(address, proxies, isDirect)) return address
  }
  return direct
}

/** An address as proxies write it: with or without a port, and IPv6 with or without brackets. */
const hopPattern = /^"?(?:\[([0-9a-f:.]+)\]|(\d+\.\d+\.\d+\.\d+)|([0-9a-f:.]+))(?::(?:\d{1,5}|_[\w.-]+))?"?$/i

function hopAddress(hop: string): string | null {
  const match = hopPattern.exec(hop)
  const address = normalizeAddress(match?.[1] ?? match?.[2] ?? match?.[3] ?? '')
  return isIP(address) === 0 ? null : address
}

/** RFC 7239 section 4, which requires quotes around a value with a colon; some proxies omit them. */
const forwardedPair = /\s*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]*))\s*([,;]|$)/y

/**
 * Returns the `for` of each element of a `Forwarded` header, `_` where it is missing, or null if the header is
 * malformed anywhere: a quote left open by the client would swallow what the proxies added.
 */
function forwardedHops(header: string): string[] | null {
  const hops: string[] = []
  let hop: string | null = null
  for (let at = 0; at < header.length; at = forwardedPair.lastIndex) {
    forwardedPair.lastIndex = at
    const match = forwardedPair.exec(header)
    if (!match) return null
    const [, name = '', quoted, plain = '', end] = match
    if (name.toLowerCase() === 'for') {
      if (hop !== null) return null
      hop = quoted?.replace(/\\(.)/g, '$1') ?? plain
    }
    if (end === ';') continue
    hops.push(hop || '_')
    hop = null
  }
  return hops
}

/**
 * Returns the operator's proxies, each an address or `address/prefix`, as a list to check against; null if there are
 * none.
 */
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

/** Returns what limits know of a client: its address, or its /64 network for IPv6, and the networks around it. */
export function clientOf(ip: string): Client {
  const family = isIP(ip)
  if (family === 4) {
    const [a, b, c] = ip.split('.')
    return { address: ip, network: `${a}.${b}.${c}.0/24`, provider: `${a}.${b}.0.0/16` }
  }
  if (family === 0) return { address: ip, network: ip, provider: ip }
  const groups = leadingGroups(ip, 4)
  const prefix = (count: number) => groups.slice(0, count).join(':')
  return { address: prefix(4) + SUBNET, network: `${prefix(3)}::/48`, provider: `${prefix(2)}::/32` }
}

const SUBNET = '::/64'

/** Budgets that a /48 network has for its clients together: some customers get all of one, others a /64 of it. */
const BUDGETS_OF_NETWORK = 10

/** A budget that a client uses. It is as large as `times` budgets of a single client. */
export interface ClientBudget {
  key: string
  times: number
}

/**
 * Returns the client's own budget and, for IPv6, that of its network. IPv4 addresses are scarce enough to have budgets
 * of their own.
 */
export function budgetsOf({ address, network }: Client): readonly ClientBudget[] {
  const own = { key: address, times: 1 }
  return address.endsWith(SUBNET) ? [own, { key: network, times: BUDGETS_OF_NETWORK }] : [own]
}
