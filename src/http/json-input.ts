/** Bodies and parameters of the routes outside `/xrpc`, described by TypeBox schemas. */
import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { DEFAULT_JSON_BYTES, type RequestBody } from './body.ts'
import { invalidRequest, Refusal } from './errors.ts'

const isJson = (contentType: string | null) => contentType !== null && /^application\/([\w.-]+\+)?json$/.test(contentType)

/** 415 unless the body says that it is JSON. To be asked before authentication where a wrong type must cost nothing. */
export function requireJson(body: RequestBody): void {
  if (!isJson(body.contentType)) throw new Refusal(415, 'InvalidRequest', 'Expected a body of type application/json')
}

/** The body as the schema has it: 415 for another media type, 400 for what is no JSON, 422 for what does not fit. Unknown members are ignored. */
export async function readJson<Schema extends TSchema>(body: RequestBody, schema: Schema, maxBytes = DEFAULT_JSON_BYTES): Promise<Static<Schema>> {
  requireJson(body)
  const value = (await body.json(maxBytes)) ?? {}
  const fault = Value.Errors(schema, value).First()
  if (fault) throw new Refusal(422, 'InvalidRequest', `${fault.path || 'The body'}: ${fault.message}`)
  return value as Static<Schema>
}

/** An integer parameter, `fallback` when absent; a 400 when it is no integer. The caller clamps or refuses. */
export function integerParam(params: URLSearchParams, name: string, fallback: number): number {
  const text = params.get(name)
  if (text === null || text === '') return fallback
  if (!/^-?\d{1,15}$/.test(text)) throw invalidRequest(`${name} must be an integer`)
  return Number(text)
}

export const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value))

/** Where a page of rows counted downwards goes on: older than this number. Null at the start. */
export function beforeCursor(params: URLSearchParams): number | null {
  const text = params.get('cursor')
  if (text === null || text === '') return null
  if (!/^\d{1,15}$/.test(text)) throw invalidRequest('Malformed cursor')
  return Number(text)
}
