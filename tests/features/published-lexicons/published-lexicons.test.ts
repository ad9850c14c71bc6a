/** Lexicons that others publish, and the records they describe. */
import { beforeAll, expect, test } from 'bun:test'
import {
  resolveLexicon,
  validateAsPublished,
} from '../../../src/features/data/published-lexicons/published-lexicons.ts'
import type { Nsid } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { startLexiconAuthor } from '../../support/servers/lexicon-author.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds, author } = useWorld({ author: true })
beforeAll(() => {
  pds.dns.setTexts('_lexicon.books.test', 'v=spf1 -all', `did=${author.did}`)
})

const resolve = async (nsid: string) => {
  const resolution = await resolveLexicon(pds.ctx, nsid as Nsid)
  return resolution.ok ? resolution.document : null
}
const check = (collection: string, record: object, rkey = 'x') =>
  validateAsPublished(pds.ctx, { collection, rkey, record: { $type: collection, ...record } })
const recordLexicon = (id: string, properties: object, more: object = {}) => ({
  lexicon: 1,
  id,
  defs: {
    main: { type: 'record', key: 'any', record: { type: 'object', required: Object.keys(properties), properties } },
    ...more,
  },
})

test('a lexicon is found through DNS, read with its proof, and kept for a day', async () => {
  const document = recordLexicon('test.books.review', { text: { type: 'string', maxLength: 10 } })
  await author.publish('test.books.review', document)
  expect(await resolve('test.books.review')).toMatchObject(document)
  expect(author.received.map(({ path }) => path)).toEqual([
    `/xrpc/com.atproto.sync.getRecord?did=${encodeURIComponent(author.did)}&collection=com.atproto.lexicon.schema&rkey=test.books.review`,
  ])
  expect(author.received[0]!.headers.has('authorization')).toBe(false)
  await pds.restart()
  pds.clock.advance({ secs: 86_300 })
  await resolve('test.books.review')
  expect(author.received.length).toBe(1)
  await author.publish('test.books.review', recordLexicon('test.books.review', { stars: { type: 'integer' } }))
  pds.clock.advance({ secs: 200 })
  expect(await resolve('test.books.review')).toMatchObject({
    defs: { main: { record: { properties: { stars: {} } } } },
  })
})

test('many who ask at once cause one fetch', async () => {
  await author.publish('test.books.shelf', recordLexicon('test.books.shelf', {}))
  const found = await Promise.all(Array.from({ length: 20 }, () => resolve('test.books.shelf')))
  expect(found.every((document) => document?.id === 'test.books.shelf')).toBe(true)
  expect(author.received.length).toBe(1)
})

test('what is not there is not asked for again for a minute', async () => {
  expect(await resolve('test.books.absent')).toBeNull()
  expect(await resolve('test.books.absent')).toBeNull()
  expect(author.received.length).toBe(1)
  await author.publish('test.books.absent', recordLexicon('test.books.absent', {}))
  pds.clock.advance({ secs: 61 })
  expect(await resolve('test.books.absent')).not.toBeNull()
})

test('an author who cannot be reached keeps the last good document; one who withdrew does not', async () => {
  await author.publish('test.books.lasting', recordLexicon('test.books.lasting', {}))
  await resolve('test.books.lasting')
  pds.clock.advance({ days: 2 })
  pds.dns.setBroken(true)
  expect(await resolve('test.books.lasting')).not.toBeNull()
  pds.dns.setBroken(false)
  pds.clock.advance({ secs: 61 })
  pds.dns.setTexts('_lexicon.books.test')
  expect(await resolve('test.books.lasting')).toBeNull()
  pds.dns.setTexts('_lexicon.books.test', `did=${author.did}`)
})

test.each([
  ['no record', []],
  ['two records', ['did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'did=did:plc:bbbbbbbbbbbbbbbbbbbbbbbb']],
  ['no DID', ['did=books.test']],
  ['a DID that does not resolve', ['did=did:web:nowhere.test']],
])('a domain with %s has no lexicons', async (name, texts) => {
  const domain = `${name.replaceAll(' ', '-')}.test`
  pds.dns.setTexts(`_lexicon.${domain}`, ...texts)
  expect(await resolve(`${domain.split('.').reverse().join('.')}.thing`)).toBeNull()
})

test.each([
  ['another id', { lexicon: 1, id: 'test.books.other', defs: {} }],
  ['another version', { lexicon: 2, id: 'test.books.broken', defs: {} }],
  ['no definitions', { lexicon: 1, id: 'test.books.broken' }],
  ['a type that does not exist', recordLexicon('test.books.broken', { a: { type: 'float' } })],
  [
    'a definition that is a reference to itself',
    { lexicon: 1, id: 'test.books.broken', defs: { main: { type: 'ref', ref: '#main' } } },
  ],
  ['a list of nothing', recordLexicon('test.books.broken', { a: { type: 'array' } })],
  [
    'a record that is no object',
    { lexicon: 1, id: 'test.books.broken', defs: { main: { type: 'record', key: 'tid', record: { type: 'string' } } } },
  ],
  ['a bound that is a text', recordLexicon('test.books.broken', { a: { type: 'string', maxLength: '5' } })],
  ['a prototype for a type', recordLexicon('test.books.broken', { a: { type: 'constructor' } })],
])('a document with %s is none', async (_, document) => {
  await author.publish('test.books.broken', document)
  pds.clock.advance({ secs: 61 })
  expect(await resolve('test.books.broken')).toBeNull()
})

test('a document that its repository does not prove is none', async () => {
  await using impostor = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.forged.test', `did=${impostor.did}`)
  await impostor.publish('test.forged.thing', recordLexicon('test.forged.thing', {}))
  const stolen = await fetch(
    `${impostor.url}/xrpc/com.atproto.sync.getRecord?did=x&collection=com.atproto.lexicon.schema&rkey=test.forged.thing`,
  ).then((response) => response.bytes())
  for (const [what, bytes] of [
    ['a broken block', stolen.map((byte, index) => (index === stolen.length - 20 ? byte ^ 1 : byte))],
    ['half an archive', stolen.slice(0, stolen.length / 2)],
    ['nothing', new Uint8Array()],
    ['more than it may', new Uint8Array(2 * 1024 ** 2)],
  ] as const) {
    impostor.answer('com.atproto.sync.getRecord', () => new Response(bytes))
    pds.clock.advance({ secs: 61 })
    expect([what, await resolve('test.forged.thing')]).toEqual([what, null])
  }
  // A proof of somebody else's repository is no proof.
  author.answer('com.atproto.sync.getRecord', () => new Response(stolen))
  pds.dns.setTexts('_lexicon.forged.test', `did=${author.did}`)
  pds.clock.advance({ secs: 61 })
  expect(await resolve('test.forged.thing')).toBeNull()
})

test('an author inside our own network is not reached', async () => {
  await using inner = await startLexiconAuthor()
  inner.services['atproto_pds'] = 'http://10.0.0.7'
  pds.dns.setTexts('_lexicon.inner.test', `did=${inner.did}`)
  await inner.publish('test.inner.thing', recordLexicon('test.inner.thing', {}))
  expect(await resolve('test.inner.thing')).toBeNull()
})

test('what is kept is bounded', async () => {
  await pds.plant(
    'published_lexicon',
    Array.from({ length: 1100 }, (_, i) => ({ nsid: `test.old.n${i}`, document: '{}', fetched_at: i })),
  )
  await using fresh = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.fresh.test', `did=${fresh.did}`)
  await fresh.publish('test.fresh.thing', recordLexicon('test.fresh.thing', {}))
  expect(await resolve('test.fresh.thing')).not.toBeNull()
  expect(await pds.count('published_lexicon')).toBe(1000)
})

test('the bytes of what is kept are bounded', async () => {
  const padded = JSON.stringify('x'.repeat(1024 ** 2))
  for (let i = 0; i < 40; i++)
    await pds.plant('published_lexicon', { nsid: `test.padded.n${i}`, document: padded, fetched_at: 2000 + i })
  await using fresh = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.small.test', `did=${fresh.did}`)
  await fresh.publish('test.small.thing', recordLexicon('test.small.thing', {}))
  expect(await resolve('test.small.thing')).not.toBeNull()
  const stored = await pds.rows('published_lexicon', {}, ['nsid', 'fetched_at'])
  const kept = stored
    .filter(({ nsid }) => nsid.startsWith('test.padded.'))
    .toSorted((a, b) => a.fetched_at - b.fetched_at)
  expect(kept.length).toBeLessThan(32)
  expect(kept.length).toBeGreaterThan(25)
  expect(kept.at(-1)).toMatchObject({ nsid: 'test.padded.n39' })
})

test('a stored document is parsed once, until another server has fetched a newer one', async () => {
  await using often = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.often.test', `did=${often.did}`)
  await often.publish('test.often.thing', recordLexicon('test.often.thing', { a: { type: 'string' } }))
  const first = await resolve('test.often.thing')
  expect(first).not.toBeNull()
  expect(await resolve('test.often.thing')).toBe(first)
  const newer = recordLexicon('test.often.thing', { b: { type: 'string' } })
  pds.clock.advance({ secs: 1 })
  await pds.damage(
    'published_lexicon',
    { nsid: 'test.often.thing' },
    { document: JSON.stringify(newer), fetched_at: pds.clock.now() },
  )
  expect(await resolve('test.often.thing')).toEqual(newer as never)
})

test('a document beyond the bounds is none, also one that was stored before there were bounds', async () => {
  await using large = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.large.test', `did=${large.did}`)
  const wide = (id: string, count: number) =>
    recordLexicon(
      id,
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'boolean' }])),
    )
  await large.publish('test.large.most', wide('test.large.most', 500))
  await large.publish('test.large.wide', wide('test.large.wide', 501))
  expect(await resolve('test.large.most')).not.toBeNull()
  for (let time = 0; time < 2; time++)
    expect(await resolveLexicon(pds.ctx, 'test.large.wide' as Nsid)).toEqual({
      ok: false,
      excess: 'more than 500 entries of required',
    })
  expect(await check('test.large.wide', {})).toEqual({
    status: 'invalid',
    message:
      'Invalid test.large.wide record: the lexicon test.large.wide is larger than this server accepts: it has more than 500 entries of required',
  })
  const stored = JSON.stringify(wide('test.large.stored', 501))
  await pds.plant('published_lexicon', { nsid: 'test.large.stored', document: stored, fetched_at: pds.clock.now() })
  expect(await resolve('test.large.stored')).toBeNull()
})

// Records

test('a record is checked against the lexicons it leads to, ours and others', async () => {
  await using shop = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.shop.test', `did=${shop.did}`)
  await shop.publish(
    'test.shop.order',
    recordLexicon(
      'test.shop.order',
      {
        subject: { type: 'ref', ref: 'com.atproto.repo.strongRef' },
        lines: { type: 'array', maxLength: 3, items: { type: 'ref', ref: '#line' } },
        extra: { type: 'union', refs: ['test.shop.gift', 'test.shop.gone#note'] },
      },
      {
        line: {
          type: 'object',
          required: ['count'],
          properties: {
            count: { type: 'integer', minimum: 1 },
            under: { type: 'ref', ref: '#line' },
            shape: { type: 'string', format: 'hexagon' },
          },
        },
      },
    ),
  )
  await shop.publish('test.shop.gift', {
    lexicon: 1,
    id: 'test.shop.gift',
    defs: { main: { type: 'object', required: ['to'], properties: { to: { type: 'string', format: 'did' } } } },
  })

  const subject = {
    uri: 'at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/a.b.c/d',
    cid: 'bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a',
  }
  const order = {
    subject,
    lines: [{ count: 1, under: { count: 2 }, shape: 'x' }],
    extra: { $type: 'test.shop.gift', to: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' },
  }
  expect(await check('test.shop.order', order)).toEqual({ status: 'valid' })
  expect(await check('test.shop.order', { ...order, subject: {} })).toMatchObject({
    status: 'invalid',
    message: expect.stringMatching(/^Invalid test.shop.order record: .* at \$\.record\.subject/),
  })
  expect(await check('test.shop.order', { ...order, lines: [{ count: 0 }] })).toMatchObject({ status: 'invalid' })
  expect(await check('test.shop.order', { ...order, lines: [{ count: 1, under: { count: 0 } }] })).toMatchObject({
    status: 'invalid',
  })
  expect(await check('test.shop.order', { ...order, extra: { $type: 'test.shop.gift', to: 'me' } })).toMatchObject({
    status: 'invalid',
  })
  // A part that nobody describes leaves the whole undescribed; a type outside an open union is nobody's business.
  expect(await check('test.shop.order', { ...order, extra: { $type: 'test.shop.gone#note' } })).toEqual({
    status: 'unknown',
  })
  expect(await check('test.shop.order', { ...order, extra: { $type: 'test.else.where' } })).toEqual({ status: 'valid' })
  expect(await check('test.shop.gift', { to: 'x' })).toEqual({ status: 'unknown' })
})

test('the key of a record is checked as well', async () => {
  await using keys = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.keys.test', `did=${keys.did}`)
  await keys.publish('test.keys.profile', {
    lexicon: 1,
    id: 'test.keys.profile',
    defs: { main: { type: 'record', key: 'literal:self', record: { type: 'object' } } },
  })
  expect(await check('test.keys.profile', {}, 'self')).toEqual({ status: 'valid' })
  expect(await check('test.keys.profile', {}, 'other')).toEqual({
    status: 'invalid',
    message: 'Invalid record key for test.keys.profile: Expected "self" (got "other") at $.rkey',
  })
})

test('lexicons that lead nowhere, or on and on, describe nothing', async () => {
  await using maze = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.maze.test', `did=${maze.did}`)
  await maze.publish('test.maze.nowhere', recordLexicon('test.maze.nowhere', { a: { type: 'ref', ref: '#absent' } }))
  expect(await check('test.maze.nowhere', { a: {} })).toEqual({ status: 'unknown' })
  await maze.publish(
    'test.maze.token',
    recordLexicon('test.maze.token', { a: { type: 'ref', ref: '#t' } }, { t: { type: 'token' } }),
  )
  expect(await check('test.maze.token', { a: {} })).toEqual({ status: 'unknown' })
  let deep: object = {}
  for (let i = 30; i >= 0; i--) {
    await maze.publish(
      `test.maze.n${i}`,
      i === 0
        ? recordLexicon('test.maze.n0', { a: { type: 'ref', ref: 'test.maze.n1' } })
        : {
            lexicon: 1,
            id: `test.maze.n${i}`,
            defs: { main: { type: 'object', properties: { a: { type: 'ref', ref: `test.maze.n${i + 1}` } } } },
          },
    )
    deep = { a: deep }
  }
  maze.received.length = 0
  expect(await check('test.maze.n0', deep)).toEqual({ status: 'unknown' })
  expect(maze.received.length).toBe(16)
})

test('a write that must be valid is checked against the published lexicon; one that need not is not', async () => {
  await using games = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.games.test', `did=${games.did}`)
  await games.publish('test.games.score', {
    lexicon: 1,
    id: 'test.games.score',
    defs: {
      main: {
        type: 'record',
        key: 'tid',
        record: { type: 'object', required: ['points'], properties: { points: { type: 'integer', minimum: 0 } } },
      },
    },
  })
  const alice = await createAccount(pds, 'alice')
  const create = (record: object, more: object = {}) =>
    alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'test.games.score', record, ...more },
    })

  expect(await create({ points: -1 })).toMatchObject({ status: 200, body: { validationStatus: 'unknown' } })
  expect(games.received.length).toBe(0)
  expect(await create({ points: 1 }, { validate: true })).toMatchObject({
    status: 200,
    body: { validationStatus: 'valid' },
  })
  expect(await create({ points: -1 }, { validate: true })).toMatchObject({
    status: 400,
    body: {
      error: 'InvalidRequest',
      message: 'Invalid test.games.score record: integer too small (minimum 0, got -1) at $.record.points',
    },
  })
  expect(await create({ points: 1 }, { validate: true, rkey: 'self' })).toMatchObject({
    status: 400,
    body: { message: 'Invalid record key for test.games.score: Invalid TID string (got "self") at $.rkey' },
  })
  expect(
    await alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'test.games.nothing', record: {}, validate: true },
    }),
  ).toMatchObject({ status: 400, body: { message: 'Unknown lexicon type: test.games.nothing' } })
})

test('a write whose validation takes too many steps is refused, with the name of the lexicon', async () => {
  await using puzzles = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.puzzles.test', `did=${puzzles.did}`)
  const next = (index: number) => ({ next: { type: 'ref', ref: `test.puzzles.n${index}` } })
  const { defs } = recordLexicon('test.puzzles.n0', { list: { type: 'array', items: { type: 'integer' } }, ...next(1) })
  await puzzles.publish('test.puzzles.n0', { lexicon: 1, id: 'test.puzzles.n0', defs })
  // Each document is found to be missing only after the whole list has been looked at once more.
  let record: object = {}
  for (let index = 1; index <= 12; index++) {
    const id = `test.puzzles.n${index}`
    await puzzles.publish(id, { lexicon: 1, id, defs: { main: { type: 'object', properties: next(index + 1) } } })
    record = { next: record }
  }
  const alice = await createAccount(pds, 'puzzled')
  const create = (count: number) =>
    alice.call('com.atproto.repo.createRecord', {
      json: {
        repo: alice.did,
        collection: 'test.puzzles.n0',
        validate: true,
        record: { list: Array(count).fill(1), ...record },
      },
    })
  expect(await create(1000)).toMatchObject({ status: 200, body: { validationStatus: 'valid' } })
  expect(await create(450_000)).toMatchObject({
    status: 400,
    body: {
      error: 'InvalidRequest',
      message: 'Invalid test.puzzles.n0 record: checking it against its lexicon takes more than 4000000 steps',
    },
  })
})

test('authors who are slow to answer, and whoever asks for them, keep nobody else from a lexicon', async () => {
  await using slow = await startLexiconAuthor()
  await using quick = await startLexiconAuthor()
  pds.dns.setTexts('_lexicon.slow.test', `did=${slow.did}`)
  pds.dns.setTexts('_lexicon.quick.test', `did=${quick.did}`)
  await quick.publish('test.quick.note', recordLexicon('test.quick.note', {}))
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  slow.answer('com.atproto.sync.getRecord', async () => {
    await released
    return new Response(null, { status: 404 })
  })
  const [mallory, trent] = [await createAccount(pds, 'mallory'), await createAccount(pds, 'trent')]
  const create = (who: TestAccount, collection: string, address: string) =>
    who.call('com.atproto.repo.createRecord', {
      json: { repo: who.did, collection, record: {}, validate: true },
      headers: { 'x-forwarded-for': address },
    })
  const asked = Array.from({ length: 20 }, (_, i) => create(mallory, `test.slow.a${i}`, `198.51.100.${i}`))
  await until(() => slow.received.length >= 4)
  await eventLoopTurns(50)
  expect(await create(trent, 'test.quick.note', '203.0.113.1')).toMatchObject({
    status: 200,
    body: { validationStatus: 'valid' },
  })
  release()
  for (const { status } of await Promise.all(asked)) expect(status).toBe(400)
})
