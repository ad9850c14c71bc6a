/** A bound on the hosts of untrusted URLs, to be checked before parsing. */

/** No host name has more than 253 characters; a port follows. */
const MAX_AUTHORITY_CHARS = 260

/**
 * Whether the text is a URL with a host that is longer than any host name. Parsing such a URL sorts combining marks, in
 * time quadratic in their number: 0.4 s for 28,000. The parser does not normalise the hosts of other schemes. A text
 * that begins with two slashes also has a host once it is resolved against another URL.
 */
export function hasLongHost(text: string): boolean {
  // As the parser reads a URL: without these characters, and with any number of slashes of either kind.
  const plain = text.replaceAll(/[\t\n\r]/g, '')
  const [, authority = ''] = /^[\0- ]*(?:(?:https?|wss?|ftp|file):|[/\\]{2})[/\\]*([^/\\?#]*)/i.exec(plain) ?? []
  return authority.length > MAX_AUTHORITY_CHARS
}
