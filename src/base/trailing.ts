/**
 * Cuts what a text ends with. A pattern such as `/\/+$/` tries every run of slashes up to its end, which takes
 * quadratic time on a text made of slashes.
 */

/** Returns the text without the characters at its end for which `isCut` is true. Reads those and one more. */
export function withoutTrailing(text: string, isCut: (character: string) => boolean): string {
  let end = text.length
  while (end > 0) {
    const character = lastCharacter(text, end)
    if (!isCut(character)) break
    end -= character.length
  }
  return text.slice(0, end)
}

/** Both halves of a surrogate pair are one character. */
function lastCharacter(text: string, end: number): string {
  const last = text.charCodeAt(end - 1)
  const isPair = end > 1 && (last & 0xfc00) === 0xdc00 && (text.charCodeAt(end - 2) & 0xfc00) === 0xd800
  return text.slice(isPair ? end - 2 : end - 1, end)
}

export const withoutTrailingSlashes = (text: string): string => withoutTrailing(text, (character) => character === '/')
