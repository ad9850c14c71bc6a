/**
 * The language in which a request is answered: what the person chose on a page, or else what the app asked for, or else
 * what the browser prefers, or else what the operator set.
 */
import type { Config } from '../platform/configuration/config.ts'
import { acceptedLanguage, languages, listedLanguage, type Language } from '../protocol/languages.ts'
import { cookieOf } from './cookies.ts'
import type { Exchange } from './endpoint.ts'

const CHOICE_SECS = 365 * 86_400

const isSecure = ({ publicUrl }: Config): boolean => publicUrl.startsWith('https://')
const cookieName = (config: Config): string => `${isSecure(config) ? '__Host-' : ''}holdfast-language`

/** Headers of the request that decide about the language. */
export const LANGUAGE_HEADERS = 'Accept-Language, Cookie'

type Asker = Pick<Exchange, 'ctx' | 'request'>

/**
 * Parameter in the address of a page: the language that the app asked for. The pages of one sign-in pass it on. Named
 * as in OpenID Connect Core 3.1.2.1.
 */
export const WANTED_LANGUAGE = 'ui_locales'

const languageInAddress = (request: Request): Language | null =>
  listedLanguage(new URL(request.url).searchParams.get(WANTED_LANGUAGE) ?? '')

/** `wanted` is what an app asked for, if the address of the page does not say. */
export const pageLanguage = (asker: Asker, wanted: Language | null = null): Language =>
  personsLanguage(asker, wanted) ?? asker.ctx.config.pages.language

/** Returns null if nothing is known of the person. */
export function personsLanguage({ ctx, request }: Asker, wanted: Language | null = null): Language | null {
  const chosen = cookieOf(request, cookieName(ctx.config))
  return (
    languages.find((language) => language === chosen) ??
    wanted ??
    languageInAddress(request) ??
    acceptedLanguage(request.headers.get('accept-language') ?? '')
  )
}

/** The `Set-Cookie` header that keeps a choice for a year. */
export const languageCookie = (config: Config, language: Language): string =>
  `${cookieName(config)}=${language}; Path=/; HttpOnly; SameSite=Lax${isSecure(config) ? '; Secure' : ''}; Max-Age=${CHOICE_SECS}`
