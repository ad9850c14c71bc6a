/** Finds members that stand twice in an object of a JSON text. Parsers keep one of them, and not all the same one. */

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]

/** `value` is what the text was parsed to. Every member has one colon outside of strings, and nothing else has one. */
export const hasDoubledMember = (text: string, value: unknown): boolean => colonsIn(text) !== membersOf(value)

function colonsIn(text: string): number {
  let count = 0
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInText = !isInText
    else if (isInText && code === BACKSLASH) at++
    else if (!isInText && code === COLON) count++
  }
  return count
}

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const parts = Object.values(value)
  return parts.reduce((count: number, part) => count + membersOf(part), Array.isArray(value) ? 0 : parts.length)
}
