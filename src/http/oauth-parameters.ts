/** Reads the parameters that OAuth clients post: a form or a JSON object, with one string per name. */
import { hasMembers } from '../base/members.ts'
import type { RequestBody } from './body.ts'
import { OAuthError } from './errors.ts'

/** Kept small, because a client needs no account to push a request, which is stored until it expires. */
const MAX_BODY_BYTES = 32 * 1024

/**
 * Parameters that may be repeated. Their values, which contain no spaces, are joined by spaces. RFC 8707, section 2.
 */
const repeatable: readonly string[] = ['resource']

export type OAuthParameters = Readonly<Record<string, string | undefined>>

export const invalidOAuthRequest = (reason: string) => new OAuthError(400, 'invalid_request', reason)

/**
 * Throws `invalid_request` if the body is of another type, or if a parameter is repeated (RFC 6749, 3.2) or is not a
 * string. Throws `PayloadTooLargeError` if the body is larger than `MAX_BODY_BYTES`, and as `RequestBody` does if it
 * cannot be decoded.
 */
export async function readParameters(body: RequestBody): Promise<OAuthParameters> {
  switch (body.contentType) {
    case 'application/x-www-form-urlencoded':
      return onceEach([...new URLSearchParams(await body.text(MAX_BODY_BYTES))])
    case 'application/json':
      return onceEach(members(await body.json(MAX_BODY_BYTES)))
    default:
      throw invalidOAuthRequest('the body must be of type application/x-www-form-urlencoded or application/json')
  }
}

function members(value: unknown): [string, unknown][] {
  if (!hasMembers(value)) throw invalidOAuthRequest('the body must be a JSON object')
  return Object.entries(value)
}

function onceEach(entries: readonly [string, unknown][]): OAuthParameters {
  const parameters = new Map<string, string>()
  for (const [name, value] of entries) {
    if (typeof value !== 'string') throw invalidOAuthRequest(`${name} must be a string`)
    const earlier = parameters.get(name)
    if (earlier !== undefined && !repeatable.includes(name)) throw invalidOAuthRequest(`${name} must not be repeated`)
    parameters.set(name, earlier === undefined ? value : `${earlier} ${value}`)
  }
  return Object.fromEntries(parameters)
}

/** Returns a parameter. Throws `invalid_request` if it is missing or empty. */
export function required(parameters: OAuthParameters, name: string): string {
  const value = parameters[name]
  if (value === undefined || value === '') throw invalidOAuthRequest(`${name} is missing`)
  return value
}
