/**
 * Lexicon schemas compiled into checks.
 *
 * A check works on the JSON form of a value (`{"$link"}`, `{"$bytes"}`, blobs as plain objects) and also accepts CIDs
 * and bytes that were already decoded; nothing has to be converted before it is validated. It returns null, or a fault:
 * what was expected, in the words of the reference implementation, and the path. The caller gives the start of the path
 * (`faultText(fault, '$.record')`).
 *
 * Stricter than `@atproto/lexicon`, its oracle in the tests, as the reference server is: datetimes follow the
 * specification, the `accept` and `maxSize` of a blob are enforced, and a list is not an object.
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
import { madeOnce } from '../../base/made-once.ts'
import { Cid, isCid } from '../cid.ts'
import { isSpaceAddress, parseSpaceUri } from '../space-address.ts'
import { pathSegment } from '../value-path.ts'

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

/** A named schema. Methods have bodies, records have a key type. */
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

export interface Fault {
  message: string
  /** Path from the checked value to the faulty one, such as `.embed.images[0]`. */
  path: string
}

/** The state of one validation, shared by all checks that it leads to. */
export interface Run {
  /** How many values, members of objects and characters of texts may still be looked at. */
  steps: number
  /** Returns the check of an absolute reference to a document that was not known at compile time. */
  follow(ref: string): Check
}

/** Throws `TooManySteps`. */
export type Check = (value: unknown, run: Run) => Fault | null
/**
 * Returns the check of an absolute reference (`lex:nsid` or `lex:nsid#name`). Throws `LexiconFault` if there is none.
 */
export type CheckOf = (ref: string) => Check

export type LooseObject = Record<string, unknown>
export const isObject = (value: unknown): value is LooseObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Cid) &&
  !(value instanceof Uint8Array)

/** Longest text of a CID with any digest in use. Decoding takes quadratic time in some bases. */
const MAX_CID_CHARS = 128
/**
 * Four times what RFC 5646, 4.4.1, asks for. The library's regular expression takes a microsecond for every few
 * characters of a long text.
 */
const MAX_LANGUAGE_CHARS = 140

/**
 * Steps charged for work that takes longer than reading a text: for each text that is split into graphemes, and for
 * each character of a CID that is decoded.
 */
const SPLITTING_STEPS = 64
const CID_CHAR_STEPS = 16

/**
 * Formats with their names in error messages. A format that costs more than reading the text once charges steps for it.
 */
const formats: Record<string, { holds: (text: string, run: Run) => boolean; name: string }> = {
  datetime: { holds: isDatetimeString, name: 'datetime' },
  uri: { holds: isValidUri, name: 'uri' },
  'at-uri': { holds: (text) => isValidAtUri(text) || isSpaceAddress(text), name: 'at-uri' },
  did: { holds: isValidDid, name: 'DID' },
  handle: { holds: isValidHandle, name: 'handle' },
  'at-identifier': { holds: isAtIdentifierString, name: 'AT identifier' },
  nsid: { holds: isValidNsid, name: 'NSID' },
  cid: { holds: isCidText, name: 'CID string' },
  language: { holds: (text) => text.length <= MAX_LANGUAGE_CHARS && isValidLanguage(text), name: 'language' },
  tid: { holds: isValidTid, name: 'TID string' },
  'record-key': { holds: isValidRecordKey, name: 'record key' },
  'space-ref': { holds: (text) => parseSpaceUri(text) !== null, name: 'space' },
}

export const isOfFormat = (format: string, text: string, run: Run): boolean => formats[format]!.holds(text, run)

export const isFormat = (format: string): boolean => Object.hasOwn(formats, format)

// Error messages

/** The message of a fault with its path, for a value at `base`. */
export const faultText = ({ message, path }: Fault, base: string): string => `${message} at ${base}${path}`

const at = (message: string): Fault => ({ message, path: '' })
const wrongType = (expected: string, value: unknown): Fault =>
  at(`Expected ${expected} value type (got ${describeValue(value)})`)
const wrongChoice = (choices: readonly unknown[], value: unknown): Fault =>
  at(`Expected ${oneOf(described(choices))} (got ${describeValue(value)})`)
const tooBig = (what: string, maximum: number, actual: number): Fault =>
  at(`${what} too big (maximum ${maximum}, got ${actual})`)
const tooSmall = (what: string, minimum: number, actual: number): Fault =>
  at(`${what} too small (minimum ${minimum}, got ${actual})`)
/** The fault of a text that does not match its format. */
export const wrongFormat = (format: string, text: string): Fault =>
  at(`Invalid ${formats[format]!.name} (got ${describeValue(text)})`)

/** Turns a fault of a part into a fault of the whole. */
function within(part: string | number, fault: Fault): Fault {
  fault.path = pathSegment(part) + fault.path
  return fault
}

function described(choices: readonly unknown[]): string[] {
  const shown = choices.slice(0, MAX_DESCRIBED_CHOICES).map(describeValue)
  return shown.length < choices.length ? [...shown, `${choices.length - shown.length} others`] : shown
}

function oneOf(choices: readonly string[]): string {
  return choices.length < 2 ? choices.join('') : `one of ${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`
}

/** How many characters of a text, and entries of a list or an object, an error message repeats. */
const MAX_DESCRIBED_CHARS = 256
const MAX_DESCRIBED_ENTRIES = 2
/** How many choices it lists. */
const MAX_DESCRIBED_CHOICES = 40

/** A value as an error message repeats it: scalars whole, lists and objects by their first entries. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length < MAX_DESCRIBED_CHARS ? value : `${value.slice(0, MAX_DESCRIBED_CHARS - 1)}…`)
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value))
    return `[${firstOf(value, (entry) => (Array.isArray(entry) ? '[...]' : describeValue(entry)))}]`
  if (value instanceof Cid) return 'cid'
  return isObject(value) ? `{${firstOf(Object.keys(value), (key) => `${describeValue(key)}: ...`)}}` : 'object'
}

const firstOf = <T>(entries: readonly T[], show: (entry: T) => string): string =>
  entries.slice(0, MAX_DESCRIBED_ENTRIES).map(show).join(', ') + (entries.length > MAX_DESCRIBED_ENTRIES ? ', ...' : '')

/** Thrown if a lexicon refers to something that does not describe a value. */
export class LexiconFault extends Error {}

/** Thrown by a check that has used up the steps of its run. */
export class TooManySteps extends Error {}

function spend(run: Run, steps: number): void {
  run.steps -= steps
  if (run.steps < 0) throw new TooManySteps('the validation takes too many steps')
}

/** The schema of the values that a definition describes. */
export const valueSchema = (definition: Definition): Schema =>
  definition.type === 'record' ? definition.record! : definition

/**
 * For objects with more members, the check iterates over the members of the value instead of those of the schema:
 * otherwise many small values of a wide schema would take time proportional to the product of both.
 */
const MAX_NARROW_MEMBERS = 32

interface Field {
  name: string
  check: Check
  required: boolean
  nullable: boolean
}

/**
 * A compiler that caches its result per schema object on first use. Whatever the schema, a compiled check takes time
 * proportional to the size of the value.
 */
export function schemaCompiler(checkOf: CheckOf): (schema: Schema) => Check {
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

  /** References are resolved at the first value, because definitions may refer to each other in cycles. */
  function reference(ref: string): Check {
    let check: Check | undefined
    return (value, run) => (check ??= checkOf(ref))(value, run)
  }

  function union(schema: Schema): Check {
    const members = new Map((schema.refs ?? []).map((ref) => [memberName(ref), reference(ref)]))
    return (value, run) => {
      if (!isObject(value) || typeof value['$type'] !== 'string')
        return wrongType('an object which includes the "$type" property', value)
      const type = value['$type']
      spend(run, type.length)
      const member = members.get(memberName(type))
      if (member) return member(value, run)
      return schema.closed ? within('$type', wrongChoice([...members.keys()], type)) : null
    }
  }

  function array(schema: Schema): Check {
    const item = compile(schema.items!)
    const { minLength = 0, maxLength = Infinity } = schema
    return (value, run) => {
      if (!Array.isArray(value)) return wrongType('array', value)
      if (value.length > maxLength) return tooBig('array', maxLength, value.length)
      if (value.length < minLength) return tooSmall('array', minLength, value.length)
      spend(run, value.length)
      for (let index = 0; index < value.length; index++) {
        const fault = item(value[index], run)
        if (fault !== null) return within(index, fault)
      }
      return null
    }
  }

  function object(schema: Schema): Check {
    const required = new Set(schema.required)
    const nullable = new Set(schema.nullable)
    const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => ({
      name,
      check: compile(property),
      required: required.has(name) && property.default === undefined,
      nullable: nullable.has(name),
    }))
    return fields.length > MAX_NARROW_MEMBERS ? wideObject(fields) : narrowObject(fields)
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
    'cid-link': () => (value) => (isLink(value) ? null : wrongType('cid', value)),
    unknown: () => (value) => (isObject(value) ? null : wrongType('object', value)),
  }
  return compile
}

function narrowObject(fields: readonly Field[]): Check {
  return (value, run) => {
    if (!isObject(value)) return wrongType('object', value)
    spend(run, fields.length)
    for (const { name, check, required, nullable } of fields) {
      const property = value[name]
      if (property === undefined) {
        if (required) return at(`Missing required key "${name}"`)
        continue
      }
      if (property === null && nullable) continue
      const fault = check(property, run)
      if (fault !== null) return within(name, fault)
    }
    return null
  }
}

function wideObject(fields: readonly Field[]): Check {
  const byName = new Map(fields.map((field) => [field.name, field]))
  const required = fields.filter((field) => field.required)
  return (value, run) => {
    if (!isObject(value)) return wrongType('object', value)
    // Linear in the value: either the first missing property ends the validation, or the value has all of them.
    const missing = required.find(({ name }) => value[name] === undefined)
    if (missing) return at(`Missing required key "${missing.name}"`)
    const names = Object.keys(value)
    spend(run, names.length)
    for (const name of names) {
      const field = byName.get(name)
      const property = value[name]
      if (!field || property === undefined || (property === null && field.nullable)) continue
      const fault = field.check(property, run)
      if (fault !== null) return within(name, fault)
    }
    return null
  }
}

/** `#main` may be present or left out, in references and in `$type`. */
const memberName = (ref: string) => ref.replace(/^lex:/, '').replace(/#main$/, '')

function boolean(schema: Schema): Check {
  return (value) => {
    if (typeof value !== 'boolean') return wrongType('boolean', value)
    return schema.const !== undefined && value !== schema.const ? wrongChoice([schema.const], value) : null
  }
}

function integer(schema: Schema): Check {
  const { minimum = -Infinity, maximum = Infinity } = schema
  const choiceFault = choosing(schema)
  return (value) => {
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) return wrongType('integer', value)
    const fault = choiceFault === null ? null : choiceFault(value)
    if (fault !== null) return fault
    if (value > maximum) return tooBig('integer', maximum, value)
    if (value < minimum) return tooSmall('integer', minimum, value)
    return null
  }
}

function string(schema: Schema): Check {
  const format = schema.format === undefined ? undefined : formats[schema.format]
  if (schema.format !== undefined && !format) throw new Error(`unknown string format ${schema.format}`)
  const choiceFault = choosing(schema)
  return (value, run) => {
    if (typeof value !== 'string') return wrongType('string', value)
    spend(run, value.length)
    return (
      (choiceFault === null ? null : choiceFault(value)) ??
      lengthFault(schema, value, run) ??
      (format && !format.holds(value, run) ? wrongFormat(schema.format!, value) : null)
    )
  }
}

/** Null if the schema permits every value. */
function choosing({ const: only, enum: choices }: Schema): ((value: string | number) => Fault | null) | null {
  if (only === undefined && !choices) return null
  const permitted = choices && new Set(choices)
  return (value) => {
    if (only !== undefined && value !== only) return wrongChoice([only], value)
    return permitted && !permitted.has(value) ? wrongChoice(choices!, value) : null
  }
}

/** Most texts need no counting: a UTF-16 unit is one to three bytes of UTF-8 and at most one grapheme. */
function lengthFault(
  { minLength = 0, maxLength = Infinity, minGraphemes = 0, maxGraphemes = Infinity }: Schema,
  text: string,
  run: Run,
): Fault | null {
  if (text.length * 3 > maxLength || text.length < minLength) {
    const length = Buffer.byteLength(text)
    if (length > maxLength) return tooBig('string', maxLength, length)
    if (length < minLength) return tooSmall('string', minLength, length)
  }
  if (text.length > maxGraphemes || minGraphemes > 0) {
    const length = graphemeCount(text, run)
    if (length > maxGraphemes) return tooBig('grapheme', maxGraphemes, length)
    if (length < minGraphemes) return tooSmall('grapheme', minGraphemes, length)
  }
  return null
}

/** Made on first use, because it would delay the start by milliseconds. */
const segmenter = madeOnce(() => new Intl.Segmenter())

/** Whether each UTF-16 unit is one grapheme. In ASCII it is, except in CRLF, which is one grapheme. */
const isPlain = (text: string): boolean => /^[^\r\u0080-\uffff]*$/.test(text)

function graphemeCount(text: string, run: Run): number {
  if (isPlain(text)) return text.length
  spend(run, SPLITTING_STEPS)
  let count = 0
  for (const _ of segmenter().segment(text)) count++
  return count
}

function bytes({ minLength = 0, maxLength = Infinity }: Schema): Check {
  return (value, run) => {
    const size = byteLength(value)
    if (size === null) return wrongType('bytes', value)
    spend(run, size)
    if (size > maxLength) return tooBig('bytes', maxLength, size)
    if (size < minLength) return tooSmall('bytes', minLength, size)
    return null
  }
}

function byteLength(value: unknown): number | null {
  if (value instanceof Uint8Array) return value.byteLength
  const text = soleProperty(value, '$bytes')
  return text !== null && /^[A-Za-z0-9+/]*={0,2}$/.test(text) ? Buffer.byteLength(text, 'base64') : null
}

function blob(schema: Schema): Check {
  const accepts = schema.accept && acceptance(schema.accept)
  return (value, run) => {
    const reference = isObject(value) && value['$type'] === 'blob' ? value : null
    const { ref, mimeType, size } = reference ?? {}
    if (!isLink(ref) || typeof mimeType !== 'string' || !Number.isSafeInteger(size)) return wrongType('blob', value)
    if (accepts && !accepts(mimeType, run)) return within('mimeType', wrongChoice(schema.accept!, mimeType))
    if (schema.maxSize !== undefined && (size as number) > schema.maxSize)
      return tooBig('blob', schema.maxSize, size as number)
    return null
  }
}

/** Media types, and patterns of them such as `image/*`. */
function acceptance(patterns: readonly string[]): (mimeType: string, run: Run) => boolean {
  const types = new Set(patterns)
  const families = patterns.filter((pattern) => pattern.endsWith('/*')).map((pattern) => pattern.slice(0, -1))
  if (types.has('*/*')) return () => true
  return (mimeType, run) => {
    if (types.has(mimeType)) return true
    spend(run, families.length)
    return families.some((family) => mimeType.startsWith(family))
  }
}

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

function isCidText(text: string, run: Run): boolean {
  // Nearly every CID is of the one form that atproto allows.
  if (isCid(text)) return true
  if (text.length > MAX_CID_CHARS) return false
  spend(run, text.length * CID_CHAR_STEPS)
  try {
    CID.parse(text)
    return true
  } catch {
    return false
  }
}
