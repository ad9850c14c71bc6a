/**
 * Measures how deeply a JSON text is nested before it is parsed: much of the code that walks a value is recursive, and
 * `JSON.stringify` takes half a second for 64 KB in which every byte is another level.
 */

/** Nesting levels of arrays and objects in what others send or publish. Records have a lower bound. */
export const MAX_JSON_DEPTH = 256

interface JsonBounds {
  /** Nesting levels. */
  depth: number
  /** Lists and objects. */
  parts: number
  /** Members of one object. */
  members: number
}

/**
 * Bounds of a request. Each of these parts takes far longer than its few characters suggest: a megabyte of empty lists
 * takes a third of a second until it is stored, and a megabyte of members a tenth of a second until it is parsed.
 */
export const requestBounds: JsonBounds = { depth: MAX_JSON_DEPTH, parts: 100_000, members: 20_000 }

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Returns whether the nesting exceeds `maxDepth` levels. Does not check that the text is JSON. */
export const isDeeperThan = (text: string, maxDepth: number): boolean =>
  jsonExcess(text, { depth: maxDepth, parts: Infinity, members: Infinity }) !== null

/** Returns which of the bounds the text exceeds first, or null. Does not check that the text is JSON. */
export function jsonExcess(text: string, bounds: JsonBounds): keyof JsonBounds | null {
  /** By level. */
  const members = [0]
  let depth = 0
  let parts = 0
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInText = !isInText
    else if (isInText) {
      if (code === BACKSLASH) at++
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth > bounds.depth) return 'depth'
      if (++parts > bounds.parts) return 'parts'
      members[depth] = 0
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      if (--depth < 0) return null // no JSON, and no parser reads on
    } else if (code === COLON && ++members[depth]! > bounds.members) return 'members'
  }
  return null
}
