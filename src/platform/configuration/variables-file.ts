/**
 * Files of variables, `NAME=value` on each line. In a value without quotes, `#` begins a comment after white space
 * only, as in shells: systemd and Docker take it as part of the value, and secrets contain it.
 */

const quotes: ReadonlySet<string> = new Set(["'", '"', '`'])
const EXPORT = 'export '

/** Returns the variables by their names. Of several with one name, the last counts. Skips lines of another form. */
export function parseVariables(text: string): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const { name, value } of entriesOf(text)) if (name !== null) variables[name] = value
  return variables
}

/** Returns the number of the first line that names a variable with this prefix and sets none; null without one. */
export function unsetLine(text: string, prefix: string): number | null {
  for (const { name, line, number } of entriesOf(text))
    if (name === null && withoutExport(line.trim()).startsWith(prefix)) return number
  return null
}

/** Yields each line, with the lines on which its value continues. `name` is null if the line sets no variable. */
function* entriesOf(text: string): Generator<{ number: number; line: string; name: string | null; value: string }> {
  let number = 1
  for (let at = 0; at < text.length;) {
    const end = lineEnd(text, at)
    const line = text.slice(at, end)
    const equals = line.indexOf('=')
    const name = equals < 0 ? null : nameIn(line.slice(0, equals))
    const value = name === null ? { text: '', end } : valueAt(text, at + equals + 1)
    yield { number, line, name, value: value.text }
    const next = lineEnd(text, value.end) + 1
    number += text.slice(at, next).split('\n').length - 1
    at = next
  }
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

function nameIn(text: string): string | null {
  const name = withoutExport(text.trim())
  return /^[\w.-]+$/.test(name) ? name : null
}

const withoutExport = (text: string): string => (text.startsWith(EXPORT) ? text.slice(EXPORT.length).trim() : text)

/** Returns a value and where it ends. One in quotes may have several lines. */
function valueAt(text: string, at: number): { text: string; end: number } {
  const end = lineEnd(text, at)
  const plain = text.slice(at, end)
  const trimmed = plain.trimStart()
  const quote = trimmed.charAt(0)
  const open = end - trimmed.length
  const close = quotes.has(quote) ? text.indexOf(quote, open + 1) : -1
  if (close < 0) return { text: plain.slice(0, commentAt(plain)).trim(), end }
  const quoted = text.slice(open + 1, close)
  return { text: quote === '"' ? quoted.replaceAll('\\n', '\n') : quoted, end: close }
}

function commentAt(plain: string): number {
  const at = plain.search(/\s#/)
  return at < 0 ? plain.length : at
}
