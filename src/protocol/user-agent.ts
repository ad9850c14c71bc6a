/**
 * Describes a `User-Agent` header in a few words that a person recognises. The header is unverified; it is only
 * displayed, and compared with the description at sign-in. So if a change here gives a browser another name, that
 * browser is signed out of the pages.
 *
 * Mails repeat only what is in these tables (`knownProgramOf`). A library would return parts of the header, which the
 * sender of a request chooses.
 */

const browsers: readonly [pattern: RegExp, name: string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bVersion\/[^\s/]+ (?:Mobile\/[^\s/]+ )?Safari\//, 'Safari'],
]

/** Our own programs, by the product of their header. */
const ownPrograms: readonly [pattern: RegExp, name: string][] = [
  [/^holdfast-wallet\//, 'Holdfast wallet'],
  [/^holdfast-agent\//, 'Holdfast agent'],
  [/^holdfast-cli\//, 'Holdfast command line'],
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
/** Matches, at the end of a label, the name of a browser or of our own program, with its system. */
const knownProgram = new RegExp(
  `(?:^|\\s)((?:${namesOf([...browsers, ...ownPrograms])})(?: on (?:${namesOf(systems)}))?)$`,
)

const APPLE_DEVICE = 'an Apple device'

/** The product that a header begins with, such as `Bluesky/1.90.0`. */
const productPattern = /^([A-Za-z][\w .-]{0,39})(?:\/|$)/

/** Longest part of the header that the patterns read. Headers of browsers are half as long. */
const MAX_READ_CHARS = 512

const nameIn = (table: readonly [RegExp, string][], header: string): string | undefined =>
  table.find(([pattern]) => pattern.test(header))?.[1]

/**
 * Returns, for example, `Firefox on Android`, `Bluesky on an Apple device` or `curl`; null if nothing is recognised.
 */
export function programOf(userAgent: string): string | null {
  const header = userAgent.slice(0, MAX_READ_CHARS)
  const browser = header.startsWith('Mozilla/') ? nameIn(browsers, header) : undefined
  const product = browser ?? nameIn(ownPrograms, header) ?? productPattern.exec(header)?.[1]?.trim()
  if (product === undefined || product === 'Mozilla') return null
  if (product === 'okhttp') return 'An Android app'
  const system = nameIn(systems, header) ?? (/\bDarwin\//.test(header) ? APPLE_DEVICE : undefined)
  return system === undefined ? product : `${product} on ${system}`
}

/** Returns the part of the label that comes from our tables, not from the request. */
export const knownProgramOf = (words: string): string | null => knownProgram.exec(words)?.[1] ?? null

/** Returns what a label consists of: the site in a browser, the program, and its system. */
export function programParts(words: string): { site: string | null; program: string; system: string | null } {
  const [inAt, onAt] = [words.indexOf(' in '), words.lastIndexOf(' on ')]
  const site = inAt > 0 && !words.slice(0, inAt).includes(' ') ? words.slice(0, inAt) : null
  const last = words.slice(onAt + ' on '.length)
  const system = onAt > inAt && (last === APPLE_DEVICE || systems.some(([, name]) => name === last)) ? last : null
  return {
    site,
    program: words.slice(site === null ? 0 : inAt + ' in '.length, system === null ? undefined : onAt),
    system,
  }
}
