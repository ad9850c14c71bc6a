/** What people try who want more than they were given, and what is left when a write is cut off. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { parseSpaceUri } from '../../../src/protocol/space-address.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { formatDelegation, formatSpaceCredential } from '../../../src/protocol/space-tokens.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { spaceApp, type SpaceApp } from '../../support/clients/space-app.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { hashOfSet } from '../../support/space-oracle.ts'
import type { Database, Sql } from '../../../src/platform/database/database.ts'
import type { Table } from '../../support/tables.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

// Thousands of references are written.
setDefaultTimeout(60_000)

const TYPE = 'test.forum.space'
const NOTE = 'test.forum.note'
const ALL = 'space:*?authority=*&collection=*'
const { pds } = useWorld({ config: { spaces: { enabled: true }, rateLimit: { enabled: false } } })
let alice: TestAccount
let app: SpaceApp
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
  app = await spaceApp(pds, alice, ALL, 'blob:*/*', 'repo:*')
})
const placeOf = (key: string, account = alice) => ({
  space: `at://${account.did}/space/${TYPE}/${key}`,
  repo: account.did,
})

/** Everything that can be read of a space, and its hash. */
async function stateOf(place: object, by = app) {
  const read = async (method: string) => (await by.get(method, { ...place } as Record<string, string>)).body
  const { commit, ...log } = await read('listRepoOps')
  const { hash, rev } = parseSpaceCommit(jsonToData(commit))
  return {
    log,
    rev,
    hash: Buffer.from(hash).toString('hex'),
    records: await read('listRecords'),
    blobs: await read('listBlobs'),
  }
}

test('names that mean something elsewhere mean nothing here, and stand in the order of their bytes', async () => {
  const keys = [
    '__proto__',
    'constructor',
    '~',
    '-',
    '_',
    ':',
    'a',
    'B',
    '0',
    'Z:1',
    'a.b',
    'a-b',
    '3jzfcijpj2z2a',
    '.x',
    '..x',
  ]
  const types = ['test.forum.note', 'test.forum.note.a', 'test.forum.note0', 'test.forum.Note']
  const place = placeOf('__proto__')
  const writes = types.flatMap((collection) =>
    keys.map((rkey) => ({ $type: 'com.atproto.space.applyWrites#create', collection, rkey, value: { rkey } })),
  )
  expect((await app.post('applyWrites', { ...place, writes })).status).toBe(200)
  const list = async (params: object) =>
    (await app.get('listRecords', { ...place, limit: 1000, ...params })).body.records.map(
      ({ collection, rkey }: Record<string, string>) => `${collection}/${rkey}`,
    )
  const paths = writes.map(({ collection, rkey }) => `${collection}/${rkey}`)
  const inOrder = (some: string[]) => some.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  expect(await list({ reverse: true })).toEqual(inOrder(paths))
  expect(await list({})).toEqual(inOrder(paths).toReversed())
  for (const collection of types)
    expect(await list({ collection, reverse: true })).toEqual(
      inOrder(paths.filter((path) => path.startsWith(`${collection}/`))),
    )
  const { records, hash } = await stateOf({ ...place, limit: 1000 })
  expect(hash).toBe(
    hashOfSet(
      records.records.map(({ collection, rkey, cid }: Record<string, string>) => `${collection}/${rkey}/${cid}`),
    ),
  )
  for (const rkey of ['.', '..', 'a/b', 'a b', '%2e', 'é', '', 'a'.repeat(513), 'a\n'])
    expect([rkey, (await app.post('createRecord', { ...place, collection: NOTE, rkey, record: {} })).status]).toEqual([
      rkey,
      400,
    ])
})

describe('a stranger', () => {
  test('cannot tell by what the server does whether somebody writes in a space', async () => {
    await using other = await startPds(
      { spaces: { enabled: true }, rateLimit: { enabled: false }, signup: { requireConfirmedAddress: false } },
      { onFile: true },
    )
    const carol = await createAccount(other, 'carol')
    const dora = await createAccount(other, 'dora')
    const writer = await spaceApp(other, carol, ALL)
    const reader = await spaceApp(other, dora, ALL)
    const place = placeOf('a', carol)
    await writer.post('createRecord', { ...place, collection: NOTE, rkey: 'a', record: {} })
    for (const method of ['getRecord', 'listRecords', 'listRepoOps', 'getLatestCommit', 'listBlobs', 'getBlob']) {
      const cid = 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
      const ask = async (changes: object) => {
        const before = { ...other.ctx.db.counters }
        const answer = await reader.get(method, { ...place, collection: NOTE, rkey: 'a', cid, ...changes })
        const { statements, rows } = other.ctx.db.counters
        return { status: answer.status, body: answer.body, cost: [statements - before.statements, rows - before.rows] }
      }
      const there = await ask({})
      expect(there.status).toBe(400)
      for (const changes of [
        { space: `${place.space}b` },
        { repo: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' },
        { repo: 'did:web:none.test' },
      ])
        expect([method, changes, await ask(changes)]).toEqual([method, changes, there])
    }
  })

  test('gets nothing by tokens that only other servers know of', async () => {
    const key = signingKey('p256', new Uint8Array(32).fill(9))
    const space = parseSpaceUri(placeOf('a').space)!
    const terms = { now: pds.clock.now(), jti: '0'.repeat(32) }
    const holder = formatDidKey(key.publicKey)
    const credential = formatSpaceCredential(key, 'atproto', space, holder, terms)
    const delegation = formatDelegation(key, alice.did as Did, space, terms)
    const params = new URLSearchParams(placeOf('a'))
    for (const authorization of [
      `Atproto-Space ${credential}`,
      `DPoP ${credential}`,
      `Bearer ${credential}`,
      `Bearer ${delegation}`,
    ])
      for (const method of ['listRecords', 'listRepoOps', 'getLatestCommit', 'getRepo', 'listRepos']) {
        const { status } = await request(`${pds.url}/xrpc/com.atproto.space.${method}?${params}`, {
          headers: { authorization, 'atproto-space-audience': alice.did },
        })
        expect({ method, authorization, isRefused: [400, 401, 501].includes(status) }).toEqual({
          method,
          authorization,
          isRefused: true,
        })
      }
    for (const method of [
      'com.atproto.space.getSpaceCredential',
      'com.atproto.space.notifyWrite',
      'com.atproto.simplespace.createSpace',
    ])
      expect((await request(`${pds.url}/xrpc/${method}`, { json: {}, headers: bearer(delegation) })).status).toBe(501)
  })
})

test.each(['space_record', 'space_op', 'space_blob_reference'] satisfies Table[])(
  'a write that fails at %s leaves everything as it was',
  async (table) => {
    const { body } = await app.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from(table),
    })
    const place = placeOf(`cut-${table.replaceAll('_', '-')}`)
    const record = (text: string) => ({ ...place, collection: NOTE, rkey: 'a', record: { text, file: body.blob } })
    expect((await app.post('createRecord', record('one'))).status).toBe(200)
    const before = await stateOf(place)
    const back = await pds.hide(table)
    const cut = await app.post('putRecord', record('two'))
    await back()
    expect(cut.status).toBe(500)
    expect(await stateOf(place)).toEqual(before)
    expect((await app.post('putRecord', record('three'))).status).toBe(200)
    expect((await stateOf(place)).records.records[0].value.text).toBe('three')
  },
)

test('a batch is prepared and hashed in turns with other requests', async () => {
  using _ = atOneNode(pds, 'its transactions are looked at')
  const place = placeOf('turns')
  const db = pds.ctx.db as { -readonly [Name in keyof Database]: Database[Name] }
  const { transactionOn, get } = db
  let [turns, lastRead, before, inside] = [0, 0, 0, 0]
  let timer = setImmediate(function turn() {
    turns++
    timer = setImmediate(turn)
  })
  db.get = <Row>(query: Sql) => get<Row>(query).finally(() => (lastRead = turns))
  db.transactionOn = (lock, work) => {
    before = turns - lastRead
    return transactionOn(lock, (tx) => work({ ...tx, turn: () => (inside++, tx.turn()) }))
  }
  try {
    for (const kind of ['create', 'delete']) {
      const writes = Array.from({ length: 200 }, (_unused, i) => ({
        $type: `com.atproto.space.applyWrites#${kind}`,
        collection: NOTE,
        rkey: `r${i}`,
        ...(kind === 'create' && { value: { i } }),
      }))
      ;[before, inside] = [0, 0]
      expect((await app.post('applyWrites', { ...place, writes })).status).toBe(200)
      expect(kind === 'create' ? before : inside).toBeGreaterThanOrEqual(200 / 20)
    }
  } finally {
    Object.assign(db, { transactionOn, get })
    clearImmediate(timer)
  }
})

describe('the sweep', () => {
  async function cost(name = 'spaces') {
    const before = { ...pds.ctx.db.counters }
    await pds.runSweep(name)
    const { statements, commits } = pds.ctx.db.counters
    return { statements: statements - before.statements, commits: commits - before.commits }
  }
  /** The number of a repository with one record. */
  async function repoOf(account: TestAccount): Promise<number> {
    const by = await spaceApp(pds, account, ALL)
    await by.post('createRecord', { ...placeOf('a', account), collection: NOTE, rkey: 'a', record: {} })
    const [repo] = await pds.rows('space_repo', { did: account.did }, ['id'])
    return repo!['id'] as number
  }

  test('deletes few large records of a deleted account at once', async () => {
    const gone = await createAccount(pds, 'gone')
    const id = await repoOf(gone)
    const [row] = await pds.rows('space_record', { space_repo_id: id })
    const large = { ...row!, value: new Uint8Array(600_000) }
    for (let i = 0; i < 20; i++) await pds.plant('space_record', { ...large, path: `${NOTE}/large${i}` })
    const { status } = await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      json: { did: gone.did },
      headers: basic('admin', ADMIN_TOKEN),
    })
    expect(status).toBe(200)
    expect((await cost()).commits).toBeGreaterThanOrEqual(10)
    expect(await pds.count('space_record', { space_repo_id: id })).toBe(0)
  })

  test('of blobs looks at few that spaces hold at once', async () => {
    // The first pass compares what has changed.
    await pds.runSweep('blob-gc')
    const few = await cost('blob-gc')
    const cids = Array.from({ length: 1500 }, (_, i) => cidOfBlob(Buffer.from(`held ${i}`)).toString())
    const blob = { did: alice.did, mime_type: 'text/plain', size: 7, uploaded_at: 1, unreferenced_at: 1 }
    await pds.plant(
      'blob',
      cids.map((cid) => ({ ...blob, cid })),
    )
    const { space } = placeOf('held')
    const reference = { did: alice.did, space, record: `${NOTE}/a`, rev: '3jzfcijpj2z2a' }
    await pds.plant(
      'space_blob_reference',
      cids.map((cid) => ({ ...reference, cid })),
    )
    expect((await cost('blob-gc')).statements).toBe(few.statements + 3)
    expect(await pds.count('blob', { did: alice.did, unreferenced_at: 1 })).toBe(1500)
  })

  test('counts few changes at once', async () => {
    const id = await repoOf(await createAccount(pds, 'busy'))
    const few = await cost()
    const [op] = await pds.rows('space_op', { space_repo_id: id })
    let rev = op!['rev'] as Tid
    const more = Array.from({ length: 16_000 }, () => ({ ...op!, rev: (rev = nextTid(rev, 0, 0)) }))
    await pds.plant('space_op', more)
    expect((await cost()).statements).toBe(few.statements + 3)
    expect(await pds.count('space_op', { space_repo_id: id })).toBe(16_001)
  })
})

describe('limits', () => {
  const onOwn = (config: Parameters<typeof startPds>[0]) => startPds({ spaces: { enabled: true }, ...config })
  const member = async (own: TestPds, name = 'eve') => {
    const account = await createAccount(own, name)
    const by = await spaceApp(own, account, ALL, 'repo:*')
    const create = (key: string, rkey: string, record: object = {}) =>
      by.post('createRecord', { ...placeOf(key, account), collection: NOTE, rkey, record })
    return { account, by, create }
  }

  test('of records in a space, and of what an account may have in all of them', async () => {
    await using own = await onOwn({
      spaces: { enabled: true, maxRecordsPerSpace: 3 },
      rateLimit: { enabled: false },
      repos: { maxRecordsPerAccount: 5 },
    })
    const { account, by, create } = await member(own)
    for (const rkey of ['a', 'b', 'c']) expect((await create('one', rkey)).status).toBe(200)
    expect(await create('one', 'd')).toMatchObject({
      status: 400,
      body: { error: 'InvalidRequest', message: 'Too many records in the space. Max: 3' },
    })
    for (const rkey of ['a', 'b']) expect((await create('two', rkey)).status).toBe(200)
    expect(await create('two', 'c')).toMatchObject({ status: 413, body: { error: 'PayloadTooLarge' } })
    const writes = ['a', 'b'].map((rkey) => ({ $type: 'com.atproto.space.applyWrites#delete', collection: NOTE, rkey }))
    expect((await by.post('applyWrites', { ...placeOf('one', account), writes })).status).toBe(200)
    expect((await create('two', 'c')).status).toBe(200)
    // What stands in spaces is no record of the public repository.
    const { status, body } = await request(`${own.url}/v1/admin/accounts/${account.did}/quota`, {
      headers: basic('admin', ADMIN_TOKEN),
    })
    expect([status, body.used.records]).toEqual([200, 0])
  })

  test('of points, of which an account has one budget for public writes and those in spaces', async () => {
    await using own = await onOwn({ rateLimit: { enabled: true, writePointsHourly: 10 } })
    const { account, by, create } = await member(own)
    const open = (rkey: string) =>
      by.post('com.atproto.repo.createRecord', { repo: account.did, collection: NOTE, rkey, record: {} })
    expect([(await create('a', 'a')).status, (await open('a')).status, (await create('a', 'b')).status]).toEqual([
      200, 200, 200,
    ])
    // 9 of 10 points are gone, and a creation takes 3.
    expect([(await open('b')).status, (await create('a', 'c')).status]).toEqual([429, 429])
  })

  test('of the bytes of records, for which points pay as they do for public ones', async () => {
    await using own = await onOwn({ rateLimit: { enabled: true, writePointsHourly: 30 } })
    using _ = atOneNode(own, 'a node knows its own points to the last')
    const { account, by } = await member(own)
    const put = async (rkey: string, length: number) => {
      const input = { ...placeOf('large', account), collection: NOTE, rkey, record: { text: 'x'.repeat(length) } }
      return (await by.post('putRecord', input)).status
    }
    expect([await put('small', 10), await put('large', 800_000), await put('next', 10), await put('last', 10)]).toEqual(
      [200, 200, 200, 429],
    )
  })

  /** Gives an account a thousand blobs. Returns the first of them as what records refer to. */
  async function withFiles(own: TestPds, { did }: TestAccount): Promise<(count: number) => object[]> {
    const cids = Array.from({ length: 1000 }, (_, i) => cidOfBlob(Buffer.from(`file ${i}`)).toString())
    const blob = { did, mime_type: 'text/plain', size: 7, uploaded_at: 1, unreferenced_at: 1 }
    await own.plant(
      'blob',
      cids.map((cid) => ({ ...blob, cid })),
    )
    return (count) =>
      cids.slice(0, count).map((cid) => ({ $type: 'blob', ref: { $link: cid }, mimeType: 'text/plain', size: 7 }))
  }

  test('of references to blobs, each of which is stored with all names in three places', async () => {
    await using own = await onOwn({ rateLimit: { enabled: true, writePointsHourly: 300 } })
    using _ = atOneNode(own, 'a node knows its own points to the last')
    const { account, by } = await member(own)
    const files = await withFiles(own, account)
    const put = async (method: string, place: object, count: number) => {
      const input = { ...place, collection: NOTE, rkey: 'r'.repeat(500), record: { files: files(count) } }
      const { status, headers } = await by.post(method, input)
      return { status, left: Number(headers.get('ratelimit-remaining')) }
    }
    const space = placeOf('s'.repeat(500), account)
    expect(await put('putRecord', space, 4)).toEqual({ status: 200, left: 298 })
    const many = await put('putRecord', space, 1000)
    expect(many.status).toBe(200)
    // Half a megabyte of either name, in each of three places.
    expect(298 - many.left).toBeWithin(3 * 32, 4 * 32)
    const open = await put('com.atproto.repo.putRecord', { repo: account.did }, 1000)
    expect(open.status).toBe(200)
    expect(many.left - open.left).toBeWithin(3 * 16, 3 * 24)
  })

  test('of the references to blobs that a request takes away, which is a row for each', async () => {
    await using own = await onOwn({ rateLimit: { enabled: false } })
    const { account, by, create } = await member(own)
    const files = await withFiles(own, account)
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const rkey of keys) expect((await create('one', rkey, { files: files(1000) })).status).toBe(200)
    const remove = (some: string[]) =>
      by.post('applyWrites', {
        ...placeOf('one', account),
        writes: some.map((rkey) => ({ $type: 'com.atproto.space.applyWrites#delete', collection: NOTE, rkey })),
      })
    const refused = await remove(keys)
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'Too many blobs in the records of these writes. Max: 5000 for several',
    ])
    expect(await own.count('space_blob_reference', { did: account.did })).toBe(6000)

    const { counters } = own.ctx.db
    const costOf = async (some: string[]) => {
      const before = { ...counters }
      expect((await remove(some)).status).toBe(200)
      return { statements: counters.statements - before.statements, rows: counters.rows - before.rows }
    }
    const [few, one] = [await costOf(keys.slice(0, 4)), await costOf(['e'])]
    // Statements depend on how many blobs there are; beyond that, two delete some hundred references.
    expect(few.statements).toBeLessThanOrEqual(one.statements + 2 * (4000 / 400))
    // In strict transactions, which run twice: references, records, changes, and the clocks of blobs.
    expect(few.rows).toBeLessThanOrEqual(2 * (4 * 1000 + 4 + 4 + 1000 + 10))
    expect(await own.count('space_blob_reference', { did: account.did })).toBe(1000)
  })

  test('of a request: 200 writes, and a megabyte', async () => {
    const create = (i: number, text: string) => ({
      $type: 'com.atproto.space.applyWrites#create',
      collection: NOTE,
      rkey: `r${i}`,
      value: { text },
    })
    const place = placeOf('large')
    const batch = (count: number, text = '') =>
      app.post('applyWrites', { ...place, writes: Array.from({ length: count }, (_, i) => create(i, text)) })
    expect((await batch(201)).status).toBe(400)
    expect((await batch(200, 'x'.repeat(6000))).status).toBe(413)
    expect(
      (await app.post('createRecord', { ...place, collection: NOTE, record: { text: 'x'.repeat(1_000_001) } })).status,
    ).toBe(413)
    expect((await app.get('listRecords', place)).status).toBe(400)
    expect((await batch(200, 'x'.repeat(4000))).status).toBe(200)
  })
})
