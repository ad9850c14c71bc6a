/** The languages of pages and mails, and which of them a person is served. */

/** By language tag (RFC 5646), the name of the language in the language itself. */
export const languageNames = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  ja: '日本語',
  'pt-BR': 'Português (Brasil)',
} as const

export type Language = keyof typeof languageNames

export const languages = Object.keys(languageNames) as Language[]

/** Bounds on lists of languages, which anyone may send. */
const MAX_CHARS = 1000
const MAX_RANGES = 20

/**
 * Returns our language for a tag, which may name a variety of it: `pt-PT` gets the Brazilian texts. Null if there is
 * none.
 */
export function languageOf(tag: string): Language | null {
  const [primary = ''] = tag.trim().toLowerCase().split('-', 1)
  return languages.find((language) => language.toLowerCase().split('-', 1)[0] === primary) ?? null
}

/**
 * Returns the language that an `Accept-Language` header prefers, the first of equals; null if it names none of ours.
 * Anything beyond 1000 characters or 20 languages is ignored.
 *
 * Source: RFC 9110 section 12.5.4; RFC 4647 section 3.4 for the look-up.
 */
export function acceptedLanguage(header: string): Language | null {
  let best: { language: Language; weight: number } | null = null
  for (const range of header.slice(0, MAX_CHARS).split(',', MAX_RANGES)) {
    const [tag = '', parameter = ''] = range.split(';', 2)
    const language = languageOf(tag)
    const weight = weightOf(parameter)
    if (language !== null && weight > (best?.weight ?? 0)) best = { language, weight }
  }
  return best?.language ?? null
}

/** A quality value from 0 to 1; 0 for one that is malformed. */
function weightOf(parameter: string): number {
  const given = parameter.trim().toLowerCase()
  if (given === '') return 1
  const [, weight] = /^q=([01](?:\.\d{0,3})?)$/.exec(given) ?? []
  return weight === undefined ? 0 : Math.min(1, Number(weight))
}

/** Returns the first language of ours in a list as `ui_locales` has it (OpenID Connect Core 3.1.2.1), or null. */
export function listedLanguage(list: string): Language | null {
  for (const tag of list.slice(0, MAX_CHARS).split(' ', MAX_RANGES)) {
    const language = languageOf(tag)
    if (language !== null) return language
  }
  return null
}
