/**
 * The names by which the service is known: its own, and those that it had before it was renamed. Tokens, identities and
 * apps carry a former name for a while, so everything that compares names accepts them; whatever the service writes has
 * the present one.
 */
import type { Did } from '../../protocol/identifiers.ts'

/** As in the configuration. */
interface Names {
  readonly publicUrl: string
  readonly serverDid: Did
  readonly formerUrls: readonly string[]
}

/** Returns the did:web of a public address: `did:web:<host>`, with a port as `%3A<port>`. */
export const webDid = (publicUrl: string): Did => `did:web:${encodeURIComponent(new URL(publicUrl).host)}` as Did

export const isOwnDid = ({ serverDid, formerUrls }: Pick<Names, 'serverDid' | 'formerUrls'>, did: unknown): boolean =>
  did === serverDid || formerUrls.some((url) => did === webDid(url))

/** Whether a URL is that of the service, to the letter, as in a token. */
export const isOwnOrigin = (
  { publicUrl, formerUrls }: Pick<Names, 'publicUrl' | 'formerUrls'>,
  url: unknown,
): boolean => url === publicUrl || formerUrls.some((former) => url === former)

/** The same, with or without a slash at the end, as people write it. */
export const isOwnUrl = (names: Pick<Names, 'publicUrl' | 'formerUrls'>, url: unknown): boolean =>
  typeof url === 'string' && isOwnOrigin(names, url.replace(/\/$/, ''))

/** Returns the URL of the service as the client knows it, by the `Host` that it has sent. */
export function askedUrl({ publicUrl, formerUrls }: Pick<Names, 'publicUrl' | 'formerUrls'>, request: Request): string {
  if (formerUrls.length === 0) return publicUrl
  const host = request.headers.get('host')
  return formerUrls.find((url) => new URL(url).host === host) ?? publicUrl
}
