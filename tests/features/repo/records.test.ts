import { beforeAll, expect, test } from 'bun:test'
import { AtpAgent, XRPCError } from '@atproto/api'
import { repoHead, setRecordTakedown } from '../../../src/features/data/repo/repo.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { leastCost } from '../../support/least-cost.ts'
import { startPds } from '../../support/servers/pds.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))
const agent = setUp(() => new AtpAgent({ service: pds.url }))
beforeAll(async () => {
  await agent.login({ identifier: alice.handle, password: PASSWORD })
})

const createdAt = '2026-01-01T00:00:00.000Z'
const post = (text: string) => ({ $type: 'app.bsky.feed.post', text, createdAt })
const repo = () => agent.com.atproto.repo
const collection = 'app.bsky.feed.post'

const head = async (did = alice.did) => {
  const { head, rev } = (await repoHead(pds.ctx.db, did as Did))!
  return { cid: head.toString(), rev }
}

/** The refusal that a call ends with. */
async function refusal(call: Promise<unknown>): Promise<{ status: number; error: string; message: string }> {
  try {
    await call
  } catch (error) {
    if (error instanceof XRPCError) return { status: error.status, error: error.error, message: error.message }
    throw error
  }
  throw new Error('was not refused')
}

test('a page of large records ends early, and its cursor leads to the rest', async () => {
  const zoe = await createAccount(pds, 'zoe-large')
  const large = 'com.example.large'
  const sizes = [200_000, 200_000, 200_000, 990_000, 990_000, 10]
  for (const [i, size] of sizes.entries()) {
    const record = { $type: large, text: 'x'.repeat(size) }
    const made = await zoe.call('com.atproto.repo.createRecord', {
      json: { repo: zoe.did, collection: large, rkey: `k${i}`, record },
    })
    expect(made.status).toBe(200)
  }
  const pagesOf = async (query: string) => {
    const pages: string[][] = []
    for (let cursor = ''; ;) {
      const { body } = await xrpc(
        pds,
        `com.atproto.repo.listRecords?repo=${zoe.did}&collection=${large}&limit=100${query}${cursor}`,
      )
      if (body.records.length === 0) return pages
      pages.push(body.records.map(({ uri }: { uri: string }) => uri.split('/').at(-1)!))
      cursor = `&cursor=${body.cursor}`
    }
  }
  const forwards = [['k0', 'k1'], ['k2'], ['k3'], ['k4'], ['k5']]
  for (const _ of ['read', 'cached']) expect(await pagesOf('&reverse=true')).toEqual(forwards)
  expect(await pagesOf('')).toEqual([['k5'], ['k4'], ['k3'], ['k2', 'k1'], ['k0']])
})

test('a record is written, read, changed and deleted by a real client', async () => {
  const created = await repo().createRecord({ repo: alice.did, collection, record: post('first') })
  expect(created.data.validationStatus).toBe('valid')
  expect(created.data.uri).toMatch(new RegExp(`^at://${alice.did}/${collection}/[2-7a-z]{13}$`))
  const rkey = created.data.uri.split('/').at(-1)!
  const place = { repo: alice.did, collection, rkey }
  const read = await repo().getRecord(place)
  expect(read.data).toEqual({ uri: created.data.uri, cid: created.data.cid, value: post('first') })

  const put = await repo().putRecord({ ...place, record: post('second') })
  expect(put.data.uri).toBe(created.data.uri)
  expect(put.data.cid).not.toBe(created.data.cid)
  expect(put.data.commit!.rev > created.data.commit!.rev).toBe(true)
  expect((await repo().getRecord({ ...place, cid: put.data.cid })).data.value).toEqual(post('second'))
  expect((await refusal(repo().getRecord({ ...place, cid: created.data.cid }))).error).toBe('RecordNotFound')

  expect((await repo().deleteRecord(place)).data.commit).toBeDefined()
  expect(await refusal(repo().getRecord(place))).toEqual({
    status: 400,
    error: 'RecordNotFound',
    message: `Could not locate record: ${created.data.uri}`,
  })
})

test('the type is filled in, and an unknown one is stored as it is', async () => {
  const place = { repo: alice.handle, collection: 'com.example.thing', rkey: 'one' }
  const value = { text: 'x', nested: { list: [1, null, true], __proto__: undefined } }
  const { data } = await repo().createRecord({ ...place, record: value })
  expect(data.validationStatus).toBe('unknown')
  expect((await repo().getRecord(place)).data.value).toEqual({
    ...JSON.parse(JSON.stringify(value)),
    $type: place.collection,
  })
})

test('without validation a known type may be anything, and nothing is said about it', async () => {
  const { data } = await repo().createRecord({
    repo: alice.did,
    collection,
    rkey: 'anything',
    record: { $type: collection, odd: 1 },
    validate: false,
  })
  expect(data).not.toHaveProperty('validationStatus')
  expect(
    (
      await refusal(
        repo().createRecord({ repo: alice.did, collection: 'com.example.thing', record: {}, validate: true }),
      )
    ).message,
  ).toBe('Unknown lexicon type: com.example.thing')
})

test('a put of the same record and the delete of a missing one change nothing, whatever the swap', async () => {
  const place = { repo: alice.did, collection, rkey: '3jzfcijpj2z2a' }
  const first = await repo().putRecord({ ...place, record: post('same') })
  const stale = {
    swapCommit: first.data.cid,
    swapRecord: (await repo().createRecord({ repo: alice.did, collection, record: post('other') })).data.cid,
  }
  const before = await head()
  const again = await repo().putRecord({ ...place, record: post('same'), ...stale })
  expect(again.data).toEqual({ uri: first.data.uri, cid: first.data.cid, validationStatus: 'valid' })
  expect((await repo().deleteRecord({ ...place, rkey: '3jzfcijpj2z2b', ...stale })).data).toEqual({})
  expect(await head()).toEqual(before)
})

test('of two records with the same content, one stays when the other is deleted', async () => {
  const [first, second] = await Promise.all(
    [1, 2].map(() => repo().createRecord({ repo: alice.did, collection, record: post('twice') })),
  )
  expect(second!.data.cid).toBe(first!.data.cid)
  const [place, other] = [first, second].map((made) => ({
    repo: alice.did,
    collection,
    rkey: made!.data.uri.split('/').at(-1)!,
  }))
  await repo().deleteRecord(place!)
  expect((await refusal(repo().getRecord(place!))).error).toBe('RecordNotFound')
  expect((await repo().getRecord(other!)).data.value).toEqual(post('twice'))
  const blocks = await fetch(`${pds.url}/xrpc/com.atproto.sync.getBlocks?did=${alice.did}&cids=${second!.data.cid}`)
  expect(blocks.status).toBe(200)
})

test('stale swaps are refused and say where the repository is', async () => {
  const place = { repo: alice.did, collection, rkey: '3jzfcijpj2z3a' }
  const first = await repo().putRecord({ ...place, record: post('one'), swapRecord: null })
  const second = await repo().putRecord({
    ...place,
    record: post('two'),
    swapRecord: first.data.cid,
    swapCommit: first.data.commit!.cid,
  })
  const commitFault = { status: 400, error: 'InvalidSwap', message: `Commit was at ${second.data.commit!.cid}` }
  const recordFault = { status: 400, error: 'InvalidSwap', message: `Record was at ${second.data.cid}` }
  const before = await head()
  const swapCommit = first.data.commit!.cid
  expect(await refusal(repo().createRecord({ repo: alice.did, collection, record: post('x'), swapCommit }))).toEqual(
    commitFault,
  )
  expect(
    await refusal(repo().putRecord({ ...place, record: post('x'), swapCommit, swapRecord: first.data.cid })),
  ).toEqual(commitFault)
  expect(await refusal(repo().deleteRecord({ ...place, swapCommit }))).toEqual(commitFault)
  expect(
    await refusal(
      repo().applyWrites({
        repo: alice.did,
        writes: [{ $type: 'com.atproto.repo.applyWrites#delete', collection, rkey: place.rkey }],
        swapCommit,
      }),
    ),
  ).toEqual(commitFault)
  expect(await refusal(repo().applyWrites({ repo: alice.did, writes: [], swapCommit }))).toEqual(commitFault)
  expect(await refusal(repo().putRecord({ ...place, record: post('x'), swapRecord: first.data.cid }))).toEqual(
    recordFault,
  )
  expect(await refusal(repo().putRecord({ ...place, record: post('x'), swapRecord: null }))).toEqual(recordFault)
  expect(await refusal(repo().deleteRecord({ ...place, swapRecord: first.data.cid }))).toEqual(recordFault)
  expect(
    (
      await refusal(
        repo().putRecord({ ...place, rkey: '3jzfcijpj2z3b', record: post('x'), swapRecord: first.data.cid }),
      )
    ).message,
  ).toBe('Record was at null')
  expect(await head()).toEqual(before)
})

test('a batch is one commit, or nothing', async () => {
  const create = (rkey: string, text = rkey) => ({
    $type: 'com.atproto.repo.applyWrites#create' as const,
    collection: 'com.example.batch',
    rkey,
    value: { text },
  })
  const update = (rkey: string, text: string) => ({
    $type: 'com.atproto.repo.applyWrites#update' as const,
    collection: 'com.example.batch',
    rkey,
    value: { text },
  })
  const remove = (rkey: string) => ({
    $type: 'com.atproto.repo.applyWrites#delete' as const,
    collection: 'com.example.batch',
    rkey,
  })
  const apply = (...writes: object[]) => repo().applyWrites({ repo: alice.did, writes: writes as never })
  const first = await apply(create('a'), create('b'), create('c'))
  expect(first.data.results).toMatchObject([
    {
      $type: 'com.atproto.repo.applyWrites#createResult',
      uri: `at://${alice.did}/com.example.batch/a`,
      validationStatus: 'unknown',
    },
    { uri: `at://${alice.did}/com.example.batch/b` },
    { uri: `at://${alice.did}/com.example.batch/c` },
  ])
  const second = await apply(update('a', 'changed'), remove('b'))
  expect(second.data.results).toMatchObject([
    { $type: 'com.atproto.repo.applyWrites#updateResult' },
    { $type: 'com.atproto.repo.applyWrites#deleteResult' },
  ])
  const before = await head()
  expect(before.cid).toBe(second.data.commit!.cid)
  for (const writes of [
    [create('d'), create('a')],
    [create('d'), update('b', 'x')],
    [create('d'), remove('b')],
    [create('d'), create('d', 'twice')],
  ]) {
    expect((await refusal(apply(...writes))).status).toBe(400)
  }
  expect(await refusal(apply(...Array.from({ length: 201 }, (_, i) => create(`n${i}`))))).toEqual({
    status: 400,
    error: 'InvalidRequest',
    message: 'Too many writes. Max: 200',
  })
  expect(await head()).toEqual(before)
  const { data } = await repo().listRecords({ repo: alice.did, collection: 'com.example.batch', reverse: true })
  expect(data.records.map(({ uri }) => uri.split('/').at(-1))).toEqual(['a', 'c'])
})

test('a second like, repost, follow or block of the same subject takes the place of the first, in one commit', async () => {
  const bob = await createAccount(pds, 'bob')
  const target = await repo().createRecord({ repo: alice.did, collection, record: post('likeable') })
  const { uri, cid } = target.data
  const records = {
    'app.bsky.feed.like': { subject: { uri, cid }, createdAt },
    'app.bsky.feed.repost': { subject: { uri, cid }, createdAt },
    'app.bsky.graph.follow': { subject: alice.did, createdAt },
    'app.bsky.graph.block': { subject: alice.did, createdAt },
  }
  const create = async (collection: string, record: object) =>
    (await bob.call('com.atproto.repo.createRecord', { json: { repo: bob.did, collection, record } })).body
  for (const [collection, record] of Object.entries(records)) {
    await create(collection, record)
    const second = await create(collection, record)
    const { body } = await xrpc(pds, `com.atproto.repo.listRecords?repo=${bob.did}&collection=${collection}`)
    expect(body.records.map((one: { uri: string }) => one.uri)).toEqual([second.uri])
  }
  // Another subject is left alone.
  await create('app.bsky.graph.follow', { subject: bob.did, createdAt })
  const { body } = await xrpc(pds, `com.atproto.repo.listRecords?repo=${bob.did}&collection=app.bsky.graph.follow`)
  expect(body.records).toHaveLength(2)
  const subscriber = new Subscriber(pds.url, '?cursor=0')
  const { rev } = await head(bob.did)
  for (let count = 1; subscriber.messages.at(-1)?.body['rev'] !== (rev as string); count++)
    await subscriber.until(count)
  subscriber.close()
  const ops = subscriber.messages
    .filter(({ type, body }) => type === '#commit' && body['repo'] === bob.did)
    .map(({ body }) => (body['ops'] as { action: string }[]).map(({ action }) => action))
  expect(ops.slice(1, 3)).toEqual([['create'], ['delete', 'create']])
})

test('a collection is listed in pages, both ways', async () => {
  const carol = await createAccount(pds, 'carol')
  const rkeys = Array.from({ length: 7 }, (_, i) => `k${i}`)
  for (const rkey of rkeys)
    await carol.call('com.atproto.repo.createRecord', {
      json: { repo: carol.did, collection: 'com.example.list', rkey, record: { rkey } },
    })
  for (const rkey of ['other', '~', '_.-:~9Zz'])
    await carol.call('com.atproto.repo.createRecord', {
      json: { repo: carol.did, collection: 'com.example.list.more', rkey, record: {} },
    })
  const pages = async (query: string) => {
    const seen: string[][] = []
    let cursor = ''
    do {
      const { body } = await xrpc(
        pds,
        `com.atproto.repo.listRecords?repo=${carol.handle}&collection=com.example.list&limit=3${query}${cursor}`,
      )
      seen.push(body.records.map(({ value }: { value: { rkey: string } }) => value.rkey))
      cursor = body.cursor === undefined ? '' : `&cursor=${body.cursor}`
    } while (cursor !== '')
    return seen
  }
  expect(await pages('&reverse=true')).toEqual([['k0', 'k1', 'k2'], ['k3', 'k4', 'k5'], ['k6'], []])
  expect(await pages('')).toEqual([['k6', 'k5', 'k4'], ['k3', 'k2', 'k1'], ['k0'], []])
  expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${carol.did}`)).body).toMatchObject({
    did: carol.did,
    handle: carol.handle,
    handleIsCorrect: true,
    collections: ['com.example.list', 'com.example.list.more'],
    didDoc: { id: carol.did },
  })
})

test('reading takes few statements, whatever there is to be read', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const gina = await createAccount(pds, 'gina')
  for (const name of ['one', 'two', 'three'])
    await gina.call('com.atproto.repo.putRecord', {
      json: { repo: gina.did, collection: `com.example.${name}`, rkey: 'self', record: { name } },
    })
  const asked = async (read: () => Promise<{ status: number }>) => {
    await read()
    return leastCost(pds.ctx.db, async () => expect((await read()).status).toBe(200))
  }
  expect({
    getSession: await asked(() => gina.call('com.atproto.server.getSession')),
    resolveHandle: await asked(() => xrpc(pds, `com.atproto.identity.resolveHandle?handle=${gina.handle}`)),
    getRecord: await asked(() =>
      xrpc(pds, `com.atproto.repo.getRecord?repo=${gina.did}&collection=com.example.one&rkey=self`),
    ),
    listRecords: await asked(() =>
      xrpc(pds, `com.atproto.repo.listRecords?repo=${gina.handle}&collection=com.example.two`),
    ),
    describeRepo: await asked(() => xrpc(pds, `com.atproto.repo.describeRepo?repo=${gina.did}`)),
  }).toEqual({ getSession: 1, resolveHandle: 1, getRecord: 1, listRecords: 1, describeRepo: 2 })
})

test('a description names the collections that have records now, however often it was asked for before', async () => {
  const iris = await createAccount(pds, 'iris')
  const collections = async () =>
    (await xrpc(pds, `com.atproto.repo.describeRepo?repo=${iris.did}`)).body.collections as string[]
  const write = (verb: 'putRecord' | 'deleteRecord', collection: string, more: object = {}) =>
    iris.call(`com.atproto.repo.${verb}`, { json: { repo: iris.did, collection, rkey: 'self', ...more } })
  expect(await collections()).toEqual([])
  await write('putRecord', 'com.example.one', { record: {} })
  expect(await collections()).toEqual(['com.example.one'])
  await write('putRecord', 'com.example.another', { record: {} })
  expect(await collections()).toEqual(['com.example.another', 'com.example.one'])
  await write('deleteRecord', 'com.example.one')
  expect(await collections()).toEqual(['com.example.another'])
})

test('a record that was taken down is not shown, and can come back', async () => {
  const dave = await createAccount(pds, 'dave')
  const place = { collection: 'com.example.thing', rkey: 'hidden' }
  await dave.call('com.atproto.repo.createRecord', { json: { repo: dave.did, ...place, record: {} } })
  const setTakedown = (ref: string | null) =>
    pds.ctx.db.transaction((tx) =>
      setRecordTakedown(tx, { did: dave.did as Did, path: 'com.example.thing/hidden', ref }),
    )
  const read = () =>
    xrpc(pds, `com.atproto.repo.getRecord?repo=${dave.did}&collection=${place.collection}&rkey=${place.rkey}`)
  const list = async () =>
    (await xrpc(pds, `com.atproto.repo.listRecords?repo=${dave.did}&collection=${place.collection}`)).body.records
  expect(await setTakedown('ref')).toBe(true)
  expect((await read()).body.error).toBe('RecordNotFound')
  expect(await list()).toEqual([])
  expect(await setTakedown(null)).toBe(true)
  expect((await read()).status).toBe(200)
  expect(await list()).toHaveLength(1)
})

test('records with the same content are shown at their own addresses, by whomever they were written', async () => {
  const writers = await Promise.all(['same-one', 'same-two'].map((name) => createAccount(pds, name)))
  const collection = 'com.example.same'
  const record = { $type: collection, text: 'the same', at: 1 }
  for (const { did, call } of writers)
    for (const rkey of ['one', 'two']) {
      const json = { repo: did, collection, rkey, record, validate: false }
      expect((await call('com.atproto.repo.createRecord', { json })).status).toBe(200)
    }
  for (let time = 0; time < 2; time++)
    for (const { did } of writers) {
      const of = `repo=${did}&collection=${collection}`
      const listed = (await xrpc(pds, `com.atproto.repo.listRecords?${of}&reverse=true`)).body.records
      const views = await Promise.all(
        ['one', 'two'].map(async (rkey) => (await xrpc(pds, `com.atproto.repo.getRecord?${of}&rkey=${rkey}`)).body),
      )
      expect(views.map(({ uri }) => uri)).toEqual([`at://${did}/${collection}/one`, `at://${did}/${collection}/two`])
      expect(new Set(views.map(({ cid }) => cid)).size).toBe(1)
      expect(views.map(({ value }) => value)).toEqual([record, record])
      expect(listed).toEqual(views)
    }
})

test('a page that was read before takes one statement, and is right after every change', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const [hana, ivan] = [await createAccount(pds, 'hana'), await createAccount(pds, 'ivan')]
  const place = { repo: hana.did, collection: 'com.example.paged' }
  const write = async (method: string, rkey: string, text?: string) => {
    const json = { ...place, rkey, ...(text !== undefined && { record: { text } }) }
    expect((await hana.call(`com.atproto.repo.${method}`, { json })).status).toBe(200)
  }
  const list = async () =>
    (
      await xrpc(pds, `com.atproto.repo.listRecords?repo=${place.repo}&collection=${place.collection}`)
    ).body.records.map(({ value }: { value: { text: string } }) => value.text)
  const takeDown = (ref: string | null) =>
    pds.ctx.db.transaction((tx) => setRecordTakedown(tx, { did: hana.did as Did, path: `${place.collection}/b`, ref }))
  const changes: [string, () => Promise<unknown>, string[]][] = [
    ['created', () => write('createRecord', 'a', 'one'), ['one']],
    ['another', () => write('putRecord', 'b', 'two'), ['two', 'one']],
    ['changed', () => write('putRecord', 'a', 'three'), ['two', 'three']],
    ['taken down', () => takeDown('ref'), ['three']],
    ['given back', () => takeDown(null), ['two', 'three']],
    ['deleted', () => write('deleteRecord', 'a'), ['two']],
  ]
  expect(await list()).toEqual([])
  for (const [what, change, texts] of changes) {
    await change()
    expect([what, await list()]).toEqual([what, texts])
    await ivan.call('com.atproto.repo.createRecord', {
      json: { ...place, repo: ivan.did, record: { text: 'of somebody else' } },
    })
    expect(await leastCost(pds.ctx.db, async () => expect([what, await list()]).toEqual([what, texts]))).toBe(1)
  }
})

test('only the owner writes, while the account is active', async () => {
  const eve = await createAccount(pds, 'eve')
  const json = { repo: alice.did, collection, record: post('mine') }
  expect((await eve.call('com.atproto.repo.createRecord', { json })).body).toEqual({
    error: 'AuthenticationRequired',
    message: 'Authentication Required',
  })
  expect((await xrpc(pds, 'com.atproto.repo.createRecord', { json })).body.error).toBe('AuthMissing')
  expect((await eve.call('com.atproto.repo.createRecord', { json: { ...json, repo: 'nobody.test' } })).body.error).toBe(
    'AccountNotFound',
  )
  await pds.damage('account', { did: eve.did }, { deactivated_at: 1 })
  const { status, body } = await eve.call('com.atproto.repo.createRecord', { json: { ...json, repo: eve.did } })
  expect({ status, error: body.error }).toEqual({ status: 401, error: 'AccountDeactivated' })
  expect((await xrpc(pds, `com.atproto.repo.listRecords?repo=${eve.did}&collection=${collection}`)).body).toEqual({
    error: 'InvalidRequest',
    message: `Could not find repo: ${eve.did}`,
  })
  expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${eve.did}`)).body.error).toBe('RepoDeactivated')
})

test('writes cost points, and their price is told', async () => {
  await using strict = await startPds({ rateLimit: { writePointsHourly: 10 } })
  const frank = await createAccount(strict, 'frank')
  const create = () =>
    frank.call('com.atproto.repo.createRecord', { json: { repo: frank.did, collection, record: post('x') } })
  const costs = []
  for (let i = 0; i < 3; i++) costs.push((await create()).headers.get('ratelimit-remaining'))
  expect(costs).toEqual(['7', '4', '1'])
  const refused = await create()
  expect(refused.status).toBe(429)
  expect(refused.body.error).toBe('RateLimitExceeded')
})

test('the totals of a repository cost the same at any size', async () => {
  const costs: number[] = []
  for (const records of [1, 1000]) {
    const account = await createAccount(pds, `totals${records}`)
    for (let at = 0; at < records; at += 200) {
      const writes = Array.from({ length: Math.min(200, records) }, (_, i) => ({
        $type: 'com.atproto.repo.applyWrites#create',
        collection: 'com.example.note',
        rkey: `note${at + i}`,
        value: {},
      }))
      expect((await account.call('com.atproto.repo.applyWrites', { json: { repo: account.did, writes } })).status).toBe(
        200,
      )
    }
    const ask = async () => {
      const { status, body } = await account.call('com.atproto.server.checkAccountStatus')
      expect([status, body.indexedRecords]).toEqual([200, records])
    }
    costs.push(await leastCost(pds.ctx.db, ask))
  }
  expect(costs[0]).toBe(costs[1]!)
})
