/**
 * What lexicons cost that are written to be expensive: the time of one `createRecord` with `validate: true`, and the
 * longest time for which the event loop was held meanwhile; and the time that a post of the built-in lexicon takes.
 *
 *   bun tests/bench/lexicon-costs.ts
 */
import { validateRecord } from '../../src/protocol/lexicons/lexicons.ts'
import { createAccount } from '../support/clients/account.ts'
import { startLexiconAuthor } from '../support/servers/lexicon-author.ts'
import { startPds } from '../support/servers/pds.ts'

const POSTS = 200_000
const ROUNDS = 7
/** Less than a request may hold. */
const RECORD_BYTES = 950_000

interface Hostile {
  /** Definitions of the document, and of documents that it leads to, by the end of their name. */
  documents: Record<string, object>
  record: Record<string, unknown>
  /** How many of the records one request writes. */
  writes?: number
  validate?: boolean
}

const word = (index: number) => `word-${String(index).padStart(6, '0')}`
const words = (count: number) => Array.from({ length: count }, (_, index) => word(index))
const filled = <T>(value: T, bytes = RECORD_BYTES): T[] =>
  Array(Math.floor(bytes / (Buffer.byteLength(JSON.stringify(value)) + 1))).fill(value)
const record = (properties: object) => ({
  main: { type: 'record', key: 'any', record: { type: 'object', properties } },
})
const properties = (count: number) =>
  Object.fromEntries(words(count).map((_, index) => [index.toString(36), { type: 'unknown' }]))

const ofEnum = (width: number): Hostile => ({
  documents: { '': record({ list: { type: 'array', items: { type: 'string', enum: words(width) } } }) },
  record: { list: filled(word(width - 1)) },
})
const ofProperties = (width: number): Hostile => ({
  documents: {
    '': {
      ...record({ list: { type: 'array', items: { type: 'ref', ref: '#wide' } } }),
      wide: { type: 'object', properties: properties(width) },
    },
  },
  record: { list: filled({}) },
})
const ofRequired = (width: number): Hostile => {
  const members = properties(width)
  const wide = { type: 'object', properties: members, required: Object.keys(members), nullable: Object.keys(members) }
  return {
    documents: { '': record(Object.fromEntries(words(10).map((name) => [name, wide]))) },
    record: {},
  }
}
const ofAccept = (width: number): Hostile => ({
  documents: {
    '': record({
      list: { type: 'array', items: { type: 'blob', accept: words(width).map((name) => `image/${name}`) } },
    }),
  },
  record: {
    list: filled({
      $type: 'blob',
      ref: { $link: 'bafkreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a' },
      mimeType: `image/${word(width - 1)}`,
      size: 1,
    }),
  },
})
/** Each of 15 documents is missed only after all numbers were looked at once more. */
const ofDocuments = (): Hostile => {
  const parts = words(15).map((name) => name.replace('-', ''))
  const documents = Object.fromEntries(parts.map((part) => [part, { main: { type: 'object' } }]))
  const members = Object.fromEntries(parts.map((part) => [part, { type: 'ref', ref: `test.costly.NAME${part}` }]))
  return {
    documents: { ...documents, '': record({ list: { type: 'array', items: { type: 'integer' } }, ...members }) },
    record: { list: filled(1), ...Object.fromEntries(parts.map((part) => [part, {}])) },
  }
}
const ofSize = (definitions: number): Hostile => ({
  documents: {
    '': {
      ...record({ a: { type: 'string' } }),
      ...Object.fromEntries(words(definitions).map((name) => [name, { type: 'object', properties: properties(10) }])),
    },
  },
  record: { a: 'x' },
  writes: 200,
})
const ofGraphemes = (): Hostile => ({
  documents: { '': record({ a: { type: 'string', maxGraphemes: RECORD_BYTES - 1 } }) },
  record: { a: 'a'.repeat(RECORD_BYTES) },
})
const ofTexts = (schema: object, text: string): Hostile => ({
  documents: { '': record({ list: { type: 'array', items: { type: 'string', ...schema } } }) },
  record: { list: filled(text) },
})
const ofLanguage = (): Hostile => ({
  documents: { '': record({ a: { type: 'string', format: 'language' } }) },
  record: { a: 'x-'.repeat(RECORD_BYTES / 2) },
})

const hostile: Record<string, Hostile> = {
  'empty objects, not validated': { ...ofProperties(100), validate: false },
  'an enum of 50 texts': ofEnum(50),
  'an enum of 1,000 texts': ofEnum(1000),
  'an enum of 5,000 texts (80 KB)': ofEnum(5000),
  'objects of 100 properties': ofProperties(100),
  'objects of 250 properties': ofProperties(250),
  'objects of 3,300 properties (80 KB)': ofProperties(3300),
  '10 objects that require 250 properties': ofRequired(250),
  '10 objects that require 1,000 properties': ofRequired(1000),
  'blobs of 100 types': ofAccept(100),
  'blobs of 2,000 types': ofAccept(2000),
  'a list, and 15 further documents': ofDocuments(),
  '400 definitions (110 KB), for 200 records': ofSize(400),
  '3,200 definitions (0.9 MB), for 200 records': ofSize(3200),
  'graphemes of a text of 950 kB': ofGraphemes(),
  'texts of one grapheme': ofTexts({ minGraphemes: 1 }, 'é'),
  'CIDs in base58': ofTexts({ format: 'cid' }, 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG'),
  'a language of 950 kB': ofLanguage(),
}

await using author = await startLexiconAuthor()
await using pds = await startPds({ rateLimit: { enabled: false } }, { strictTransactions: false })
pds.dns.setTexts('_lexicon.costly.test', `did=${author.did}`)
const alice = await createAccount(pds, 'alice')

for (const [index, [what, { documents, record, writes = 1, validate = true }]] of Object.entries(hostile).entries()) {
  const name = `n${String.fromCharCode(97 + index)}`
  const id = (part: string) => `test.costly.${name}${part}`
  for (const [part, defs] of Object.entries(documents))
    await author.publish(
      id(part),
      JSON.parse(JSON.stringify({ lexicon: 1, id: id(part), defs }).replaceAll('NAME', name)) as object,
    )
  const entry = { collection: id(''), [writes === 1 ? 'record' : 'value']: record }
  const json = {
    repo: alice.did,
    validate,
    ...(writes === 1
      ? entry
      : { writes: Array(writes).fill({ $type: 'com.atproto.repo.applyWrites#create', ...entry }) }),
  }
  let [last, longest] = [performance.now(), 0]
  const timer = setInterval(() => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }, 1)
  const begun = performance.now()
  const { status, body } = await alice.call(`com.atproto.repo.${writes === 1 ? 'createRecord' : 'applyWrites'}`, {
    json,
  })
  const millis = performance.now() - begun
  // The timer has not run since the loop was held.
  await Bun.sleep(2)
  clearInterval(timer)
  console.log(
    `${what.padEnd(42)} ${millis.toFixed(0).padStart(7)} ms, held ${longest.toFixed(0).padStart(6)} ms  ${status} ${String(body.message ?? '').slice(0, 120)}`,
  )
}

const post = {
  $type: 'app.bsky.feed.post',
  text: 'A post with a link and a few words that say where it leads.',
  createdAt: '2026-01-02T03:04:05.678Z',
  langs: ['en'],
  facets: [
    {
      index: { byteStart: 0, byteEnd: 6 },
      features: [{ $type: 'app.bsky.richtext.facet#link', uri: 'https://example.com/path' }],
    },
  ],
}
const rounds: number[] = []
for (let round = 0; round < ROUNDS; round++) {
  const begun = performance.now()
  for (let count = 0; count < POSTS; count++)
    if (validateRecord('app.bsky.feed.post', post).status !== 'valid') throw new Error('the post is valid')
  rounds.push(((performance.now() - begun) * 1000) / POSTS)
}
console.log(
  `a post: ${rounds.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]!.toFixed(2)} µs (${rounds.map((micros) => micros.toFixed(2)).join(', ')})`,
)
