/** Parses the `Host` header. A host that cannot be part of a URL is rejected. */

export interface Host {
  /** Lower-cased, without the port and the trailing dot of a fully qualified name; an IPv6 address is in brackets. */
  name: string
  /** With the colon; empty if absent or a default port. */
  port: string
}

/**
 * RFC 9112 section 3.2 and RFC 3986 section 3.2.2, narrowed to names in actual use: no percent-encoding and no
 * `!$&'()*+,;=`. This also rejects two `Host` headers, which the runtime joins with a comma.
 */
const pattern = /^([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

/** Returns the host, or null if the header is not a valid one. */
export function parseHost(header: string): Host | null {
  const match = pattern.exec(header)
  // The pattern alone accepts invalid addresses, ports and punycode.
  if (!match || !URL.canParse(`http://${header}`)) return null
  const [, name = '', port = ''] = match
  return { name: name.toLowerCase().replace(/\.$/, ''), port: port === ':443' || port === ':80' ? '' : port }
}
