/**
 * Untrusted lexicon documents: checked and bounded, which ensures that compiling them cannot fail or take long, and
 * converted to the compiler's form.
 *
 * A definition is never itself a reference. Following a reference thus always leads deeper into the value, and a
 * document cannot make the checker loop.
 *
 * Source: atproto "Lexicon".
 */
import type { Nsid } from '../identifiers.ts'
import { isFormat, isObject, type Definition, type Document, type LooseObject, type Schema } from './schema.ts'

/** A document as its author published it. */
export interface LexiconDocument {
  lexicon: 1
  id: Nsid
  defs: Record<string, LooseObject>
}

/** Bounds of a document: several times those of the largest known lexicons. */
const MAX_CHARS = 256 * 1024
const MAX_LEVELS = 32
/** References of all types and unions together. */
const MAX_REFS = 2500
/** Most entries of a list or object, by the name of the member that holds it, anywhere in the document. */
const maxEntries: Record<string, number> = {
  defs: 500,
  properties: 500,
  required: 500,
  nullable: 500,
  refs: 250,
  enum: 5000,
  knownValues: 5000,
  accept: 100,
}

/** Returns, in words, which bound the JSON of a document exceeds; null if it is within all bounds. */
export function lexiconExcess(value: unknown): string | null {
  let refs = 0
  const excessIn = (part: unknown, level: number): string | null => {
    if (typeof part !== 'object' || part === null) return null
    if (level === MAX_LEVELS) return `more than ${MAX_LEVELS} levels`
    for (const [name, member] of Object.entries(part)) {
      const entries = typeof member === 'object' && member !== null ? Object.keys(member).length : 0
      if (Object.hasOwn(maxEntries, name) && entries > maxEntries[name]!)
        return `more than ${maxEntries[name]} entries of ${name}`
      if (name === 'refs') refs += entries
      if (name === 'ref') refs++
      const found = excessIn(member, level + 1)
      if (found !== null) return found
    }
    return null
  }
  const found = excessIn(value, 0)
  if (found !== null) return found
  if (refs > MAX_REFS) return `more than ${MAX_REFS} references`
  return JSON.stringify(value).length > MAX_CHARS ? `more than ${MAX_CHARS} characters` : null
}

type Holds = (value: unknown) => boolean

const isText: Holds = (value) => typeof value === 'string'
const isFlag: Holds = (value) => typeof value === 'boolean'
const isInteger: Holds = (value) => Number.isSafeInteger(value)
const isCount: Holds = (value) => isInteger(value) && (value as number) >= 0
const listOf =
  (holds: Holds): Holds =>
  (value) =>
    Array.isArray(value) && value.every(holds)
const mapOf =
  (holds: Holds): Holds =>
  (value) =>
    isObject(value) && Object.values(value).every(holds)
const isSchema: Holds = (value) => isObject(value) && fits(value, schemaFields)
const isRecordBody: Holds = (value) => isSchema(value) && (value as LooseObject)['type'] === 'object'
const isRef: Holds = (value) =>
  isText(value) && /^(?:[a-zA-Z0-9.-]+)?(?:#[a-zA-Z][a-zA-Z0-9]*)?$/.test(value as string) && value !== ''
const isKeyType: Holds = (value) => isText(value) && /^(?:tid|nsid|any|literal:.+)$/.test(value as string)

interface Fields {
  required?: Record<string, Holds>
  optional?: Record<string, Holds>
}

/** Schema types of values, with their required members. Other members are ignored. */
const schemaFields: Record<string, Fields> = {
  boolean: { optional: { const: isFlag, default: isFlag } },
  integer: {
    optional: { const: isInteger, default: isInteger, enum: listOf(isInteger), minimum: isInteger, maximum: isInteger },
  },
  string: {
    optional: {
      const: isText,
      default: isText,
      enum: listOf(isText),
      format: isText,
      knownValues: listOf(isText),
      minLength: isCount,
      maxLength: isCount,
      minGraphemes: isCount,
      maxGraphemes: isCount,
    },
  },
  bytes: { optional: { minLength: isCount, maxLength: isCount } },
  'cid-link': {},
  blob: { optional: { accept: listOf(isText), maxSize: isCount } },
  array: { required: { items: isSchema }, optional: { minLength: isCount, maxLength: isCount } },
  object: {
    optional: {
      properties: mapOf(isSchema),
      required: listOf(isText),
      nullable: listOf(isText),
    },
  },
  ref: { required: { ref: isRef } },
  union: { required: { refs: listOf(isRef) }, optional: { closed: isFlag } },
  unknown: {},
}

/** Other types of definitions. They do not describe values and are not compiled. */
const definitionFields: Record<string, Fields> = {
  ...Object.fromEntries(Object.entries(schemaFields).filter(([type]) => type !== 'ref' && type !== 'union')),
  record: { required: { key: isKeyType, record: isRecordBody } },
  token: {},
  query: {},
  procedure: {},
  subscription: {},
  'permission-set': { required: { permissions: listOf(isObject) } },
  space: { required: { collections: listOf(isText) }, optional: { name: isText, title: isText } },
}

/** Only `main` may be one of these. */
const mainOnly = new Set(['record', 'query', 'procedure', 'subscription', 'permission-set', 'space'])

function fits(value: LooseObject, types: Record<string, Fields>): boolean {
  const { type } = value
  if (typeof type !== 'string' || !Object.hasOwn(types, type)) return false
  const { required = {}, optional = {} } = types[type]!
  const holds = ([name, test]: [string, Holds]) => test(value[name])
  return (
    Object.entries(required).every(holds) &&
    Object.entries(optional).every((entry) => value[entry[0]] === undefined || holds(entry))
  )
}

/** Parses JSON as the document of `nsid`; null if it is not one. The caller has checked it with `lexiconExcess`. */
export function parseLexiconDocument(value: unknown, nsid: Nsid): LexiconDocument | null {
  if (!isObject(value) || value['lexicon'] !== 1 || value['id'] !== nsid || !isObject(value['defs'])) return null
  const isDefinition = ([name, definition]: [string, unknown]) =>
    isObject(definition) &&
    fits(definition, definitionFields) &&
    (name === 'main' || !mainOnly.has(definition['type'] as string))
  return Object.entries(value['defs']).every(isDefinition) ? (value as unknown as LexiconDocument) : null
}

/** A copy with absolute references, as the compiler expects. */
export const compilable = ({ id, defs }: LexiconDocument): Document => ({
  id,
  defs: absolute(defs, id) as Record<string, Definition>,
})

const absoluteRef = (ref: string, id: Nsid) => `lex:${ref.startsWith('#') ? id : ''}${ref}`

function absolute(value: unknown, id: Nsid): unknown {
  if (Array.isArray(value)) return value.map((item) => absolute(item, id))
  if (!isObject(value)) return value
  const copy = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, absolute(member, id)]))
  const schema = value as Partial<Schema>
  // A format newer than this server is no reason to refuse a value.
  if (schema.type === 'string' && schema.format !== undefined && !isFormat(schema.format)) delete copy['format']
  if (schema.type === 'ref' && typeof schema.ref === 'string') copy['ref'] = absoluteRef(schema.ref, id)
  if (schema.type === 'union' && Array.isArray(schema.refs))
    copy['refs'] = schema.refs.map((ref) => absoluteRef(ref, id))
  return copy
}
