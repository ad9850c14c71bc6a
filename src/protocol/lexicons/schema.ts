/**
 * Lexicon schemas compiled into checks.
 *
 * A check works on the JSON form of a value (`{"$link"}`, `{"$bytes"}`, blobs as plain objects) and also accepts
 * CIDs and bytes that were already decoded, so nothing is converted before it is validated. It answers `null`, or
 * a fault that starts with the place and ends with the expectation (`/embed/images must be an array`); the caller
 * puts the name of the whole in front.
 *
 * Stricter than `@atproto/lexicon`, its oracle in the tests, as the reference server is: datetimes follow the
 * specification, the `accept` and `maxSize` of a blob are enforced, and a list is no object.
 *
 * Source: atproto "Lexicon" and "Data Model".
 */
import {
  isAtIdentifierString,
  isDatetimeString,
  isValidAtUri,
  isValidDid,
  isValidHandle,
  isValidLanguage,
  isValidNsid,
  isValidRecordKey,
  isValidTid,
  isValidUri,
} from '@atproto/syntax'
import { CID } from 'multiformats/cid'
import { Cid, isCid } from '../cid.ts'

export interface Schema {
  type: string
  required?: string[]
  nullable?: string[]
  properties?: Record<string, Schema>
  items?: Schema
  ref?: string
  refs?: string[]
  closed?: boolean
  record?: Schema
  enum?: (string | number)[]
  knownValues?: string[]
  const?: string | number | boolean
  default?: string | number | boolean
  format?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minGraphemes?: number
  maxGraphemes?: number
  accept?: string[]
  maxSize?: number
}

export interface Body {
  encoding: string
  schema?: Schema
}

/** A schema with a name; methods have bodies, records a key type. */
export interface Definition extends Schema {
  parameters?: Schema
  input?: Body
  output?: Body
  key?: string
}

export interface Document {
  id: string
  defs: Record<string, Definition>
}

export type Check = (value: unknown) => string | null
/** Finds the schema behind an absolute reference (`lex:nsid` or `lex:nsid#name`). */
export type FindSchema = (ref: string) => Schema | undefined

export type LooseObject = Record<string, unknown>
export const isObject = (value: unknown): value is LooseObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Cid) && !(value instanceof Uint8Array)

/** The longest text of a CID with any digest in use; decoding is quadratic in some bases. */
const maxCidChars = 128

const formats: Record<string, { holds: (text: string) => boolean; expected: string }> = {
  'datetime': { holds: isDatetimeString, expected: 'must be an valid atproto datetime (both RFC-3339 and ISO-8601)' },
  'uri': { holds: isValidUri, expected: 'must be a uri' },
  'at-uri': { holds: isValidAtUri, expected: 'must be a valid at-uri' },
  'did': { holds: isValidDid, expected: 'must be a valid did' },
  'handle': { holds: isValidHandle, expected: 'must be a valid handle' },
  'at-identifier': { holds: isAtIdentifierString, expected: 'must be a valid did or a handle' },
  'nsid': { holds: isValidNsid, expected: 'must be a valid nsid' },
  'cid': { holds: isCidText, expected: 'must be a cid string' },
  'language': { holds: isValidLanguage, expected: 'must be a well-formed BCP 47 language tag' },
  'tid': { holds: isValidTid, expected: 'must be a valid TID' },
  'record-key': { holds: isValidRecordKey, expected: 'must be a valid Record Key' },
}

export const isFormat = (format: string): boolean => Object.hasOwn(formats, format)

/** A lexicon leads to what is no definition of a value. */
export class LexiconFault extends Error {}

/** A compiler whose results are made once per schema object, when first used. */
export function schemaCompiler(find: FindSchema): (schema: Schema) => Check {
  const compiled = new WeakMap<Schema, Check>()

  function compile(schema: Schema): Check {
    const known = compiled.get(schema)
    if (known) return known
    const builder = builders[schema.type]
    if (!builder) throw new LexiconFault(`a lexicon ${schema.type} has no values`)
    const check = builder(schema)
    compiled.set(schema, check)
    return check
  }

  function compileRef(ref: string): Check {
    const schema = find(ref)
    if (!schema) throw new LexiconFault(`no lexicon definition ${ref}`)
    return compile(schema.type === 'record' ? schema.record! : schema)
  }

  /** References are followed at the first value, because definitions refer to each other in circles. */
  function reference(ref: string): Check {
    let check: Check | undefined
    return (value) => (check ??= compileRef(ref))(value)
  }

  function union(schema: Schema): Check {
    const members = new Map((schema.refs ?? []).map((ref) => [memberName(ref), reference(ref)]))
    return (value) => {
      if (!isObject(value) || typeof value['$type'] !== 'string') return ' must be an object which includes the "$type" property'
      const member = members.get(memberName(value['$type']))
      if (member) return member(value)
      return schema.closed ? ` $type must be one of ${schema.refs?.join(', ')}` : null
    }
  }

  function array(schema: Schema): Check {
    const item = compile(schema.items!)
    const { minLength = 0, maxLength = Infinity } = schema
    return (value) => {
      if (!Array.isArray(value)) return ' must be an array'
      if (value.length > maxLength) return ` must not have more than ${maxLength} elements`
      if (value.length < minLength) return ` must not have fewer than ${minLength} elements`
      for (let index = 0; index < value.length; index++) {
        const fault = item(value[index])
        if (fault !== null) return `/${index}${fault}`
      }
      return null
    }
  }

  function object(schema: Schema): Check {
    const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => ({
      name,
      check: compile(property),
      required: (schema.required?.includes(name) ?? false) && property.default === undefined,
      nullable: schema.nullable?.includes(name) ?? false,
    }))
    return (value) => {
      if (!isObject(value)) return ' must be an object'
      for (const { name, check, required, nullable } of fields) {
        const property = value[name]
        if (property === undefined) {
          if (required) return ` must have the property "${name}"`
          continue
        }
        if (property === null && nullable) continue
        const fault = check(property)
        if (fault !== null) return `/${name}${fault}`
      }
      return null
    }
  }

  const builders: Record<string, (schema: Schema) => Check> = {
    object,
    array,
    union,
    ref: (schema) => reference(schema.ref!),
    blob,
    bytes,
    string,
    integer,
    boolean,
    'cid-link': () => (value) => (isLink(value) ? null : ' must be a CID'),
    'unknown': () => (value) => (isObject(value) ? null : ' must be an object'),
  }
  return compile
}

/** `#main` may be spelled out or left out, in references and in `$type`. */
const memberName = (ref: string) => ref.replace(/^lex:/, '').replace(/#main$/, '')

function boolean(schema: Schema): Check {
  return (value) => {
    if (typeof value !== 'boolean') return ' must be a boolean'
    return schema.const !== undefined && value !== schema.const ? ` must be ${schema.const}` : null
  }
}

function integer(schema: Schema): Check {
  const { minimum = -Infinity, maximum = Infinity } = schema
  return (value) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) return ' must be an integer'
    const fault = choiceFault(schema, value)
    if (fault !== null) return fault
    if (value > maximum) return ` can not be greater than ${maximum}`
    if (value < minimum) return ` can not be less than ${minimum}`
    return null
  }
}

function string(schema: Schema): Check {
  const format = schema.format === undefined ? undefined : formats[schema.format]
  if (schema.format !== undefined && !format) throw new Error(`unknown string format ${schema.format}`)
  return (value) => {
    if (typeof value !== 'string') return ' must be a string'
    return choiceFault(schema, value) ?? lengthFault(schema, value) ?? (format && !format.holds(value) ? ` ${format.expected}` : null)
  }
}

function choiceFault(schema: Schema, value: string | number): string | null {
  if (schema.const !== undefined && value !== schema.const) return ` must be ${schema.const}`
  if (schema.enum && !schema.enum.includes(value)) return ` must be one of (${schema.enum.join('|')})`
  return null
}

/** A UTF-16 unit is one to three bytes of UTF-8 and at most one grapheme, so most texts need no counting. */
function lengthFault({ minLength = 0, maxLength = Infinity, minGraphemes = 0, maxGraphemes = Infinity }: Schema, text: string): string | null {
  if (text.length * 3 > maxLength || text.length < minLength) {
    const length = Buffer.byteLength(text)
    if (length > maxLength) return ` must not be longer than ${maxLength} characters`
    if (length < minLength) return ` must not be shorter than ${minLength} characters`
  }
  if (text.length > maxGraphemes || minGraphemes > 0) {
    const length = graphemeCount(text)
    if (length > maxGraphemes) return ` must not be longer than ${maxGraphemes} graphemes`
    if (length < minGraphemes) return ` must not be shorter than ${minGraphemes} graphemes`
  }
  return null
}

const segmenter = new Intl.Segmenter()

function graphemeCount(text: string): number {
  let count = 0
  for (const _ of segmenter.segment(text)) count++
  return count
}

function bytes({ minLength = 0, maxLength = Infinity }: Schema): Check {
  return (value) => {
    const size = byteLength(value)
    if (size === null) return ' must be a byte array'
    if (size > maxLength) return ` must not be larger than ${maxLength} bytes`
    if (size < minLength) return ` must not be smaller than ${minLength} bytes`
    return null
  }
}

function byteLength(value: unknown): number | null {
  if (value instanceof Uint8Array) return value.byteLength
  const text = soleProperty(value, '$bytes')
  return text !== null && /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? Buffer.byteLength(text, 'base64') : null
}

function blob(schema: Schema): Check {
  return (value) => {
    const reference = isObject(value) && value['$type'] === 'blob' ? value : null
    const { ref, mimeType, size } = reference ?? {}
    if (!isLink(ref) || typeof mimeType !== 'string' || !Number.isSafeInteger(size)) return ' should be a blob ref'
    if (schema.accept && !schema.accept.some((pattern) => acceptsType(pattern, mimeType)))
      return ` has mime type "${mimeType}", expected one of ${schema.accept.join(', ')}`
    if (schema.maxSize !== undefined && (size as number) > schema.maxSize) return ` is ${size} bytes, at most ${schema.maxSize} are allowed`
    return null
  }
}

const acceptsType = (pattern: string, mimeType: string) =>
  pattern === '*/*' || pattern === mimeType || (pattern.endsWith('/*') && mimeType.startsWith(pattern.slice(0, -1)))

function isLink(value: unknown): boolean {
  if (value instanceof Cid) return true
  const text = soleProperty(value, '$link')
  return text !== null && isCid(text)
}

/** The text of an object that has this one property and no other. */
function soleProperty(value: unknown, name: string): string | null {
  if (!isObject(value) || Object.keys(value).length !== 1) return null
  const text = value[name]
  return typeof text === 'string' ? text : null
}

function isCidText(text: string): boolean {
  // Nearly every CID is of the one kind that is ours.
  if (isCid(text)) return true
  if (text.length > maxCidChars) return false
  try {
    CID.parse(text)
    return true
  } catch {
    return false
  }
}
