/** Parses the query of a URL as `URLSearchParams` does, which itself costs more than most requests need altogether. */

type Parameter = readonly [name: string, text: string]

const none: readonly Parameter[] = []

/** Returns the decoded names and values, in order. */
export function queryOf(url: string): readonly Parameter[] {
  const start = url.indexOf('?')
  if (start < 0) return none
  const end = url.indexOf('#', start)
  const query = url.slice(start + 1, end < 0 ? undefined : end)
  const parameters: Parameter[] = []
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    parameters.push(
      equals < 0 ? [decoded(pair), ''] : [decoded(pair.slice(0, equals)), decoded(pair.slice(equals + 1))],
    )
  }
  return parameters
}

function decoded(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return new URLSearchParams(`=${text}`).get('')! // keeps malformed escapes, replaces invalid UTF-8
  }
}
