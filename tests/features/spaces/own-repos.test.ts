/** What an account writes in spaces, and what it reads of that: records, changes, and commits that can be verified. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { jsonToData } from '../../../src/protocol/data-model.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { parseSpaceCommit } from '../../../src/protocol/space-commit.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { spaceApp, type SpaceApp } from '../../support/clients/space-app.ts'
import { hashOfSet, isCommitOf } from '../../support/space-oracle.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { archiveIn } from '../../support/zip-reading.ts'
import { useWorld } from '../../support/world.ts'
import { readCar } from '@atproto/repo'
import { decode } from '../../../src/protocol/cbor.ts'
import { parseDidKey } from '../../../src/protocol/keys.ts'

// Passes over spaces rest between their pieces, the longer the busier the machine is.
setDefaultTimeout(60_000)

const TYPE = 'test.forum.space'
const NOTE = 'test.forum.note'
const { pds } = useWorld({
  config: { spaces: { enabled: true, maxPerAccount: 5, opsKeepSecs: 60 }, rateLimit: { enabled: false } },
})
let alice: TestAccount
let bob: TestAccount
let app: SpaceApp

const all = `space:*?authority=*&collection=*`
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
  bob = await createAccount(pds, 'bob')
  app = await spaceApp(pds, alice, all)
})

let spaces = 0
/** A space of Alice that nothing was written in. */
const freshSpace = (authority = alice) => `at://${authority.did}/space/${TYPE}/s${++spaces}`
/** A space in which no other file of tests may write: accounts have few of them here. */
async function writer() {
  const account = await createAccount(pds, `writer${++spaces}`)
  const place = { space: freshSpace(account), repo: account.did }
  const own = await spaceApp(pds, account, all)
  const put = (rkey: string, text: string, collection = NOTE) =>
    own.post('putRecord', { ...place, collection, rkey, record: { text } })
  return { account, place, put, ...own }
}

const commitIn = ({ body }: { body: { commit: unknown } }) => parseSpaceCommit(jsonToData(body.commit))

test('records and batches without keys that are written at the same moment get different ones', async () => {
  const { get, post, place } = await writer()
  const record = { text: 'at once' }
  const writes = [1, 2, 3].map(() => ({
    $type: 'com.atproto.space.applyWrites#create',
    collection: NOTE,
    value: record,
  }))
  const replies = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      i % 4 === 0
        ? post('applyWrites', { ...place, writes })
        : post('createRecord', { ...place, collection: NOTE, record }),
    ),
  )
  expect(replies.filter(({ status }) => status !== 200).map(({ body }) => body)).toEqual([])
  expect((await get('listRecords', { ...place, limit: 1000 })).body.records).toHaveLength(60)
})

test('a record is created, read, replaced and deleted, and its URI names space and author', async () => {
  const { get, post, place } = await writer()
  const created = await post('createRecord', { ...place, collection: NOTE, rkey: 'a', record: { text: 'hello' } })
  expect(created).toMatchObject({
    status: 200,
    body: { uri: `${place.space}/${place.repo}/${NOTE}/a`, validationStatus: 'unknown' },
  })
  const read = () => get('getRecord', { ...place, collection: NOTE, rkey: 'a' })
  expect((await read()).body).toEqual({
    uri: created.body.uri,
    cid: created.body.cid,
    value: { $type: NOTE, text: 'hello' },
  })
  const again = await post('createRecord', { ...place, collection: NOTE, rkey: 'a', record: { text: 'no' } })
  expect(again).toMatchObject({ status: 400, body: { error: 'RecordAlreadyExists' } })
  const replaced = await post('putRecord', { ...place, collection: NOTE, rkey: 'a', record: { text: 'bye' } })
  expect((await read()).body).toMatchObject({ cid: replaced.body.cid, value: { text: 'bye' } })
  expect(await post('deleteRecord', { ...place, collection: NOTE, rkey: 'a' })).toMatchObject({ status: 200, body: {} })
  expect(await read()).toMatchObject({ status: 400, body: { error: 'RecordNotFound' } })
})

test('a commit is made anew for each reader, and proves the records that there are', async () => {
  const { get, put, post, place, account } = await writer()
  const cids = [await put('a', 'one'), await put('b', 'two'), await put('c', 'three')].map(({ body }) => body.cid)
  await put('b', 'four')
  await post('deleteRecord', { ...place, collection: NOTE, rkey: 'c' })
  const b = (await get('getRecord', { ...place, collection: NOTE, rkey: 'b' })).body.cid
  const [first, second] = [await get('getLatestCommit', place), await get('getLatestCommit', place)].map(commitIn)
  expect(Buffer.from(first!.hash).toString('hex')).toBe(hashOfSet([`${NOTE}/a/${cids[0]}`, `${NOTE}/b/${b}`]))
  expect(second!.hash).toEqual(first!.hash)
  expect(second!.ikm).not.toEqual(first!.ikm)
  const [row] = await pds.rows('account', { did: account.did }, ['signing_key'])
  const key = parseDidKey(row!.signing_key)!
  for (const commit of [first!, second!]) expect(await isCommitOf(commit, place.space, place.repo, key)).toBe(true)
  expect(await isCommitOf(first!, freshSpace(), place.repo, key)).toBe(false)
})

test('nothing is signed while the identity may name another key, and everything else goes on', async () => {
  const { get, put, place, account } = await writer()
  await put('a', 'one')
  await pds.damage('account', { did: account.did }, { signing_held_at: pds.clock.now() })
  for (const method of ['getLatestCommit', 'listRepoOps'])
    expect(await get(method, place)).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
  expect((await put('b', 'two')).status).toBe(200)
  expect((await get('listRecords', place)).body.records).toHaveLength(2)
  expect((await get('listRepoOps', { ...place, limit: 1 })).body.ops).toHaveLength(1)
  await pds.damage('account', { did: account.did }, { signing_held_at: null })
  expect((await get('getLatestCommit', place)).status).toBe(200)
})

describe('a batch', () => {
  const create = (rkey: string | undefined, text: string) => ({
    $type: 'com.atproto.space.applyWrites#create',
    collection: NOTE,
    ...(rkey && { rkey }),
    value: { text },
  })
  const remove = (rkey: string) => ({ $type: 'com.atproto.space.applyWrites#delete', collection: NOTE, rkey })
  const update = (rkey: string, text: string) => ({
    $type: 'com.atproto.space.applyWrites#update',
    collection: NOTE,
    rkey,
    value: { text },
  })

  test('has one revision, and later writes see earlier ones', async () => {
    const { get, post, place } = await writer()
    const writes = [create('a', '1'), update('a', '2'), create(undefined, '3'), create('gone', '4'), remove('gone')]
    const { status, body } = await post('applyWrites', { ...place, writes })
    expect(status).toBe(200)
    expect(body.results.map(({ $type }: { $type: string }) => $type.split('#')[1])).toEqual([
      'createResult',
      'updateResult',
      'createResult',
      'createResult',
      'deleteResult',
    ])
    const { body: listed } = await get('listRecords', place)
    expect(listed.records.map(({ value }: { value: { text: string } }) => value.text).toSorted()).toEqual(['2', '3'])
    const { body: log } = await get('listRepoOps', place)
    expect(new Set(log.ops.map(({ rev }: { rev: string }) => rev)).size).toBe(1)
    expect(log.ops).toHaveLength(5)
    const cids = listed.records.map(
      ({ collection, rkey, cid }: Record<string, string>) => `${collection}/${rkey}/${cid}`,
    )
    expect(Buffer.from(commitIn({ body: log }).hash).toString('hex')).toBe(hashOfSet(cids))
  })

  test('is written as a whole or not at all', async () => {
    const { get, post, place } = await writer()
    await post('applyWrites', { ...place, writes: [create('a', '1')] })
    const before = await get('listRepoOps', place)
    for (const [error, writes] of [
      ['RecordNotFound', [create('b', '2'), update('none', '3')]],
      ['RecordNotFound', [create('b', '2'), remove('none')]],
      ['RecordAlreadyExists', [create('b', '2'), create('a', '3')]],
      ['InvalidRequest', Array.from({ length: 201 }, (_, i) => create(`n${i}`, ''))],
      ['InvalidRequest', [{ ...create('b', '2'), $type: 'com.atproto.repo.applyWrites#create' }]],
    ] as const)
      expect(await post('applyWrites', { ...place, writes })).toMatchObject({ status: 400, body: { error } })
    expect((await get('listRepoOps', place)).body.ops).toEqual(before.body.ops)
    expect(await post('applyWrites', { ...place, writes: [] })).toMatchObject({ status: 200, body: { results: [] } })
  })

  test('that fails first makes no repository', async () => {
    const { get, post, place } = await writer()
    expect((await post('applyWrites', { ...place, writes: [remove('none')] })).status).toBe(400)
    expect(await get('getLatestCommit', place)).toMatchObject({ status: 400, body: { error: 'RepoNotFound' } })
    expect((await post('deleteRecord', { ...place, collection: NOTE, rkey: 'none' })).status).toBe(200)
    expect(await get('getLatestCommit', place)).toMatchObject({ status: 400, body: { error: 'RepoNotFound' } })
    expect((await get('listSpaces')).body).toEqual({ spaces: [] })
  })
})

test('records are listed by URI, descending or ascending, in pages that meet', async () => {
  const { get, put, place } = await writer()
  for (const rkey of ['d', 'a', 'c', 'b']) await put(rkey, rkey)
  await put('x', 'other', 'test.forum.other')
  const keys = async (params: Record<string, string | number | boolean>) => {
    const { body } = await get('listRecords', { ...place, ...params })
    return { keys: body.records.map(({ rkey }: { rkey: string }) => rkey).join(''), cursor: body.cursor }
  }
  expect(await keys({})).toEqual({ keys: 'xdcba', cursor: undefined })
  expect(await keys({ collection: NOTE, reverse: true })).toEqual({ keys: 'abcd', cursor: undefined })
  const first = await keys({ collection: NOTE, limit: 3 })
  expect(first).toEqual({ keys: 'dcb', cursor: `${place.space}/${place.repo}/${NOTE}/b` })
  expect((await keys({ collection: NOTE, limit: 3, cursor: first.cursor })).keys).toBe('a')
  const { body } = await get('listRecords', { ...place, excludeValues: true })
  expect(body.records.every((record: object) => !('value' in record))).toBe(true)
  for (const cursor of ['a', `${freshSpace()}/${place.repo}/${NOTE}/b`, `${place.space}/${bob.did}/${NOTE}/b`])
    expect(await get('listRecords', { ...place, cursor })).toMatchObject({ body: { error: 'MalformedCursor' } })
})

test('large records make short pages, and none is lost', async () => {
  const { get, put, place } = await writer()
  const large = 'x'.repeat(300_000)
  for (const rkey of ['a', 'b', 'c']) await put(rkey, large)
  const seen: string[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const { body } = await get('listRecords', { ...place, ...(cursor && { cursor }) })
    seen.push(...body.records.map(({ rkey }: { rkey: string }) => rkey))
    cursor = body.cursor
  }
  expect(seen).toEqual(['c', 'b', 'a'])
  const ops: string[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const { body } = await get('listRepoOps', { ...place, ...(cursor && { cursor }) })
    ops.push(...body.ops.map(({ rkey, value }: { rkey: string; value: { text: string } }) => rkey + value.text.length))
    cursor = body.cursor
    expect('commit' in body).toBe(cursor === undefined)
  }
  expect(ops).toEqual(['a300000', 'b300000', 'c300000'])
})

test('changes are read from where a reader has been, and have values that are current', async () => {
  const { get, post, put, place } = await writer()
  await put('a', 'one')
  const { body: start } = await get('listRepoOps', place)
  const a = start.ops[0].cid
  await put('a', 'two')
  await put('a', 'two')
  await put('b', 'three')
  await post('deleteRecord', { ...place, collection: NOTE, rkey: 'b' })
  const { body } = await get('listRepoOps', { ...place, since: start.commit.rev })
  expect(body.ops).toEqual([
    {
      rev: expect.any(String),
      collection: NOTE,
      rkey: 'a',
      cid: expect.any(String),
      prev: a,
      value: expect.anything(),
    },
    { rev: expect.any(String), collection: NOTE, rkey: 'b', cid: expect.any(String), prev: null },
    { rev: expect.any(String), collection: NOTE, rkey: 'b', cid: null, prev: body.ops[1].cid },
  ])
  expect(body.commit.rev).toBe(body.ops[2].rev)
  const { body: page } = await get('listRepoOps', { ...place, limit: 2 })
  expect(page).toMatchObject({ ops: [{ cid: a }, { prev: a }], cursor: `${page.ops[1].rev}/0` })
  expect('commit' in page).toBe(false)
  const { body: rest } = await get('listRepoOps', { ...place, cursor: page.cursor, excludeValues: true })
  expect(rest.ops).toHaveLength(2)
  for (const cursor of ['x', `${page.ops[0].rev}`, `${page.ops[0].rev}/x`, `${page.ops[0].rev}/1/2`])
    expect(await get('listRepoOps', { ...place, cursor })).toMatchObject({ body: { error: 'MalformedCursor' } })
})

test('changes are forgotten after their time, and the records and the hash stay', async () => {
  const { get, put, place } = await writer()
  await put('old', 'one')
  const { body: before } = await get('getLatestCommit', place)
  pds.clock.advance({ secs: 61 })
  await put('new', 'two')
  await pds.runSweep('spaces')
  const { body } = await get('listRepoOps', place)
  expect(body.ops.map(({ rkey }: { rkey: string }) => rkey)).toEqual(['new'])
  expect(body.commit.rev > before.commit.rev).toBe(true)
  expect((await get('listRecords', place)).body.records).toHaveLength(2)
})

test('of more than 100,000 changes the oldest are forgotten', async () => {
  const { get, put, place, account } = await writer()
  await put('first', 'one')
  const [{ id }] = (await pds.rows('space_repo', { did: account.did }, ['id'])) as [{ id: number }]
  const [op] = (await pds.rows('space_op', { space_repo_id: id })) as [{ rev: string; cid: Uint8Array }]
  let rev = nextTid(null, (pds.clock.now() - 30_000) * 1000, 0)
  const rows = Array.from({ length: 100_000 }, () => ({ ...op, rev: (rev = nextTid(rev, 0, 0)), prev: null }))
  await pds.plant('space_op', rows)
  await pds.runSweep('spaces')
  const { body } = await get('listRepoOps', { ...place, limit: 1 })
  expect(body.ops.map((one: { rev: string }) => one.rev)).toEqual([rows[1]!.rev])
  expect(await pds.count('space_op', { space_repo_id: id })).toBe(100_000)
})

test('spaces are listed by URI, by type and by authority', async () => {
  const { get, post, place, account } = await writer()
  const others = [`at://${bob.did}/space/test.forum.other/1`, `at://${bob.did}/space/${TYPE}/2`]
  for (const space of [place.space, ...others])
    await post('createRecord', { space, repo: place.repo, collection: NOTE, record: { text: '' } })
  const list = async (params: Record<string, string | number> = {}) =>
    (await get('listSpaces', params)).body.spaces.map(({ uri }: { uri: string }) => uri)
  expect(await list()).toEqual([place.space, ...others].toSorted())
  expect(await list({ did: account.did })).toEqual([place.space])
  expect(await list({ spaceType: TYPE })).toEqual([place.space, others[1]!].toSorted())
  const { body } = await get('listSpaces', { limit: 2 })
  expect(await list({ cursor: body.cursor })).toHaveLength(1)
})

test('two writers at once lose nothing, and no revision goes back', async () => {
  const { get, put, place } = await writer()
  await Promise.all(Array.from({ length: 24 }, (_, i) => put(`k${i % 12}`, `text ${i}`)))
  const { body: log } = await get('listRepoOps', place)
  const revs = log.ops.map(({ rev }: { rev: string }) => rev)
  expect(revs).toEqual(revs.toSorted())
  expect(new Set(revs).size).toBe(revs.length)
  const { body } = await get('listRecords', place)
  const cids = body.records.map(({ collection, rkey, cid }: Record<string, string>) => `${collection}/${rkey}/${cid}`)
  expect(cids).toHaveLength(12)
  expect(Buffer.from(commitIn({ body: log }).hash).toString('hex')).toBe(hashOfSet(cids))
})

test('an account has as many spaces as the server permits', async () => {
  const { post, place } = await writer()
  const write = (i: number) =>
    post('createRecord', { space: `${place.space}x${i}`, repo: place.repo, collection: NOTE, record: { text: '' } })
  for (let i = 0; i < 5; i++) expect((await write(i)).status).toBe(200)
  expect(await write(5)).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest', message: 'Too many spaces. Max: 5' },
  })
  expect((await write(4)).status).toBe(200)
})

test('names of any length that is permitted are stored', async () => {
  const { get, post, place } = await writer()
  const space = `at://did:web:${'a'.repeat(450)}/space/test.${'b'.repeat(60)}.space/${'c'.repeat(470)}`
  const longest = { ...place, space, collection: `test.${'d'.repeat(63)}.note`, rkey: 'e'.repeat(512) }
  expect((await post('createRecord', { ...longest, record: { text: '' } })).status).toBe(200)
  expect((await get('listRecords', { space, repo: place.repo })).body.records).toHaveLength(1)
})

test('what is no space, no record key or no record is refused', async () => {
  const good = { space: freshSpace(), repo: alice.did, collection: NOTE, record: { text: '' } }
  for (const wrong of [
    { space: `at://alice.test/space/${TYPE}/a` },
    { space: `${good.space}/` },
    { space: `${good.space}?x` },
    { space: `at://did:web:${'a'.repeat(60)}.${'b'.repeat(700)}.example/space/${TYPE}/${'c'.repeat(500)}` },
    { space: `at://${alice.did}/${NOTE}/a` },
    { rkey: '..' },
    { collection: 'note' },
    { record: { $type: 'test.forum.other' } },
    { record: { text: 1.5 } },
    { collection: 'app.bsky.feed.post', record: { text: 'no date' } },
  ])
    expect({ wrong, status: (await app.post('createRecord', { ...good, ...wrong })).status }).toEqual({
      wrong,
      status: 400,
    })
  expect(await app.get('getLatestCommit', { space: good.space, repo: alice.did })).toMatchObject({ status: 400 })
})

test('the account goes, and with it all that it has in spaces', async () => {
  const { put, place, account } = await writer()
  await put('a', 'one')
  const { id } = (await pds.rows('space_repo', { did: account.did }))[0]!
  const answer = await request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
    json: { did: account.did },
    headers: basic('admin', ADMIN_TOKEN),
  })
  expect(answer.status).toBe(200)
  expect(await pds.count('space_repo', { did: account.did })).toBe(0)
  await pds.runSweep('spaces')
  expect(await pds.count('space_repo', { id })).toBe(0)
  expect(await pds.count('space_record', { space_repo_id: id })).toBe(0)
  expect(await pds.count('space_op', { space_repo_id: id })).toBe(0)
  expect(place.repo).toBe(account.did)
})

test('the archive of an account has what it wrote in spaces, signed, and nothing of others', async () => {
  const { put, place, account, get } = await writer()
  for (const rkey of ['b', 'a', 'longer']) await put(rkey, `text ${rkey}`)
  const answer = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(account.accessJwt) })
  const files = await archiveIn(await answer.bytes()).contents()
  const { spaces: listed } = JSON.parse(files.get('spaces.json')!.toString())
  const { body } = await get('getLatestCommit', place)
  expect(listed).toEqual([{ file: 'spaces/1.car', space: place.space, rev: body.commit.rev, records: 3 }])
  const { roots, blocks } = await readCar(new Uint8Array(files.get('spaces/1.car')!))
  const [commit, index] = roots.map((root) => decode(blocks.get(root)!) as Record<string, unknown>)
  expect(Buffer.from(commit!['hash'] as Uint8Array).toString('hex')).toBe(
    Buffer.from(body.commit.hash.$bytes, 'base64').toString('hex'),
  )
  expect(Object.keys(index!)).toEqual([`${NOTE}/a`, `${NOTE}/b`, `${NOTE}/longer`])
  const nobody = await createAccount(pds, 'nobody')
  const other = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(nobody.accessJwt) })
  expect(
    [...(await archiveIn(await other.bytes()).contents()).keys()].filter((name) => name.includes('space')),
  ).toEqual([])
})
