/**
 * Writes `generated/documents.ts` (the lexicon documents this server needs) and `generated/types.ts` (their TypeScript
 * shapes in JSON form), from the documents that the pinned `@atproto/api` carries.
 *
 * Run by the `prepare` script. The output is a function of the lockfile and of the tables below, so it is not
 * committed. Types say what a valid value looks like; at run time objects and unions stay open, as lexicons are.
 */
import { mkdir } from 'node:fs/promises'
import { schemas } from '@atproto/api'
import type { Definition, Document, Schema } from './schema.ts'
import { spaceDocuments } from './space-documents.ts'

/** Methods outside com.atproto that this server answers or rewrites; all others are proxied unread. */
const servedMethods = [
  'app.bsky.actor.getPreferences',
  'app.bsky.actor.getProfile',
  'app.bsky.actor.getProfiles',
  'app.bsky.actor.putPreferences',
  'app.bsky.feed.getActorLikes',
  'app.bsky.feed.getAuthorFeed',
  'app.bsky.feed.getFeed',
  'app.bsky.feed.getFeedGenerator',
  'app.bsky.feed.getFeedSkeleton',
  'app.bsky.feed.getPostThread',
  'app.bsky.feed.getTimeline',
  'app.bsky.notification.registerPush',
  'app.bsky.notification.unregisterPush',
]

const personalDetails: Schema = { type: 'boolean' }
/** The object in which this server extends standard methods, under each of its names. */
const extension: Record<string, Schema> = { extension: { type: 'unknown' }, custos: { type: 'unknown' } }

/** Properties that this server adds to the standard documents or accepts in a wider form, by definition. */
const additions: Record<string, Record<string, Schema>> = {
  // What the gates of the server ask for.
  'com.atproto.server.createAccount input': extension,
  'com.atproto.server.createAppPassword input': { personalDetails },
  'com.atproto.server.createAppPassword#appPassword': { personalDetails },
  'com.atproto.server.listAppPasswords#appPassword': { personalDetails },
  // The method itself answers whether a name is a valid handle.
  'com.atproto.temp.checkHandleAvailability params': { handle: { type: 'string' } },
  'com.atproto.temp.checkHandleAvailability output': { handle: { type: 'string' } },
  // The second factor, as in `createSession`.
  'com.atproto.server.deleteAccount input': { ...extension, authFactorToken: { type: 'string' } },
  'com.atproto.server.describeServer output': extension,
}

function extend(all: Map<string, Document>) {
  for (const [place, properties] of Object.entries(additions)) {
    const [target = '', part] = place.split(' ')
    const [id = '', name = 'main'] = target.split('#')
    const definition = all.get(id)?.defs[name]
    const schema =
      { input: definition?.input?.schema, output: definition?.output?.schema, params: definition?.parameters }[
        part ?? ''
      ] ?? definition
    if (!schema?.properties) throw new Error(`nothing to extend at ${place}`)
    Object.assign(schema.properties, properties)
  }
}

/** The wanted documents and every document they refer to, in order of id. */
function select(all: Map<string, Document>): Document[] {
  const selected = new Set<string>()
  const visit = (id: string) => {
    if (selected.has(id)) return
    const document = all.get(id)
    if (!document) throw new Error(`no lexicon document ${id}`)
    selected.add(id)
    JSON.stringify(document, (key, value) => {
      if (key === 'ref' && typeof value === 'string') visit(refId(value))
      if (key === 'refs' && Array.isArray(value)) value.forEach((ref: string) => visit(refId(ref)))
      return value
    })
  }
  for (const { id, defs } of all.values())
    if (id.startsWith('com.atproto.') || defs['main']?.type === 'record') visit(id)
  servedMethods.forEach(visit)
  return [...selected].sort().map((id) => all.get(id)!)
}

const refName = (ref: string) => ref.replace(/^lex:/, '').replace(/#main$/, '')
const refId = (ref: string) => refName(ref).replace(/#.*/, '')

/** Fields for human readers, which are left out of what the server loads. */
const withoutProse = (document: Document): string =>
  JSON.stringify(document, (key, value) => (key === 'description' && typeof value === 'string' ? undefined : value))

const formatTypes: Record<string, string> = {
  did: 'Did',
  handle: 'Handle',
  'at-identifier': 'Did | Handle',
  nsid: 'Nsid',
  tid: 'Tid',
  'record-key': 'RecordKey',
  'at-uri': 'AtUri',
  'space-ref': 'SpaceUri',
}
const plainTypes: Record<string, string> = {
  boolean: 'boolean',
  integer: 'number',
  unknown: 'LexObject',
  blob: 'LexBlob',
  bytes: 'LexBytes',
  'cid-link': 'LexLink',
}

const literals = (values: (string | number | boolean)[]) => values.map((value) => JSON.stringify(value)).join(' | ')

/** `defaulted`: validation has filled in defaults, so such properties are always there. */
function typeOf(schema: Schema, defaulted = false): string {
  if (schema.const !== undefined) return literals([schema.const])
  if (schema.enum) return literals(schema.enum)
  switch (schema.type) {
    case 'string':
      if (schema.knownValues) return `${literals(schema.knownValues)} | (string & {})`
      return formatTypes[schema.format ?? ''] ?? 'string'
    case 'array':
      return `(${typeOf(schema.items!)})[]`
    case 'ref':
      return `LexDefs[${JSON.stringify(refName(schema.ref!))}]`
    case 'union':
      return (
        schema.refs!.map((ref) => `({ $type: '${refName(ref)}' } & LexDefs['${refName(ref)}'])`).join(' | ') ||
        'LexObject'
      )
    case 'object':
    case 'params':
      return objectType(schema, defaulted)
    default: {
      const plain = plainTypes[schema.type]
      if (!plain) throw new Error(`no type for a lexicon ${schema.type}`)
      return plain
    }
  }
}

function objectType(schema: Schema, defaulted: boolean): string {
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const present = schema.required?.includes(name) || (defaulted && property.default !== undefined)
    const nullable = schema.nullable?.includes(name) ? ' | null' : ''
    return `${JSON.stringify(name)}${present ? '' : '?'}: ${typeOf(property)}${nullable}`
  })
  return `{ ${fields.join('; ')} }`
}

/** A body that is not JSON has no type here: it is read as a stream, and written as a `Response`. */
function methodType({ type, parameters, input, output }: Definition): string {
  const fields = [
    `kind: '${type}'`,
    `params: ${parameters ? typeOf(parameters, true) : '{}'}`,
    `input: ${input?.schema ? typeOf(input.schema, true) : 'null'}`,
    `output: ${output?.schema ? typeOf(output.schema) : output ? 'Response' : 'void'}`,
  ]
  return `{ ${fields.join('; ')} }`
}

const isMethod = (definition: Definition) => ['query', 'procedure', 'subscription'].includes(definition.type)

function typesModule(documents: Document[]): string {
  const definitions: string[] = []
  const records: string[] = []
  const methods: string[] = []
  for (const { id, defs } of documents) {
    for (const [name, definition] of Object.entries(defs)) {
      const key = name === 'main' ? `'${id}'` : `'${id}#${name}'`
      if (isMethod(definition)) methods.push(`  ${key}: ${methodType(definition)}`)
      else if (definition.type === 'token') definitions.push(`  ${key}: ${key}`)
      else if (definition.type === 'record') records.push(`  ${key}: { $type: ${key} } & ${typeOf(definition.record!)}`)
      else if (definition.type !== 'permission-set') definitions.push(`  ${key}: ${typeOf(definition)}`)
    }
  }
  return `// Generated by ../generate.ts.
import type { AtUri, Did, Handle, Nsid, RecordKey, SpaceUri, Tid } from '../../identifiers.ts'

export type LexObject = Record<string, unknown>
export type LexLink = { $link: string }
export type LexBytes = { $bytes: string }
export type LexBlob = { $type: 'blob'; ref: LexLink; mimeType: string; size: number }

/** Methods by NSID. In \`params\` and \`input\`, properties that have a default are always there. */
export interface LexMethods {
${methods.join('\n')}
}

/** Records by collection. */
export interface LexRecords {
${records.join('\n')}
}

/** Every definition that is no method, by \`nsid#name\`, or \`nsid\` for a main one. Unions list the known members. */
export interface LexDefs extends LexRecords {
${definitions.join('\n')}
}
`
}

const documentsModule = (documents: Document[]): string => `// Generated by ../generate.ts.
/** The documents as JSON text: parsed when first needed. */
export const documentsJson = ${JSON.stringify(`[${documents.map(withoutProse).join(',')}]`)}
`

const published = structuredClone(schemas) as Document[]
const all = new Map([...published, ...spaceDocuments].map((document) => [document.id, document]))
extend(all)
const documents = select(all)
const FOLDER = `${import.meta.dir}/generated`
await mkdir(FOLDER, { recursive: true })
await Bun.write(`${FOLDER}/documents.ts`, documentsModule(documents))
await Bun.write(`${FOLDER}/types.ts`, typesModule(documents))
