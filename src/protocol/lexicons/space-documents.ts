/**
 * The lexicons of permissioned data, as drafted in October 2026 (`SPACE_WIRE`): what an account does with its own
 * repositories in spaces. No package carries them yet.
 *
 * Source: atproto proposal 0016, and the announcements that followed it.
 */
import type { Definition, Document, Schema } from './schema.ts'

const DRAFT = 'com.atproto.space'

const text = (format?: string): Schema => ({ type: 'string', ...(format && { format }) })
const integer = (bounds: Pick<Schema, 'default' | 'minimum' | 'maximum'>): Schema => ({ type: 'integer', ...bounds })
const list = (items: Schema): Schema => ({ type: 'array', items })
const ref = (name: string): Schema => ({ type: 'ref', ref: `lex:${DRAFT}.defs#${name}` })
/** All properties are required, except those whose name ends in a question mark. */
function object(properties: Record<string, Schema>, nullable: string[] = []): Schema {
  const entries = Object.entries(properties)
  return {
    type: 'object',
    required: entries.map(([name]) => name).filter((name) => !name.endsWith('?')),
    nullable,
    properties: Object.fromEntries(entries.map(([name, schema]) => [name.replace('?', ''), schema])),
  }
}
const parameters = (properties: Record<string, Schema>): Schema => ({ ...object(properties), type: 'params' })
const json = (schema: Schema) => ({ encoding: 'application/json', schema })

const boolean: Schema = { type: 'boolean' }
const unknown: Schema = { type: 'unknown' }
const space = text('space-ref')
const place = { space, repo: text('did') }
const path = { collection: text('nsid'), rkey: text('record-key') }
const cursor = { 'cursor?': text() }
const limit = (standard: number, maximum = 1000) => ({
  'limit?': integer({ default: standard, minimum: 1, maximum }),
})
const status: Schema = { type: 'string', knownValues: ['valid', 'unknown'] }
const written = object({ uri: text(), cid: text('cid'), 'validationStatus?': status })

const query = (given: Record<string, Schema>, output: Definition['output']): Definition => ({
  type: 'query',
  parameters: parameters(given),
  output,
})
const procedure = (input: Schema, output: Schema): Definition => ({
  type: 'procedure',
  input: json(input),
  output: json(output),
})

const writes = {
  create: object({ collection: text('nsid'), 'rkey?': text('record-key'), value: unknown }),
  update: object({ ...path, value: unknown }),
  delete: object(path),
}
const results = {
  createResult: written,
  updateResult: written,
  deleteResult: object({}),
}
const union = (method: string, names: string[]): Schema => ({
  type: 'union',
  closed: true,
  refs: names.map((name) => `lex:${DRAFT}.${method}#${name}`),
})

/** The definitions of each document, by the last part of its NSID. */
const documents: Record<string, Record<string, Definition>> = {
  defs: {
    commit: object({
      ver: { type: 'integer' },
      hash: { type: 'bytes' },
      ikm: { type: 'bytes' },
      sig: { type: 'bytes' },
      mac: { type: 'bytes' },
      rev: text('tid'),
    }),
    record: object({ ...path, cid: text('cid'), 'value?': unknown }),
    op: object({ rev: text('tid'), ...path, cid: text('cid'), prev: text('cid'), 'value?': unknown }, ['cid', 'prev']),
    spaceView: object({ uri: space }),
  },
  createRecord: {
    main: procedure(
      object({
        ...place,
        collection: path.collection,
        'rkey?': path.rkey,
        'validate?': boolean,
        record: unknown,
      }),
      written,
    ),
  },
  putRecord: { main: procedure(object({ ...place, ...path, 'validate?': boolean, record: unknown }), written) },
  deleteRecord: { main: procedure(object({ ...place, ...path }), object({})) },
  applyWrites: {
    main: procedure(
      object({ ...place, 'validate?': boolean, writes: list(union('applyWrites', Object.keys(writes))) }),
      object({ results: list(union('applyWrites', Object.keys(results))) }),
    ),
    ...writes,
    ...results,
  },
  getRecord: {
    main: query({ ...place, ...path }, json(object({ uri: text(), cid: text('cid'), value: unknown }))),
  },
  listRecords: {
    main: query(
      {
        ...place,
        'collection?': text('nsid'),
        ...limit(50),
        ...cursor,
        'reverse?': boolean,
        'excludeValues?': boolean,
      },
      json(object({ records: list(ref('record')), ...cursor })),
    ),
  },
  getLatestCommit: { main: query(place, json(object({ commit: ref('commit') }))) },
  listRepoOps: {
    main: query(
      { ...place, 'since?': text('tid'), ...limit(100), ...cursor, 'excludeValues?': boolean },
      json(object({ ops: list(ref('op')), ...cursor, 'commit?': ref('commit') })),
    ),
  },
  listBlobs: {
    main: query(
      { ...place, 'since?': text('tid'), ...limit(500), ...cursor },
      json(object({ cids: list(text('cid')), ...cursor })),
    ),
  },
  getBlob: { main: query({ ...place, cid: text('cid') }, { encoding: '*/*' }) },
  listSpaces: {
    main: query(
      { 'spaceType?': text('nsid'), 'did?': text('did'), ...limit(50, 100), ...cursor },
      json(object({ spaces: list(ref('spaceView')), ...cursor })),
    ),
  },
}

export const spaceDocuments: readonly Document[] = Object.entries(documents).map(([name, defs]) => ({
  id: `${DRAFT}.${name}`,
  defs,
}))
