/** The authorization request of an app, which pages for people who are not signed in carry along and return to. */
import { WANTED_LANGUAGE } from '../../../http/page-language.ts'
import { listedLanguage } from '../../../protocol/languages.ts'
import { HAS_ACCOUNT } from '../oauth/oauth.ts'

/** Returns the names of the request that the person came from, with the language of its app; null if there is none. */
export function requestOf(given: URLSearchParams): Record<string, string> | null {
  const [requestUri, clientId] = [given.get('request_uri'), given.get('client_id')]
  if (!requestUri || !clientId) return null
  const language = listedLanguage(given.get(WANTED_LANGUAGE) ?? '')
  return { request_uri: requestUri, client_id: clientId, ...(language && { [WANTED_LANGUAGE]: language }) }
}

/** The path with the names of the request, and with other parameters. */
export function withRequest(path: string, given: URLSearchParams, more: Record<string, string> = {}): string {
  const query = new URLSearchParams({ ...requestOf(given), ...more }).toString()
  return query === '' ? path : `${path}?${query}`
}

/** Where the person continues who has an account now: at the app's request, or else at `otherwise`. */
export const returnPath = (given: URLSearchParams, otherwise: string, hasAccount = 'yes'): string =>
  requestOf(given) ? withRequest('/oauth/authorize', given, { [HAS_ACCOUNT]: hasAccount }) : otherwise
