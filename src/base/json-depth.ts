/**
 * Measures how deeply a JSON text is nested before it is parsed: much of the code that walks a value is recursive, and
 * `JSON.stringify` takes half a second to write 64 KB of which each level has one byte.
 */

/** Nesting levels of arrays and objects in what others send or publish. Records have a lower bound. */
export const MAX_JSON_DEPTH = 256

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const opening: readonly number[] = [0x5b, 0x7b]
const closing: readonly number[] = [0x5d, 0x7d]

/** Returns whether the nesting exceeds `maxDepth` levels. Does not check that the text is JSON. */
export function isDeeperThan(text: string, maxDepth: number): boolean {
  let depth = 0
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInText = !isInText
    else if (isInText && code === BACKSLASH) at++
    else if (isInText) continue
    else if (opening.includes(code) && ++depth > maxDepth) return true
    else if (closing.includes(code)) depth--
  }
  return false
}
