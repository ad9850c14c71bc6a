/** Parses email addresses: one mailbox at one host name, in the common form. */

/** RFC 5321 section 4.5.3.1: limits of the whole address and of the part before the `@`. */
const MAX_CHARS = 254
const MAX_LOCAL_CHARS = 64
const localPart = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const hostPattern = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/

/**
 * Returns the address in lower case, or null if it is invalid. Rejects quoted names, address literals and non-ASCII
 * characters.
 */
export function parseEmailAddress(text: string): string | null {
  const address = text.toLowerCase()
  const at = address.lastIndexOf('@')
  const [local, host] = [address.slice(0, at), address.slice(at + 1)]
  return at > 0 &&
    address.length <= MAX_CHARS &&
    local.length <= MAX_LOCAL_CHARS &&
    localPart.test(local) &&
    hostPattern.test(host)
    ? address
    : null
}
