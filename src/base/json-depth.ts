/**
 * Measures how deeply a JSON text is nested before it is parsed: much of the code that walks a value is recursive, and
 * `JSON.stringify` takes half a second to write 64 KB of which each level has one byte.
 */

/** Nesting levels of arrays and objects in what others send or publish. Records have a lower bound. */
export const MAX_JSON_DEPTH = 256

/**
 * Lists and objects in a request, each of which takes far longer than the characters that it has: a megabyte of empty
 * ones takes a third of a second until it is stored.
 */
export const MAX_JSON_PARTS = 100_000

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Returns whether the nesting exceeds `maxDepth` levels. Does not check that the text is JSON. */
export const isDeeperThan = (text: string, maxDepth: number): boolean => jsonExcess(text, maxDepth, Infinity) !== null

/** Returns which of the bounds the text exceeds first, or null. Does not check that the text is JSON. */
export function jsonExcess(text: string, maxDepth: number, maxParts: number): 'depth' | 'parts' | null {
  let depth = 0
  let parts = 0
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInText = !isInText
    else if (isInText) {
      if (code === BACKSLASH) at++
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth > maxDepth) return 'depth'
      if (++parts > maxParts) return 'parts'
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--
  }
  return null
}
