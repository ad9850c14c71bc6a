/**
 * Tables of texts. Each feature owns the tables of its pages and mails. English is part of the program and defines the
 * shape of the translations, each of which is loaded when a page first needs it.
 *
 * A text may hold values by name, `{handle}`; marks around words, `<terms>…</terms>`, for which the page passes the
 * element; and `<strong>` and `<code>`, which need nothing. A text that depends on a number is an object of the forms
 * that `Intl.PluralRules` tells apart by the value `{count}`. Numbers are written as the language writes them. Values
 * and texts are escaped, so neither a translator nor a stranger can write HTML.
 *
 * The compiler refuses a translation that lacks a text, invents one, or has other values and marks in one than English;
 * a test says which.
 */
import type { Language } from '../protocol/languages.ts'
import { html, Html, type Phrase, type Value } from './html.ts'

export type PluralForms = { readonly other: string } & { readonly [Rule in Intl.LDMLPluralRule]?: string }
export type TextShape = string | PluralForms
export type EnglishTexts = Readonly<Record<string, TextShape>>

/** Each language but English. */
export type Translated = Exclude<Language, 'en'>

// What a text takes

type Placeholders<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never
type ClosedMarks<Text extends string> = Text extends `${string}</${infer Name}>${infer Rest}`
  ? Name | ClosedMarks<Rest>
  : never
/** Marks that every text may use. */
type PlainMark = keyof typeof plainMarks
type StringOf<Text> = Text extends string ? Text : Text extends object ? Text[keyof Text] & string : never

type ValuesOf<Text extends string> = { [Name in Placeholders<Text>]: Value } & {
  [Name in Exclude<ClosedMarks<Text>, PlainMark>]: (content: Html) => Html
} & (Text extends `${string}{count}${string}` ? { count: number } : unknown)

type EntryOf<Text extends TextShape> = keyof EntryValues<Text> extends never
  ? Phrase
  : (values: EntryValues<Text>) => Phrase
type EntryValues<Text extends TextShape> = Text extends string
  ? ValuesOf<Text>
  : ValuesOf<StringOf<Text>> & { count: number }

export type Texts<English extends EnglishTexts> = { readonly [Name in keyof English]: EntryOf<English[Name]> }

// What a translation must have

type NamesIn<Text> =
  Placeholders<StringOf<Text>> | (ClosedMarks<StringOf<Text>> extends infer Mark extends string ? `<${Mark}>` : never)
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** `unknown` for a translation that fits; otherwise a type that it does not have, which names what is at fault. */
type Fits<English, Translation> =
  Exclude<keyof English, keyof Translation> extends never
    ? Exclude<keyof Translation, keyof English> extends never
      ? Unlike<English, Translation> extends never
        ? unknown
        : { hasOtherValuesOrMarksThanEnglishIn: Unlike<English, Translation> }
      : { inventsTexts: Exclude<keyof Translation, keyof English> }
    : { lacksTexts: Exclude<keyof English, keyof Translation> }
type Unlike<English, Translation> = {
  [Name in keyof English & keyof Translation]: Same<NamesIn<English[Name]>, NamesIn<Translation[Name]>> extends true
    ? English[Name] extends string
      ? Translation[Name] extends string
        ? never
        : Name
      : Translation[Name] extends string
        ? Name
        : never
    : Name
}[keyof English & keyof Translation]

type Loaders = Readonly<Record<Translated, () => Promise<EnglishTexts>>>
type Checked<English, All extends Loaders> = {
  [Name in keyof All]: All[Name] extends () => Promise<infer Translation> ? Fits<English, Translation> : never
}

/** A table with what its translations are, for the test that reads them. */
const tables = new WeakMap<object, { english: EnglishTexts; loaders: Loaders }>()

/** Returns the texts of a table in all languages; undefined for an object that is no table. */
export const contentsOf = (table: object) => tables.get(table)

/**
 * Declare a table: the texts in English, and how each translation is loaded. Returns an object with the same names: a
 * phrase, or a function of the values that the text takes.
 */
export function textTable<const English extends EnglishTexts, All extends Loaders>(
  english: English,
  loaders: All & Checked<English, All>,
): Texts<English> {
  const loaded = new Map<Language, EnglishTexts>([['en', english]])
  const loading = new Map<Language, Promise<unknown>>()
  const load = (language: Language): Promise<unknown> | null => {
    if (language === 'en' || loaded.has(language)) return null
    const begun = loading.get(language)
    if (begun) return begun
    const promise = loaders[language]()
      .then((texts) => loaded.set(language, texts))
      .finally(() => loading.delete(language))
    loading.set(language, promise)
    return promise
  }
  const phrase = (name: string, values: Values): Phrase => ({
    isPhrase: true,
    load,
    parts: Object.values(values).map((value) => (typeof value === 'function' ? value(html``) : value)),
    in: (language) => filled(formOf(loaded.get(language)![name]!, language, values), language, values),
  })
  const table = Object.fromEntries(
    Object.entries(english).map(([name, text]) => [
      name,
      takesValues(text) ? (values: Values) => phrase(name, values) : phrase(name, {}),
    ]),
  )
  tables.set(table, { english, loaders })
  return table as Texts<English>
}

// Writing

type Values = Readonly<Record<string, Value | ((content: Html) => Html)>>

const plainMarks = {
  strong: (content: Html) => html`<strong>${content}</strong>`,
  code: (content: Html) => html`<code>${content}</code>`,
} as const

const markPattern = /\{(\w+)\}|<(\w+)>|<\/(\w+)>/g

/** Returns the names of the values in a text, and those of its marks as `<name>`. */
export const namesIn = (text: TextShape): Set<string> =>
  new Set(
    (typeof text === 'string' ? [text] : Object.values(text)).flatMap((form) =>
      [...form.matchAll(markPattern)].map(([, value, mark, closed]) => value ?? `<${mark ?? closed}>`),
    ),
  )

const takesValues = (text: TextShape): boolean =>
  typeof text !== 'string' || [...namesIn(text)].some((name) => !(name.slice(1, -1) in plainMarks))

function formOf(text: TextShape, language: Language, { count }: Values): string {
  if (typeof text === 'string') return text
  return text[pluralRules(language).select(Number(count))] ?? text.other
}

/** Returns what stands in the place of a text: its words, its values, and its marks around what is in them. */
function filled(text: string, language: Language, values: Values): Value[] {
  const open: { mark: string; inside: Value[] }[] = [{ mark: '', inside: [] }]
  let at = 0
  for (const { 0: found, 1: value, 2: mark, index } of text.matchAll(markPattern)) {
    const { inside } = open.at(-1)!
    inside.push(text.slice(at, index))
    at = index + found.length
    if (value !== undefined) inside.push(valueIn(values[value], language))
    else if (mark !== undefined) open.push({ mark, inside: [] })
    else if (open.length > 1) {
      const { mark: closed, inside: content } = open.pop()!
      const element = plainMarks[closed as PlainMark] ?? values[closed]
      open.at(-1)!.inside.push(element(html`${content}`))
    }
  }
  open[0]!.inside.push(text.slice(at))
  return open[0]!.inside
}

const valueIn = (value: Values[string], language: Language): Value =>
  typeof value === 'number' ? numbers(language).format(value) : (value as Value)

// Values that each language writes in its own way

const written = (write: (language: Language) => Value, parts: readonly Value[] = []): Phrase => ({
  isPhrase: true,
  load: () => null,
  parts,
  in: write,
})

/** A text that others have written, in languages that they have chosen. */
export const foreignPhrase = (textIn: (language: Language) => string): Phrase => written(textIn)

/** Making a formatter takes a hundred times as long as using it, and a page may have a hundred dates. */
function perLanguage<Formatter>(make: (language: Language) => Formatter): (language: Language) => Formatter {
  const made = new Map<Language, Formatter>()
  return (language) => {
    const known = made.get(language)
    if (known !== undefined) return known
    const formatter = make(language)
    made.set(language, formatter)
    return formatter
  }
}

const pluralRules = perLanguage((language) => new Intl.PluralRules(language))
const numbers = perLanguage((language) => new Intl.NumberFormat(language))
const percents = perLanguage((language) => new Intl.NumberFormat(language, { style: 'percent' }))

/** British English, whose dates can be read in only one way. */
const localeOf = (language: Language): string => (language === 'en' ? 'en-GB' : language)

const datesIn = (options: Intl.DateTimeFormatOptions) =>
  perLanguage((language) => new Intl.DateTimeFormat(localeOf(language), { ...options, timeZone: 'UTC' }))
const days = datesIn({ dateStyle: 'medium' })
const times = datesIn({
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
})
const clocks = datesIn({ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' })

/** A day, such as 3 Mar 2026, in UTC. */
export const dayPhrase = (instant: number): Phrase => written((language) => days(language).format(instant))

/** A day and a time with its zone, in UTC. */
export const timePhrase = (instant: number): Phrase => written((language) => times(language).format(instant))

/** A time of the day with its seconds and its zone, in UTC. */
export const clockPhrase = (instant: number): Phrase => written((language) => clocks(language).format(instant))

/** Units of sizes, each a thousand times the one before. */
const sizeUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

const sizes = sizeUnits.map((unit, power) =>
  perLanguage(
    (language) =>
      new Intl.NumberFormat(language, {
        style: 'unit',
        unit,
        // English has a plural of the first alone: 4 bytes, 4 kB.
        unitDisplay: power === 0 ? 'long' : 'short',
        maximumFractionDigits: 1,
      }),
  ),
)

/** A size in bytes, in the unit that fits it, such as 1.2 MB. */
export const sizePhrase = (bytes: number): Phrase =>
  written((language) => {
    const power = bytes < 1 ? 0 : Math.min(sizeUnits.length - 1, Math.floor(Math.log10(bytes) / 3))
    return sizes[power]!(language).format(bytes / 1000 ** power)
  })

/** A share in percent, from a whole number. */
export const percentPhrase = (percent: number): Phrase =>
  written((language) => percents(language).format(percent / 100))

const listFormat = perLanguage((language) => new Intl.ListFormat(language, { type: 'conjunction' }))

/** A list in words: one, two and three. */
export const listPhrase = (items: readonly Value[]): Phrase =>
  written((language) => {
    const places = listFormat(language).formatToParts(items.map((_, i) => String(i)))
    return places.map((part) => (part.type === 'element' ? items[Number(part.value)] : part.value))
  }, items)

/** Facts about one thing, beside each other. The lists of `Intl` would put an "and" before the last. */
export const factsPhrase = (facts: readonly Value[]): Phrase =>
  written((language) => {
    const comma = language === 'ja' ? '、' : ', '
    return facts.flatMap((fact, i) => (i === 0 ? [fact] : [comma, fact]))
  }, facts)
