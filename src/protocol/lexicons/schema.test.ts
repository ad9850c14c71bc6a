import { expect, test } from 'bun:test'
import { lexiconExcess, parseLexiconDocument, type LexiconDocument } from './lexicon-document.ts'
import { MAX_VALIDATION_STEPS, PublishedValidation } from './published-record.ts'
import { isOfFormat, schemaCompiler, type Check, type Schema } from './schema.ts'

/** A view of a value that counts what is read of it. */
function counted<T>(value: T): { view: T; reads(): number } {
  let count = 0
  const views = new WeakMap<object, object>()
  const viewOf = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part
    const known = views.get(part)
    if (known) return known
    const view = new Proxy(part, {
      get(target, name, receiver) {
        count++
        return viewOf(Reflect.get(target, name, receiver))
      },
      ownKeys(target) {
        const names = Reflect.ownKeys(target)
        count += names.length
        return names
      },
    })
    views.set(part, view)
    return view
  }
  return { view: viewOf(value) as T, reads: () => count }
}

const noReference = (): Check => {
  throw new Error('the schema has no references')
}

/** How much of a schema and of a list of `count` values is read, from compiling to the end. */
function readsOf(items: Schema, value: unknown, count: number): { schema: number; value: number } {
  const schema = counted<Schema>({ type: 'array', items })
  const list = counted(Array.from({ length: count }, () => structuredClone(value)))
  const fault = schemaCompiler(noReference)(schema.view)(list.view, { steps: Infinity, follow: noReference })
  expect(fault).toBeNull()
  return { schema: schema.reads(), value: list.reads() }
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `name${index}`)
const members = (count: number, member: Schema) => Object.fromEntries(names(count).map((name) => [name, member]))
const WIDTH = 1000
const blob = {
  $type: 'blob',
  ref: { $link: 'bafkreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a' },
  mimeType: 'image/name99',
  size: 1,
}

const schemas: Record<string, { items: Schema; value: unknown }> = {
  'an enum of texts': { items: { type: 'string', enum: names(WIDTH) }, value: `name${WIDTH - 1}` },
  'an enum of numbers': { items: { type: 'integer', enum: names(WIDTH).map((_, index) => index) }, value: WIDTH - 1 },
  'known values': { items: { type: 'string', knownValues: names(WIDTH) }, value: 'x' },
  'many properties': {
    items: { type: 'object', properties: members(WIDTH, { type: 'boolean' }) },
    value: { other: 1 },
  },
  'many required properties': {
    items: { type: 'object', required: names(WIDTH), properties: members(WIDTH, { type: 'boolean', default: true }) },
    value: {},
  },
  'many nullable properties': {
    items: { type: 'object', nullable: names(WIDTH), properties: members(WIDTH, { type: 'boolean' }) },
    value: { name1: null },
  },
  'a wide union': {
    items: { type: 'union', refs: names(WIDTH).map((name) => `lex:a.b.${name}`) },
    value: { $type: 'a.b.other' },
  },
}

test.each(Object.entries(schemas))('%s: a value costs the same, whatever the schema is', (_, { items, value }) => {
  const few = readsOf(items, value, 10)
  const many = readsOf(items, value, 1000)
  // The schema is read when it is compiled, in time that is proportional to its size.
  expect(few.schema).toBeLessThan(20 * WIDTH)
  expect(many.schema - few.schema).toBeLessThan(7 * 990)
  expect(many.value).toBeLessThan(12 * 1000)
})

test('an object with many members is checked like one with few', () => {
  for (const count of [3, 500]) {
    const properties = {
      ...members(count, { type: 'integer' }),
      name1: { type: 'boolean' },
      name2: { type: 'integer', default: 5 },
    }
    const check = schemaCompiler(noReference)({
      type: 'object',
      properties,
      required: ['name0', 'name2', 'other'],
      nullable: ['name1'],
    })
    const messageOf = (value: unknown) => check(value, { steps: Infinity, follow: noReference })
    expect(messageOf({ name0: 1, name1: null, unheard: 'x' })).toBeNull()
    expect(messageOf({ name1: true })).toEqual({ message: 'Missing required key "name0"', path: '' })
    expect(messageOf({ name0: null })).toEqual({ message: 'Expected integer value type (got null)', path: '.name0' })
    expect(messageOf({ name0: 1, name1: 1 })).toEqual({
      message: 'Expected boolean value type (got 1)',
      path: '.name1',
    })
    expect(messageOf([])).toEqual({ message: 'Expected object value type (got [])', path: '' })
  }
})

test('a refusal lists some of many choices', () => {
  const check = schemaCompiler(noReference)({ type: 'string', enum: names(5000) })
  const { message } = check('x', { steps: Infinity, follow: noReference })!
  expect(message).toEndWith('"name39" or 4960 others (got "x")')
  expect(message.length).toBeLessThan(600)
})

test('a language tag is short', () => {
  const run = { steps: Infinity, follow: noReference }
  expect(isOfFormat('language', `en-x-${'a'.repeat(8)}`, run)).toBe(true)
  expect(isOfFormat('language', `x${'-abcdefg'.repeat(10_000)}`, run)).toBe(false)
})

test('a text has as many graphemes as it is split into, plain or not', () => {
  const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('')
  for (const text of [ascii, `${ascii}\r\n`, '\r\n', '\n\r', 'e\u0301', '👩‍👩‍👧‍👦', 'a']) {
    const count = [...new Intl.Segmenter().segment(text)].length
    const check = (schema: object) =>
      schemaCompiler(noReference)({ type: 'string', ...schema })(text, { steps: Infinity, follow: noReference })
    expect([text, check({ minGraphemes: count, maxGraphemes: count })]).toEqual([text, null])
    expect(check({ minGraphemes: count + 1 })).not.toBeNull()
    expect(check({ maxGraphemes: count - 1 })).not.toBeNull()
  }
})

// Published documents

const ID = 'test.hostile.thing' as never
const RKEY = 'one'
const parsed = (defs: object) => parseLexiconDocument({ lexicon: 1, id: ID, defs }, ID)
const recordOf = (properties: object, more: object = {}) => ({
  main: { type: 'record', key: 'any', record: { type: 'object', properties } },
  ...more,
})
const stepsFor = (document: LexiconDocument, record: object): number => {
  const validation = new PublishedValidation({ collection: ID, rkey: RKEY, record })
  expect(validation.pass(new Map([[ID as string, document]]))).toEqual({ status: 'valid' })
  return validation.stepsTaken
}

const widest = Array.from({ length: 250 }, (_, index) => `#n${index}`)
const definitions = Object.fromEntries(
  widest.map((ref) => [ref.slice(1), { type: 'object', properties: { a: { type: 'union', refs: widest } } }]),
)
/** Unions within unions, lists within lists, and references that lead back to where they are. */
const recursive: Record<string, { defs: object; valueOf(count: number): unknown }> = {
  'a list': {
    defs: recordOf({ a: { type: 'array', items: { type: 'string', enum: names(5000) } } }),
    valueOf: (count) => Array(count).fill('name4999'),
  },
  'objects without their optional members': {
    defs: recordOf({ a: { type: 'array', items: { type: 'object', properties: members(500, { type: 'unknown' }) } } }),
    valueOf: (count) => Array(count).fill({}),
  },
  'unions of unions': {
    defs: recordOf({ a: { type: 'array', items: { type: 'union', refs: ['#n0'] } } }, { n0: definitions['n0'] }),
    valueOf: (count) => Array(count).fill({ $type: `${ID}#n0`, a: { $type: 'test.hostile.other' } }),
  },
  'a reference that leads back': {
    defs: recordOf(
      { a: { type: 'ref', ref: '#list' } },
      { list: { type: 'array', items: { type: 'ref', ref: '#list' } } },
    ),
    valueOf: (count) => Array(count).fill([[[[]]]]),
  },
  'a long text': {
    defs: recordOf({ a: { type: 'string', maxGraphemes: 1, maxLength: 1e9 } }),
    valueOf: (count) => `e${'\u0301'.repeat(count)}`,
  },
  'texts of a format': {
    defs: recordOf({ a: { type: 'array', items: { type: 'string', format: 'at-uri' } } }),
    valueOf: (count) => Array(count).fill('at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jzfcijpj2z2a'),
  },
  'blobs of many types': {
    defs: recordOf({
      a: { type: 'array', items: { type: 'blob', accept: names(100).map((name) => `image/${name}`) } },
    }),
    valueOf: (count) => Array(count).fill(blob),
  },
}

test.each(Object.entries(recursive))('%s: the steps grow with the value alone', (_, { defs, valueOf }) => {
  const document = parsed(defs)!
  const [once, twice] = [1000, 2000].map((count) => stepsFor(document, { a: valueOf(count) })) as [number, number]
  expect(twice / once).toBeLessThanOrEqual(2)
  expect(twice).toBeLessThanOrEqual(2 * JSON.stringify({ a: valueOf(2000) }).length)
})

test.each([
  ['texts that are split into graphemes', { type: 'string', minGraphemes: 1 }, 'é', 60],
  ['CIDs that are decoded', { type: 'string', format: 'cid' }, 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG', 700],
])('%s take many steps', (_, items, value, steps) => {
  const document = parsed(recordOf({ a: { type: 'array', items } }))!
  expect(stepsFor(document, { a: Array(1000).fill(value) })).toBeGreaterThan(1000 * steps)
})

test('a validation that takes too many steps ends with an error that names the lexicon', () => {
  const parts = names(12)
  const member = (part: string) => `test.hostile.${part}`
  const documents = new Map([
    [
      ID as string,
      parsed(
        recordOf({ list: { type: 'array', items: { type: 'integer' } }, next: { type: 'ref', ref: member('name0') } }),
      )!,
    ],
  ])
  let record: object = {}
  for (let level = 0; level < parts.length; level++) record = { next: record }
  const validation = new PublishedValidation({
    collection: ID,
    rkey: RKEY,
    record: { list: Array(450_000).fill(1), ...record },
  })
  const outcomes: unknown[] = []
  for (const [index, part] of parts.entries()) {
    const outcome = validation.pass(documents)
    outcomes.push(outcome.status === 'incomplete' ? outcome.missing : outcome)
    const id = member(part) as never
    const properties = { next: { type: 'ref', ref: member(`name${index + 1}`) } }
    documents.set(id, parseLexiconDocument({ lexicon: 1, id, defs: { main: { type: 'object', properties } } }, id)!)
  }
  expect(outcomes.slice(0, 3)).toEqual([['test.hostile.name0'], ['test.hostile.name1'], ['test.hostile.name2']])
  expect(outcomes.at(-1)).toEqual({
    status: 'invalid',
    message: `Invalid test.hostile.thing record: checking it against its lexicon takes more than ${MAX_VALIDATION_STEPS} steps`,
  })
})

test('one pass names all documents that are missing, and finds the faults of what is there', () => {
  const document = parsed(
    recordOf({
      a: { type: 'ref', ref: 'test.hostile.a' },
      b: { type: 'ref', ref: 'test.hostile.b#x' },
      c: { type: 'integer' },
    }),
  )!
  const documents = new Map([[ID as string, document]])
  const outcome = (record: object) => new PublishedValidation({ collection: ID, rkey: RKEY, record }).pass(documents)
  expect(outcome({ a: {}, b: {}, c: 1 })).toEqual({
    status: 'incomplete',
    missing: ['test.hostile.a', 'test.hostile.b'],
  })
  expect(outcome({ a: {}, b: {}, c: 'x' })).toMatchObject({ status: 'invalid' })
  expect(outcome({ c: 1 })).toEqual({ status: 'valid' })
})

const nested = (levels: number): object =>
  levels === 0 ? { type: 'boolean' } : { type: 'array', items: nested(levels - 1) }
const text = (more: object) => recordOf({ a: { type: 'string', ...more } })
const object = (count: number) => recordOf({ a: { type: 'object', properties: members(count, { type: 'unknown' }) } })
const union = (count: number) => recordOf({ a: { type: 'union', refs: widest.concat('#x').slice(0, count) } })
const defined = (count: number) => Object.fromEntries(names(count).map((name) => [name, { type: 'token' }]))
const unions = (count: number) =>
  Object.fromEntries(
    names(count).map((name) => [name, { type: 'object', properties: { a: { type: 'union', refs: widest } } }]),
  )
/** What the excess is called, a document that has as much as it may, and one that has more. */
const bounded: Record<string, [most: object, tooMuch: object]> = {
  '262144 characters': [text({ description: 'x'.repeat(200_000) }), text({ description: 'x'.repeat(300_000) })],
  '500 entries of defs': [defined(500), defined(501)],
  '32 levels': [recordOf({ a: nested(20) }), recordOf({ a: nested(30) })],
  '2500 references': [unions(10), unions(11)],
  '250 entries of refs': [union(250), union(251)],
  '5000 entries of enum': [text({ enum: names(5000) }), text({ enum: names(5001) })],
  '5000 entries of knownValues': [text({ knownValues: names(5000) }), text({ knownValues: names(5001) })],
  '500 entries of properties': [object(500), object(501)],
  '500 entries of required': [
    recordOf({ a: { type: 'object', required: names(500) } }),
    recordOf({ a: { type: 'object', required: names(501) } }),
  ],
  '100 entries of accept': [
    recordOf({ a: { type: 'blob', accept: names(100) } }),
    recordOf({ a: { type: 'blob', accept: names(101) } }),
  ],
}

test.each(Object.entries(bounded))('a document has no more than %s', (bound, [most, tooMuch]) => {
  const excess = (defs: object) => lexiconExcess({ lexicon: 1, id: ID, defs })
  expect(excess(most)).toBeNull()
  expect(parsed(most)).not.toBeNull()
  expect(excess(tooMuch)).toBe(`more than ${bound}`)
})
