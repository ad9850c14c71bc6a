/** How deep a JSON text is nested, told before it is parsed: much of what walks over a value does so by recursion. */

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const opening: readonly number[] = [0x5b, 0x7b]
const closing: readonly number[] = [0x5d, 0x7d]

/** Says nothing about whether the text is JSON. */
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
