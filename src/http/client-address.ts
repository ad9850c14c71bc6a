/** Which address a request comes from. */
import { isIP } from 'node:net'

/** `::ffff:192.0.2.1` is what a dual-stack listener calls an IPv4 peer. */
export const normalizeAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '').toLowerCase()

/** Loopback, link-local, private and unique-local addresses: where a reverse proxy of ours may stand. */
export function isNear(address: string): boolean {
  if (isIP(address) === 4) return /^(127|10)\.|^192\.168\.|^169\.254\.|^172\.(1[6-9]|2\d|3[01])\./.test(address)
  return address === '::1' || /^fe[89ab]/.test(address) || /^f[cd]/.test(address)
}

/**
 * The client's address. A peer nearby is taken for a proxy: `X-Forwarded-For` is read from the right, skipping
 * addresses nearby. A public peer's header is ignored. With nothing usable, the peer itself.
 */
export function clientAddress(peer: string, forwardedFor: string | null): string {
  const direct = normalizeAddress(peer)
  if (forwardedFor === null || !isNear(direct)) return direct
  const hops = forwardedFor.split(',').map((hop) => normalizeAddress(hop.trim()))
  return hops.reverse().find((hop) => isIP(hop) !== 0 && !isNear(hop)) ?? direct
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
