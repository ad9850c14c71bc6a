/**
 * The built-in lexicons: which methods and record types exist, and whether a value is valid.
 *
 * Documents are parsed on first use, and checks are compiled one by one as they are used. Every check takes the JSON
 * form of a value (see `schema.ts`) and returns an outcome; none throws on bad input.
 */
import { madeOnce } from '../../base/made-once.ts'
import { SmallMap } from '../../base/small-map.ts'
import { setOwn } from '../cbor.ts'
import { documentsJson } from './generated/documents.ts'
import type { LexMethods } from './generated/types.ts'
import {
  describeValue,
  faultText,
  isObject,
  isOfFormat,
  LexiconFault,
  schemaCompiler,
  valueSchema,
  wrongFormat,
  type Check,
  type Definition,
  type Document,
  type Fault,
  type LooseObject,
  type Run,
  type Schema,
} from './schema.ts'

export type MethodName = keyof LexMethods
export type MethodKind = 'query' | 'procedure' | 'subscription'
export type Outcome<Value> = { ok: true; value: Value } | { ok: false; message: string }

export interface Method {
  nsid: MethodName
  kind: MethodKind
  /** Content types; null if there is no body. */
  inputEncoding: string | null
  outputEncoding: string | null
}

const methodKinds = new Set(['query', 'procedure', 'subscription'])

const definitions = madeOnce(() => {
  const byRef = new Map<string, Definition>()
  for (const { id, defs } of JSON.parse(documentsJson) as Document[]) {
    for (const [name, definition] of Object.entries(defs))
      byRef.set(name === 'main' ? `lex:${id}` : `lex:${id}#${name}`, definition)
  }
  return byRef
})
/** A definition by its absolute reference, `lex:nsid` or `lex:nsid#name`. */
export const findDefinition = (ref: string): Definition | undefined => definitions().get(ref.replace(/#main$/, ''))

/** The check of a built-in definition. Throws `LexiconFault` if there is none, or if it does not describe a value. */
export function builtInCheck(ref: string): Check {
  const definition = findDefinition(ref)
  if (!definition) throw new LexiconFault(`no lexicon definition ${ref}`)
  return compile(valueSchema(definition))
}
const compile = schemaCompiler(builtInCheck)

/** The built-in lexicons refer only to each other, and the size of the value bounds what their checks cost. */
const unlimited: Run = { steps: Infinity, follow: builtInCheck }

/** Every method with a lexicon here, by NSID. */
export const methods = madeOnce(() => {
  const byNsid = new Map<string, Method>()
  for (const [ref, definition] of definitions()) {
    if (!methodKinds.has(definition.type)) continue
    const nsid = ref.slice('lex:'.length) as MethodName
    byNsid.set(nsid, {
      nsid,
      kind: definition.type as MethodKind,
      inputEncoding: definition.input?.encoding ?? null,
      outputEncoding: definition.output?.encoding ?? null,
    })
  }
  return byNsid
})

function methodDefinition(nsid: MethodName): Definition {
  const definition = definitions().get(`lex:${nsid}`)
  if (!definition || !methodKinds.has(definition.type)) throw new Error(`no lexicon for the method ${nsid}`)
  return definition
}

/** Methods that old clients call with `name[]=x` and `name[0]=x`. */
const looseArrayMethods = new Set<string>([
  'app.bsky.actor.getProfiles',
  'app.bsky.feed.getPostThread',
  'app.bsky.feed.getTimeline',
])

interface ParamField {
  name: string
  schema: Schema
  check: Check
  isRequired: boolean
}

const paramFields = new Map<MethodName, readonly ParamField[]>()

function paramFieldsOf(nsid: MethodName): readonly ParamField[] {
  let fields = paramFields.get(nsid)
  if (!fields) {
    const { properties = {}, required = [] } = methodDefinition(nsid).parameters ?? { type: 'params' }
    fields = Object.entries(properties).map(([name, schema]) => ({
      name,
      schema,
      check: compile(schema),
      isRequired: required.includes(name),
    }))
    paramFields.set(nsid, fields)
  }
  return fields
}

/**
 * Parse query parameters into typed values, with defaults filled in. Empty values count as absent; parameters that the
 * lexicon does not name are kept as text. On failure, the message lists every fault.
 */
export function decodeParams<M extends MethodName>(
  nsid: M,
  query: Iterable<readonly [name: string, text: string]>,
): Outcome<LexMethods[M]['params']> {
  const texts = groupByName(query, looseArrayMethods.has(nsid))
  const values: Record<string, unknown> = {}
  const faults: string[] = []
  for (const { name, schema, check, isRequired } of paramFieldsOf(nsid)) {
    const value = decodeParam(schema, texts.get(name) ?? [])
    texts.delete(name)
    if (value !== undefined) {
      const fault = check(value, unlimited)
      if (fault !== null) faults.push(faultText(fault, `$.${name}`))
      values[name] = value
    } else if (isRequired) {
      faults.push(`Missing required key "${name}" at $`)
    }
  }
  if (faults.length > 0) return { ok: false, message: `Invalid ${nsid} params: ${faults.join(', ')}` }
  for (const [name, found] of texts.entries()) setOwn<unknown>(values, name, found.length === 1 ? found[0] : found)
  return { ok: true, value: values as LexMethods[M]['params'] }
}

function groupByName(query: Iterable<readonly [name: string, text: string]>, looseArrays: boolean): SmallMap<string[]> {
  const texts = new SmallMap<string[]>()
  for (const [key, text] of query) {
    if (text === '') continue
    const name = looseArrays ? key.replace(/\[\d*\]$/, '') : key
    const found = texts.get(name)
    if (found) found.push(text)
    else texts.set(name, [text])
  }
  return texts
}

/** A repeated scalar stays a list, and text that is not a scalar stays text; the check then refuses them. */
function decodeParam(schema: Schema, texts: string[]): unknown {
  if (texts.length === 0) return schema.default
  if (schema.type === 'array') return texts.map((text) => decodeScalar(schema.items!, text))
  return texts.length === 1 ? decodeScalar(schema, texts[0]!) : texts
}

function decodeScalar(schema: Schema, text: string): unknown {
  if (schema.type === 'integer' && /^-?[0-9]+$/.test(text)) return Number(text)
  if (schema.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** Validates the JSON body of a procedure and fills in defaults. Bodies in other encodings have no schema and pass. */
export function validateInput<M extends MethodName>(nsid: M, value: unknown): Outcome<LexMethods[M]['input']> {
  const schema = methodDefinition(nsid).input?.schema
  const fault = schema ? compile(schema)(value, unlimited) : null
  if (fault !== null) return { ok: false, message: faultText(fault, '$') }
  return {
    ok: true,
    value: (schema && isObject(value) ? withDefaults(schema, value) : value) as LexMethods[M]['input'],
  }
}

function withDefaults(schema: Schema, value: LooseObject): LooseObject {
  const absent = Object.entries(schema.properties ?? {}).filter(
    ([name, { default: given }]) => given !== undefined && value[name] === undefined,
  )
  return absent.length === 0
    ? value
    : { ...value, ...Object.fromEntries(absent.map(([name, { default: given }]) => [name, given])) }
}

/** Whether a response conforms to the lexicon. */
export function validateOutput<M extends MethodName>(nsid: M, value: unknown): Outcome<LexMethods[M]['output']> {
  const schema = methodDefinition(nsid).output?.schema
  const fault = schema ? compile(schema)(value, unlimited) : null
  return fault === null
    ? { ok: true, value: value as LexMethods[M]['output'] }
    : { ok: false, message: faultText(fault, '$') }
}

function recordDefinition(collection: string): Definition | null {
  const definition = definitions().get(`lex:${collection}`)
  return definition?.type === 'record' ? definition : null
}

/** The message for an invalid record. Its path begins at `$.record`, where the request has the record. */
export const invalidRecord = (collection: string, fault: Fault): string =>
  `Invalid ${collection} record: ${faultText(fault, '$.record')}`

export type RecordOutcome = { status: 'valid' } | { status: 'unknown' } | { status: 'invalid'; message: string }

/** Validates a record of a collection; `unknown` if no lexicon describes it. The caller has checked `$type`. */
export function validateRecord(collection: string, record: unknown): RecordOutcome {
  const schema = recordDefinition(collection)?.record
  if (!schema) return { status: 'unknown' }
  const fault = compile(schema)(record, unlimited)
  return fault === null ? { status: 'valid' } : { status: 'invalid', message: invalidRecord(collection, fault) }
}

/** The key type, `tid`, `nsid`, `any` or `literal:<key>`; null for a collection without a lexicon. */
export const recordKeyType = (collection: string): string | null => recordDefinition(collection)?.key ?? null

/** Why a record key is invalid for this collection, as a message; null if it is valid or no lexicon says. */
export function recordKeyFault(collection: string, rkey: string): string | null {
  const type = recordKeyType(collection)
  return type === null ? null : keyFaultOf(type, collection, rkey)
}

/** Like `recordKeyFault`, for the key type of another document. */
export function keyFaultOf(type: string, collection: string, rkey: string): string | null {
  const expected = keyFault(type, rkey)
  return expected === null ? null : `Invalid record key for ${collection}: ${expected} at $.rkey`
}

function keyFault(type: string, rkey: string): string | null {
  if (type.startsWith('literal:')) {
    const literal = type.slice('literal:'.length)
    return rkey === literal ? null : `Expected ${describeValue(literal)} (got ${describeValue(rkey)})`
  }
  const format = type === 'tid' || type === 'nsid' ? type : 'record-key'
  return isOfFormat(format, rkey, unlimited) ? null : wrongFormat(format, rkey).message
}
