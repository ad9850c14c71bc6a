/** Addresses that mail can be sent to: one mailbox at one host name, in the form people write. */

/** RFC 5321 limits of the whole and of the part before the `@`. */
const MAX_CHARS = 254
const MAX_LOCAL_CHARS = 64
const localPart = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const hostPattern = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/

/** The address in lower case; null when it is none. Accepts no quoted names, address literals or other scripts. */
export function parseEmailAddress(text: string): string | null {
  const address = text.toLowerCase()
  const at = address.lastIndexOf('@')
  const [local, host] = [address.slice(0, at), address.slice(at + 1)]
  return at > 0 && address.length <= MAX_CHARS && local.length <= MAX_LOCAL_CHARS && localPart.test(local) && hostPattern.test(host) ? address : null
}
