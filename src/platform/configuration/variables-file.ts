/**
 * Files of variables, `NAME=value` on each line. In a value without quotes, `#` begins a comment after white space
 * only, as in shells: systemd and Docker take it as part of the value, and secrets contain it.
 */

const quotes: ReadonlySet<string> = new Set(["'", '"', '`'])
const EXPORT = 'export '

/** Returns the variables by their names. Of several with one name, the last counts. Skips lines of another form. */
export function parseVariables(text: string): Record<string, string> {
  const variables: Record<string, string> = {}
  for (let at = 0; at < text.length;) {
    const end = lineEnd(text, at)
    const line = text.slice(at, end)
    const equals = line.indexOf('=')
    const name = equals < 0 ? null : nameIn(line.slice(0, equals))
    const value = name === null ? { text: '', end } : valueAt(text, at + equals + 1)
    if (name !== null) variables[name] = value.text
    at = lineEnd(text, value.end) + 1
  }
  return variables
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

function nameIn(text: string): string | null {
  const given = text.trim()
  const name = given.startsWith(EXPORT) ? given.slice(EXPORT.length).trim() : given
  return /^[\w.-]+$/.test(name) ? name : null
}

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
