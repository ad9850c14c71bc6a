/**
 * HTML templates: plain values are escaped, nested templates are not, so markup and content cannot be confused. A
 * template is written as text once its language is known.
 */
import type { Language } from '../protocol/languages.ts'

export class Html {
  constructor(
    readonly strings: readonly string[],
    readonly values: readonly Value[],
  ) {}

  /** In English, which is always loaded. */
  get text(): string {
    return written(this, 'en')
  }
}

/** Something that each language writes in its own way. */
export interface Phrase {
  /** What is written in its place. */
  in(language: Language): Value
  /** Loads what `in` needs; null if it is there. */
  load(language: Language): Promise<unknown> | null
  /** Values that are written with it. */
  readonly parts: readonly Value[]
  readonly isPhrase: true
}

export type Value = Html | Phrase | string | number | null | undefined | false | readonly Value[]

/** A text in one language, or in all of them. */
export type Wording = string | Phrase

/**
 * html`<p>${name}</p>`: text is escaped; nested templates and lists are inserted unchanged; null, undefined and false
 * write nothing.
 */
export const html = (strings: TemplateStringsArray, ...values: Value[]): Html => new Html(strings, values)

type Escape = (text: string) => string

/** Returns the value as HTML, or as plain text where `escape` leaves everything as it is. */
function written(value: Value, language: Language, escape: Escape = Bun.escapeHTML): string {
  if (value === null || value === undefined || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value))
  if (value instanceof Html)
    return value.strings.reduce((text, string, i) => text + written(value.values[i - 1], language, escape) + string)
  if (isPhrase(value)) return written(value.in(language), language, escape)
  return value.map((one) => written(one, language, escape)).join('')
}

const isPhrase = (value: object): value is Phrase => 'isPhrase' in value

/** Returns what has to be loaded before the value can be written. */
function missing(value: Value, language: Language): Promise<unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  if (value instanceof Html) return value.values.flatMap((one) => missing(one, language))
  if (!isPhrase(value)) return value.flatMap((one: Value) => missing(one, language))
  return [value.load(language) ?? [], ...value.parts.flatMap((one) => missing(one, language))].flat()
}

/** Returns the value as HTML in a language, which is loaded if it was not used before. */
export async function htmlIn(value: Value, language: Language): Promise<string> {
  await Promise.all(missing(value, language))
  return written(value, language)
}

/** The same as plain text, for a mail or a header. */
export async function textIn(value: Value, language: Language): Promise<string> {
  await Promise.all(missing(value, language))
  return written(value, language, String)
}

/** Returns the wording in English as plain text, for programs. */
export const inEnglish = (value: Wording): string => written(value, 'en', String)

/** Characters that are invisible or change how their neighbours are displayed. */
const deceptive = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** Returns a self-chosen name as one short line, without characters that could disguise it. */
export function plainName(text: string, maxChars = 80): string {
  const name = [...text.replace(deceptive, '').replace(/\s+/g, ' ').trim()]
  return name.length > maxChars ? `${name.slice(0, maxChars - 1).join('')}…` : name.join('')
}

/** Returns text by a stranger with its line breaks, without characters that could disguise it. */
export function plainText(text: string, maxChars: number): string {
  const lines = text.slice(0, 2 * maxChars).split(/\r\n|[\n\r]/)
  const plain = [
    ...lines
      .map((line) => plainName(line, maxChars))
      .join('\n')
      .trim(),
  ]
  return plain.length > maxChars ? `${plain.slice(0, maxChars - 1).join('')}…` : plain.join('')
}
