/**
 * Returns the beginning of `JSON.stringify(value, null, 2)`: the whole text, or a little more than `maxChars`
 * characters of it. The whole text of a record that is nested 128 levels deep would take a hundred times the memory of
 * the stored record.
 */
export function beginningOfJson(value: unknown, maxChars: number): string {
  let text = ''
  for (const piece of pieces(value, '\n')) {
    text += piece
    if (text.length > maxChars) break
  }
  return text
}

function* pieces(value: unknown, lineBreak: string): Generator<string> {
  if (typeof value !== 'object' || value === null) return yield JSON.stringify(value)
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const inner = `${lineBreak}  `
  let count = 0
  for (const [name, member] of Object.entries(value)) {
    yield `${count++ === 0 ? open : ','}${inner}${isList ? '' : `${JSON.stringify(name)}: `}`
    yield* pieces(member, inner)
  }
  yield count === 0 ? `${open}${close}` : `${lineBreak}${close}`
}
