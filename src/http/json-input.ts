/** Bodies and parameters of routes outside `/xrpc`. TypeBox schemas describe the bodies. */
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { DEFAULT_JSON_BYTES, type RequestBody } from './body.ts'
import { invalidRequest, Refusal } from './errors.ts'
import { hasDoubledMember } from './json-members.ts'

const isJson = (contentType: string | null) =>
  contentType !== null && /^application\/([\w.-]+\+)?json$/.test(contentType)

/**
 * Throws `InvalidRequest` (415) unless the media type is JSON. Call it before authentication if a wrong type must cost
 * nothing.
 */
export function requireJson(body: RequestBody): void {
  if (!isJson(body.contentType)) throw new Refusal(415, 'InvalidRequest', 'Expected a body of type application/json')
}

/**
 * Returns the body, validated by the schema; an empty body counts as `{}`. Unknown members are ignored, unless the
 * schema is strict (`additionalProperties: false`), which also refuses a member that is there twice. Throws
 * `InvalidRequest` with 415 for another media type, 400 for malformed text and 422 for a body that does not fit the
 * schema, and `SyntaxError` (400) for malformed JSON.
 */
export async function readJson<Schema extends TSchema>(
  body: RequestBody,
  schema: Schema,
  maxBytes = DEFAULT_JSON_BYTES,
): Promise<Static<Schema>> {
  requireJson(body)
  const value = (await body.json(maxBytes)) ?? {}
  const fault = Value.Errors(schema, value).First()
  if (fault) throw new Refusal(422, 'InvalidRequest', `${fault.path || 'The body'}: ${fault.message}`)
  if (schema['additionalProperties'] === false && hasDoubledMember(await body.text(maxBytes), value))
    throw new Refusal(422, 'InvalidRequest', 'The body has two members of the same name')
  return value as Static<Schema>
}

/**
 * Returns an integer parameter, or `fallback` if it is absent or empty. Throws `InvalidRequest` if it is not an
 * integer. The caller checks the range.
 */
export function integerParam(params: URLSearchParams, name: string, fallback: number): number {
  const text = params.get(name)
  if (text === null || text === '') return fallback
  if (!/^-?\d{1,15}$/.test(text)) throw invalidRequest(`${name} must be an integer`)
  return Number(text)
}
