/** The host that a request is for, from its `Host` header. What no URL can be built with is no host. */

export interface Host {
  /** Lower case, without port and without the dot that ends a fully qualified name; IPv6 addresses in brackets. */
  name: string
  /** With the colon; empty when there is none, or the default one. */
  port: string
}

/**
 * RFC 9112 section 3.2, RFC 3986 section 3.2.2, narrowed to names as they are deployed: no percent-encoding and no
 * `!$&'()*+,;=`. So two headers, which the runtime joins by a comma, are no host either.
 */
const pattern = /^([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|\[[0-9a-f:.]+\])(:\d{1,5})?$/i

export function parseHost(header: string): Host | null {
  const match = pattern.exec(header)
  // The pattern lets through what is no address, no port or no punycode.
  if (!match || !URL.canParse(`http://${header}`)) return null
  const [, name = '', port = ''] = match
  return { name: name.toLowerCase().replace(/\.$/, ''), port: port === ':443' || port === ':80' ? '' : port }
}
