/** The authorization request of an app. Pages for people who are not signed in carry it along, and return to it. */
import { WANTED_LANGUAGE } from '../../../http/page-language.ts'
import { listedLanguage } from '../../../protocol/languages.ts'
import { HAS_ACCOUNT } from '../oauth/oauth.ts'

/**
 * Returns the query parameters that name the request from which the person came, with the language of its app; null if
 * there is none.
 */
export function requestOf(given: URLSearchParams): Record<string, string> | null {
  const [requestUri, clientId] = [given.get('request_uri'), given.get('client_id')]
  if (!requestUri || !clientId) return null
  const language = listedLanguage(given.get(WANTED_LANGUAGE) ?? '')
  return { request_uri: requestUri, client_id: clientId, ...(language && { [WANTED_LANGUAGE]: language }) }
}

/** Returns the path with the parameters of the request, and with further ones. */
export function withRequest(path: string, given: URLSearchParams, more: Record<string, string> = {}): string {
  const query = new URLSearchParams({ ...requestOf(given), ...more }).toString()
  return query === '' ? path : `${path}?${query}`
}

/** Where a person who now has an account continues: at the app's request, or else at `otherwise`. */
export const returnPath = (given: URLSearchParams, otherwise: string, hasAccount = 'yes'): string =>
  requestOf(given) ? withRequest('/oauth/authorize', given, { [HAS_ACCOUNT]: hasAccount }) : otherwise
