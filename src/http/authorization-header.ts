/**
 * Parses the `Authorization` header: a scheme and one value, separated by one space. RFC 9110 section 11.6.2, narrowed.
 */
import { invalidToken } from './errors.ts'

export interface Authorization {
  scheme: 'basic' | 'bearer' | 'dpop'
  value: string
}

const schemes: ReadonlySet<string> = new Set(['basic', 'bearer', 'dpop'] satisfies Authorization['scheme'][])

/** Returns null if the header is absent or empty. Throws `InvalidToken` if it is malformed or its scheme is unknown. */
export function authorizationOf(request: Request): Authorization | null {
  const header = request.headers.get('authorization')
  if (header === null || header === '') return null
  const space = header.indexOf(' ')
  if (space < 0 || header.includes(' ', space + 1)) throw invalidToken('Malformed authorization header')
  const scheme = header.slice(0, space)
  const known = scheme.toLowerCase()
  if (!schemes.has(known)) throw invalidToken(`Unsupported authorization type: ${scheme}`)
  return { scheme: known as Authorization['scheme'], value: header.slice(space + 1) }
}
