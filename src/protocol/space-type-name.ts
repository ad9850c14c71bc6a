/**
 * The name that its author gives a space type, in the languages of our pages.
 *
 * Source: atproto proposal 0016, "Space types". `title` is what `name` will be called.
 */
import { membersOf } from '../base/members.ts'
import { languageOf, type Language } from './languages.ts'

export interface SpaceTypeName {
  /** For languages in which the author gives no name; null if there is none. */
  general: string | null
  inLanguage: Readonly<Partial<Record<Language, string>>>
}

/** Entries of `name:lang` that are looked at, and characters of a name. */
const MAX_ENTRIES = 100
const MAX_CHARS = 1000

/** Reads the names in a declaration. Ignores values that are not text. */
export function spaceTypeName(declaration: Readonly<Record<string, unknown>>): SpaceTypeName {
  return {
    general: textOf(declaration['title']) ?? textOf(declaration['name']),
    inLanguage: { ...namesIn(declaration['name:lang']), ...namesIn(declaration['title:lang']) },
  }
}

/** The exact tag of one of our languages, `pt-BR`, is preferred to a variety of it, `pt-PT`. */
function namesIn(value: unknown): Partial<Record<Language, string>> {
  const names: Partial<Record<Language, string>> = {}
  const exact: Partial<Record<Language, string>> = {}
  for (const [tag, entry] of Object.entries(membersOf(value)).slice(0, MAX_ENTRIES)) {
    const text = textOf(entry)
    const language = tag.length > MAX_TAG_CHARS ? null : languageOf(tag)
    if (text === null || language === null) continue
    names[language] ??= text
    if (tag.toLowerCase() === language.toLowerCase()) exact[language] = text
  }
  return { ...names, ...exact }
}

const MAX_TAG_CHARS = 35

const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, MAX_CHARS) : null
