import { expect, test } from 'bun:test'
import { schemas } from '@atproto/api'
import { jsonToLex, Lexicons } from '@atproto/lexicon'
import {
  decodeParams,
  methods,
  recordKeyFault,
  recordKeyType,
  validateInput,
  validateOutput,
  validateRecord,
  type MethodName,
} from './lexicons.ts'

const oracle = new Lexicons(structuredClone(schemas))
const query = (text: string) => new URLSearchParams(text)
const createdAt = '2026-01-02T03:04:05.678Z'
const cid = 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a'
const image = { $type: 'blob', ref: { $link: cid }, mimeType: 'image/png', size: 1000 }
const subject = { uri: `at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jzfcijpj2z2a`, cid }

test('every method of com.atproto is known, with its kind and encodings', () => {
  const expected = schemas.filter(
    ({ id, defs }) =>
      id.startsWith('com.atproto.') &&
      /query|procedure|subscription/.test((defs as Record<string, { type: string }>)['main']?.type ?? ''),
  )
  expect(expected.filter(({ id }) => !methods().has(id))).toEqual([])
  expect(methods().get('com.atproto.repo.uploadBlob')).toEqual({
    nsid: 'com.atproto.repo.uploadBlob',
    kind: 'procedure',
    inputEncoding: '*/*',
    outputEncoding: 'application/json',
  })
  expect(methods().get('com.atproto.sync.subscribeRepos')?.kind).toBe('subscription')
  expect(methods().has('com.atproto.repo.strongRef')).toBe(false)
})

test('every schema of every document compiles', () => {
  for (const [nsid, { kind }] of methods()) {
    expect(decodeParams(nsid as MethodName, query(''))).toHaveProperty('ok')
    if (kind !== 'subscription') expect(validateOutput(nsid as MethodName, {})).toHaveProperty('ok')
    if (kind === 'procedure') expect(validateInput(nsid as MethodName, {})).toHaveProperty('ok')
  }
})

const decoded: [MethodName, string, object][] = [
  [
    'com.atproto.sync.getBlocks',
    'did=did:plc:ewvi7nxzyoun6zhxrhs64oiz&cids=' + cid,
    { did: 'did:plc:ewvi7nxzyoun6zhxrhs64oiz', cids: [cid] },
  ],
  [
    'com.atproto.repo.listRecords',
    'repo=a.test&collection=app.bsky.feed.post&reverse=true',
    { repo: 'a.test', collection: 'app.bsky.feed.post', reverse: true, limit: 50 },
  ],
  ['com.atproto.sync.listRepos', 'cursor=&limit=7', { limit: 7 }],
  ['app.bsky.actor.getPreferences', 'did=x', { did: 'x' }],
  ['app.bsky.actor.getProfiles', 'actors[]=a.test&actors[1]=b.test', { actors: ['a.test', 'b.test'] }],
  ['com.atproto.sync.listRepos', 'other=1&other=2', { other: ['1', '2'], limit: 500 }],
  ['com.atproto.sync.listRepos', '__proto__=x', JSON.parse('{"__proto__":"x","limit":500}')],
]
for (const [nsid, text, value] of decoded) {
  test(`${nsid}?${text} is understood`, () => {
    expect(decodeParams(nsid, query(text))).toEqual({ ok: true, value: value as never })
  })
}

const refusedParams: [MethodName, string, string][] = [
  ['com.atproto.sync.getRepo', '', 'Invalid com.atproto.sync.getRepo params: Missing required key "did" at $'],
  ['com.atproto.sync.getRepo', 'did=', 'Invalid com.atproto.sync.getRepo params: Missing required key "did" at $'],
  ['com.atproto.sync.getRepo', 'did=x', 'Invalid com.atproto.sync.getRepo params: Invalid DID (got "x") at $.did'],
  [
    'com.atproto.sync.getRepo',
    'did=did:a:b&did=did:a:b',
    'Invalid com.atproto.sync.getRepo params: Expected string value type (got ["did:a:b", "did:a:b"]) at $.did',
  ],
  [
    'com.atproto.sync.listRepos',
    'limit=1001',
    'Invalid com.atproto.sync.listRepos params: integer too big (maximum 1000, got 1001) at $.limit',
  ],
  [
    'com.atproto.sync.listRepos',
    'limit=0',
    'Invalid com.atproto.sync.listRepos params: integer too small (minimum 1, got 0) at $.limit',
  ],
  [
    'com.atproto.sync.listRepos',
    'limit=1.0',
    'Invalid com.atproto.sync.listRepos params: Expected integer value type (got "1.0") at $.limit',
  ],
  [
    'com.atproto.sync.listRepos',
    'limit=+5',
    'Invalid com.atproto.sync.listRepos params: Expected integer value type (got " 5") at $.limit',
  ],
  [
    'com.atproto.repo.listRecords',
    'repo=a.test&collection=x&reverse=1',
    'Invalid com.atproto.repo.listRecords params: Invalid NSID (got "x") at $.collection, Expected boolean value type (got "1") at $.reverse',
  ],
  [
    'com.atproto.sync.getBlocks',
    'did=did:a:b&cids[]=' + cid,
    'Invalid com.atproto.sync.getBlocks params: Missing required key "cids" at $',
  ],
]
for (const [nsid, text, message] of refusedParams) {
  test(`${nsid}?${text} is refused`, () => {
    expect(decodeParams(nsid, query(text))).toEqual({ ok: false, message })
  })
}

test('inputs are checked and their defaults filled in', () => {
  expect(validateInput('com.atproto.server.createInviteCodes', { useCount: 2 })).toEqual({
    ok: true,
    value: { codeCount: 1, useCount: 2 },
  })
  expect(validateInput('com.atproto.server.createInviteCodes', { codeCount: 1 })).toEqual({
    ok: false,
    message: 'Missing required key "useCount" at $',
  })
  expect(validateInput('com.atproto.server.createInviteCodes', [])).toEqual({
    ok: false,
    message: 'Expected object value type (got []) at $',
  })
  expect(
    validateInput('com.atproto.repo.putRecord', {
      repo: 'a.test',
      collection: 'a.b.c',
      rkey: 'x',
      record: {},
      swapRecord: null,
    }).ok,
  ).toBe(true)
  expect(
    validateInput('com.atproto.repo.putRecord', { repo: 'a.test', collection: 'a.b.c', rkey: 'x', record: 'text' }),
  ).toEqual({
    ok: false,
    message: 'Expected object value type (got "text") at $.record',
  })
  expect(
    validateInput('com.atproto.repo.applyWrites', {
      repo: 'a.test',
      writes: [{ $type: 'com.atproto.repo.applyWrites#other' }],
    }),
  ).toMatchObject({ ok: false })
})

test('the additions of this service are part of the contract', () => {
  expect(validateInput('com.atproto.server.createAppPassword', { name: 'x', personalDetails: 'yes' })).toEqual({
    ok: false,
    message: 'Expected boolean value type (got "yes") at $.personalDetails',
  })
  expect(
    validateOutput('com.atproto.server.describeServer', {
      did: 'did:web:pds.test',
      availableUserDomains: [],
      extension: {},
      custos: {},
    }).ok,
  ).toBe(true)
})

const records: [string, Record<string, unknown>][] = [
  ['app.bsky.feed.like', { $type: 'app.bsky.feed.like', subject, createdAt }],
  [
    'app.bsky.feed.post',
    {
      $type: 'app.bsky.feed.post',
      text: 'hello',
      createdAt,
      langs: ['en'],
      facets: [{ index: { byteStart: 0, byteEnd: 5 }, features: [{ $type: 'app.bsky.richtext.facet#tag', tag: 'x' }] }],
    },
  ],
  [
    'app.bsky.feed.post',
    {
      $type: 'app.bsky.feed.post',
      text: '',
      createdAt,
      embed: { $type: 'app.bsky.embed.images', images: [{ alt: '', image }] },
      labels: { $type: 'com.atproto.label.defs#selfLabels', values: [{ val: 'x' }] },
    },
  ],
  [
    'app.bsky.feed.post',
    { $type: 'app.bsky.feed.post', text: '', createdAt, embed: { $type: 'com.example.unheard', anything: 1 } },
  ],
  [
    'app.bsky.feed.post',
    {
      $type: 'app.bsky.feed.post',
      text: '',
      createdAt,
      reply: { root: subject, parent: subject },
      extra: { deep: [1] },
    },
  ],
  [
    'app.bsky.actor.profile',
    { $type: 'app.bsky.actor.profile', displayName: 'Ä'.repeat(64), avatar: image, pinnedPost: subject },
  ],
  [
    'app.bsky.graph.starterpack',
    { $type: 'app.bsky.graph.starterpack', name: 'x', list: subject.uri, createdAt, feeds: [] },
  ],
]

/** Each record, and each record with one property (at any depth) removed or replaced. */
function* mutations(value: unknown): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, child] of Object.entries(value)) {
    const copy = (changed: unknown) =>
      Array.isArray(value)
        ? value.map((item, index) => (String(index) === key ? changed : item))
        : { ...value, [key]: changed }
    for (const replacement of [
      undefined,
      null,
      7,
      -1,
      1.5,
      '',
      'x'.repeat(400),
      '👩‍👩‍👧‍👦'.repeat(301),
      true,
      [],
      {},
      [{}],
      ['x'],
      createdAt,
    ])
      yield copy(replacement)
    for (const mutated of mutations(child)) yield copy(mutated)
  }
}

/** Where the reference validator of before sees the fault, written as refusals write it now. */
const placeOf = (message: string) =>
  message
    .match(/^Record(\S*)/)![1]!
    .replaceAll(/\/(\d+)/g, '[$1]')
    .replaceAll('/', '.')

test('records are valid exactly when the reference validator says so, and at fault in the same place', () => {
  let agreed = 0
  for (const [collection, record] of records) {
    expect(validateRecord(collection, record)).toEqual({ status: 'valid' })
    for (const mutated of mutations(record)) {
      const verdict = validateRecord(collection, mutated)
      const expected = oracle.validate(collection, jsonToLex(JSON.parse(JSON.stringify(mutated))))
      const message = verdict.status === 'invalid' ? verdict.message : null
      if (message && /\.createdAt$|\.mimeType$|Expected (blob|object) value|blob too big/.test(message)) continue // where the reference validator is laxer
      expect({
        mutated,
        place: message && message.slice(message.lastIndexOf(' at $.record') + ' at $.record'.length),
      }).toEqual({
        mutated,
        place: expected.success ? null : placeOf(expected.error.message),
      })
      agreed++
    }
  }
  expect(agreed).toBeGreaterThan(500)
})

const refusals: [string, Record<string, unknown>, string][] = [
  [
    'app.bsky.actor.profile',
    { description: 'x'.repeat(257) },
    'grapheme too big (maximum 256, got 257) at $.record.description',
  ],
  ['app.bsky.actor.profile', { description: 5 }, 'Expected string value type (got 5) at $.record.description'],
  [
    'app.bsky.actor.profile',
    { avatar: { cid, mimeType: 'image/png' } },
    'Expected blob value type (got {"cid": ..., "mimeType": ...}) at $.record.avatar',
  ],
  [
    'app.bsky.actor.profile',
    { avatar: { ...image, size: 1_000_001 } },
    'blob too big (maximum 1000000, got 1000001) at $.record.avatar',
  ],
  ['app.bsky.feed.post', { createdAt }, 'Missing required key "text" at $.record'],
  [
    'app.bsky.feed.post',
    { text: '', createdAt, langs: ['en', 'en_US'] },
    'Invalid language (got "en_US") at $.record.langs[1]',
  ],
  [
    'app.bsky.feed.post',
    { text: '', createdAt, facets: [{ index: { byteStart: -1, byteEnd: 1 }, features: [] }] },
    'integer too small (minimum 0, got -1) at $.record.facets[0].index.byteStart',
  ],
  [
    'app.bsky.feed.post',
    { text: '', createdAt, embed: { x: 1, y: 2, z: 3 } },
    'Expected an object which includes the "$type" property value type (got {"x": ..., "y": ..., ...}) at $.record.embed',
  ],
  [
    'app.bsky.feed.post',
    { text: '', createdAt, langs: ['x'.repeat(300)] },
    `Invalid language (got "${'x'.repeat(255)}…") at $.record.langs[0]`,
  ],
]
test('a refusal is short, whatever it refuses', () => {
  let nested: unknown = 'x'
  for (let level = 0; level < 20; level++) nested = [nested, nested]
  for (const text of [nested, { ['k'.repeat(100_000)]: 1 }, 'x'.repeat(100_000), [{ ['k'.repeat(100_000)]: 1 }]]) {
    const outcome = validateRecord('app.bsky.feed.post', {
      $type: 'app.bsky.feed.post',
      text,
      createdAt,
      langs: [text],
    })
    expect(outcome.status === 'invalid' && outcome.message.length < 1000).toBe(true)
  }
})

test.each(refusals)('%s with %j: %s', (collection, record, message) => {
  expect(validateRecord(collection, { $type: collection, ...record })).toEqual({
    status: 'invalid',
    message: `Invalid ${collection} record: ${message}`,
  })
})

test('a datetime is the strict one, in every record', () => {
  for (const loose of [
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-01-02T03:04:05.678-00:00',
    '2026-01-02 03:04:05Z',
    '',
  ]) {
    expect(validateRecord('app.bsky.feed.like', { $type: 'app.bsky.feed.like', subject, createdAt: loose })).toEqual({
      status: 'invalid',
      message: `Invalid app.bsky.feed.like record: Invalid datetime (got "${loose}") at $.record.createdAt`,
    })
  }
})

test('a blob keeps to the type and the size that its lexicon names', () => {
  const profile = (avatar: object) =>
    validateRecord('app.bsky.actor.profile', { $type: 'app.bsky.actor.profile', avatar })
  expect(profile(image)).toEqual({ status: 'valid' })
  expect(profile({ ...image, mimeType: 'image/gif' })).toMatchObject({
    status: 'invalid',
    message:
      'Invalid app.bsky.actor.profile record: Expected one of "image/png" or "image/jpeg" (got "image/gif") at $.record.avatar.mimeType',
  })
  expect(profile({ ...image, size: 1_000_001 })).toMatchObject({ status: 'invalid' })
  expect(profile({ ...image, ref: { $link: cid, more: 1 } })).toMatchObject({ status: 'invalid' })
  expect(profile({ cid, mimeType: 'image/png' })).toMatchObject({ status: 'invalid' })
})

test('a collection that no lexicon describes is unknown, and so are definitions that are no records', () => {
  for (const nsid of ['com.example.thing', 'com.atproto.repo.strongRef', 'com.atproto.repo.createRecord']) {
    expect(validateRecord(nsid, {})).toEqual({ status: 'unknown' })
    expect(recordKeyType(nsid)).toBeNull()
  }
})

test('record keys follow the key type of the collection', () => {
  expect(recordKeyFault('app.bsky.feed.post', '3jzfcijpj2z2a')).toBeNull()
  expect(recordKeyFault('app.bsky.feed.post', 'self')).toBe(
    'Invalid record key for app.bsky.feed.post: Invalid TID string (got "self") at $.rkey',
  )
  expect(recordKeyFault('app.bsky.actor.profile', 'self')).toBeNull()
  expect(recordKeyFault('app.bsky.actor.profile', 'other')).toBe(
    'Invalid record key for app.bsky.actor.profile: Expected "self" (got "other") at $.rkey',
  )
  expect(recordKeyFault('com.atproto.lexicon.schema', 'x')).toBe(
    'Invalid record key for com.atproto.lexicon.schema: Invalid NSID (got "x") at $.rkey',
  )
  expect(recordKeyFault('app.bsky.feed.generator', 'anything~goes')).toBeNull()
  expect(recordKeyFault('com.example.thing', 'x')).toBeNull()
})
