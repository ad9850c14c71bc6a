/** Redirect URIs: where the browser may be sent back to. Source: RFC 8252; atproto "OAuth", "Clients". */
import { isIpAddress } from './ip-address.ts'
import { hasLongHost } from './url-host.ts'

/**
 * Whether a text contains only visible ASCII characters, as every URI does (RFC 3986, section 2). Other characters
 * cannot be sent in the `Location` header, and a host of many combining marks takes a URL parser a millisecond.
 */
export const isUriText = (text: string): boolean => /^[!-~]+$/.test(text)

export const isLoopbackHost = (hostname: string): boolean => hostname === '127.0.0.1' || hostname === '[::1]'

/** Whether the host is a public domain name: neither an IP address nor a name of a local network. */
export function isPublicHost(hostname: string): boolean {
  if (isIpAddress(hostname.replace(/^\[(.*)\]$/, '$1')) || !hostname.includes('.')) return false
  return !/\.(local|localhost|internal|invalid|onion|home\.arpa)$/.test(hostname)
}

/**
 * Whether a request's redirect URI is registered: the same text, or, for a loopback address registered without a port,
 * the same URL with any port, because a native client listens on whatever port is free (RFC 8252, 7.3).
 */
export function isRegistered(redirectUri: string, registered: readonly string[]): boolean {
  if (registered.includes(redirectUri)) return true
  if (!isUriText(redirectUri) || hasLongHost(redirectUri)) return false
  const asked = URL.parse(redirectUri)
  if (asked === null) return false
  asked.port = ''
  return registered.some((known) => isLoopbackForm(known, asked))
}

/** Whether the registered URI is a loopback address without a port that equals `asked` without its port. */
function isLoopbackForm(known: string, asked: URL): boolean {
  const given = URL.parse(known)
  return given?.protocol === 'http:' && isLoopbackHost(given.hostname) && given.port === '' && asked.href === given.href
}

/** Parameters appended by hand: a URL class would rewrite private-use schemes. */
export function withParameters(
  redirectUri: string,
  mode: 'query' | 'fragment',
  parameters: Record<string, string>,
): string {
  const encoded = new URLSearchParams(parameters).toString()
  if (mode === 'fragment') return `${redirectUri.split('#', 1)[0]}#${encoded}`
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${encoded}`
}
