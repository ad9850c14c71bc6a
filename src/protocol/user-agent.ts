/**
 * What a `User-Agent` header says, in a few words that a person recognises. Everything in it is a claim; nothing but
 * a list for its reader depends on it.
 */

const browsers: readonly [pattern: RegExp, name: string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bVersion\/\S+ (?:Mobile\/\S+ )?Safari\//, 'Safari'],
]

const systems: readonly [pattern: RegExp, name: string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

const namesOf = (table: readonly [RegExp, string][]): string => table.map(([, name]) => name).join('|')
/** A browser by its name here, and its system, at the end of more. */
const knownBrowser = new RegExp(`(?:^|\\s)((?:${namesOf(browsers)})(?: on (?:${namesOf(systems)}))?)$`)

/** The product that a header begins with, such as `Bluesky/1.90.0`. */
const productPattern = /^([A-Za-z][\w .-]{0,39})(?:\/|$)/

/** Headers of browsers are half as long; patterns are not tried on more than that. */
const MAX_READ_CHARS = 512

const nameIn = (table: readonly [RegExp, string][], header: string): string | undefined => table.find(([pattern]) => pattern.test(header))?.[1]

/** `Firefox on Android`, `Bluesky on an Apple device`, `curl`; null for what says nothing. */
export function programOf(userAgent: string): string | null {
  const header = userAgent.slice(0, MAX_READ_CHARS)
  const browser = header.startsWith('Mozilla/') ? nameIn(browsers, header) : undefined
  const product = browser ?? productPattern.exec(header)?.[1]?.trim()
  if (product === undefined || product === 'Mozilla') return null
  if (product === 'okhttp') return 'An Android app'
  const system = nameIn(systems, header) ?? (/\bDarwin\//.test(header) ? 'an Apple device' : undefined)
  return system === undefined ? product : `${product} on ${system}`
}

/** What of the words for a program comes from the tables here, and is not a text that whoever sent the request has chosen. */
export const knownBrowserOf = (words: string): string | null => knownBrowser.exec(words)?.[1] ?? null
