/** What other servers read of a repository, checked by the reference implementation. */
import { expect, test } from 'bun:test'
import { readCar as readTheirCar, verifyProofs, verifyRepoCar } from '@atproto/repo'
import { formatDidKey } from '../../../src/protocol/keys.ts'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import { exportBlocks, exportRecord } from '../../../src/features/data/sync/repo-export.ts'
import { parseCid } from '../../../src/protocol/cid.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic } from '../../support/clients/http.ts'
import { leastCost } from '../../support/least-cost.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))

const collection = 'app.bsky.feed.post'
const asAdmin = { headers: basic('admin', ADMIN_TOKEN) }

async function post(
  account: TestAccount,
  text: string,
): Promise<{ uri: string; cid: string; rkey: string; commit: { cid: string; rev: string } }> {
  const record = { $type: collection, text, createdAt: new Date().toISOString() }
  const { status, body } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection, record },
  })
  expect(status).toBe(200)
  return { ...body, rkey: body.uri.split('/').at(-1) }
}

const keyOf = async (did: string) => formatDidKey((await signingKeyOf(pds.ctx, pds.ctx.db, did as Did))!.publicKey)
const query = (params: Record<string, string | readonly string[]>) =>
  new URLSearchParams(
    Object.entries(params).flatMap(([name, values]) =>
      [values].flat().map((value) => [name, value] as [string, string]),
    ),
  ).toString()
const sync = (method: string, params: Record<string, string | readonly string[]>, init?: Parameters<typeof xrpc>[2]) =>
  xrpc(pds, `com.atproto.sync.${method}?${query(params)}`, init)

async function car(
  method: string,
  params: Record<string, string | readonly string[]>,
  headers = {},
): Promise<Uint8Array> {
  const response = await fetch(`${pds.url}/xrpc/com.atproto.sync.${method}?${query(params)}`, { headers })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/vnd.ipld.car')
  return new Uint8Array(await response.arrayBuffer())
}

const cidsOf = async (bytes: Uint8Array) => {
  const { roots, blocks } = await readTheirCar(bytes)
  return { roots: roots.map(String), cids: blocks.cids().map(String) }
}

/** What an export needs to know of a request. */
const asked = () => ({
  ctx: pds.ctx,
  caller: { did: null, admin: false },
  request: new Request(pds.url),
  mayIdle() {},
  takesPieces: false,
})

test('an export is a whole repository that verifies', async () => {
  const posts = []
  for (let i = 0; i < 30; i++) posts.push(await post(alice, `post ${i}`))
  const bytes = await car('getRepo', { did: alice.did })
  const { creates, commit } = await verifyRepoCar(bytes, alice.did, await keyOf(alice.did))
  expect(creates.map(({ cid }) => cid.toString()).toSorted()).toEqual(posts.map(({ cid }) => cid).toSorted())
  expect(commit.cid.toString()).toBe(posts.at(-1)!.commit.cid)
  expect(await car('getCheckout', { did: alice.did })).toEqual(bytes)
})

test('an export since a revision holds what came after it, under the root of now', async () => {
  const { commit } = await post(alice, 'before')
  const after = [await post(alice, 'after 1'), await post(alice, 'after 2')]
  const { roots, cids } = await cidsOf(await car('getRepo', { did: alice.did, since: commit.rev }))
  const whole = await cidsOf(await car('getRepo', { did: alice.did }))
  expect(roots).toEqual([after[1]!.commit.cid])
  expect(cids).toContain(roots[0]!)
  for (const { cid } of after) expect(cids).toContain(cid)
  expect(cids.length).toBeLessThan(whole.cids.length / 2)
  expect(new Set(whole.cids).isSupersetOf(new Set(cids))).toBe(true)
})

test('an export since any revision holds all that was not there, and nothing that is gone', async () => {
  const erin = await createAccount(pds, 'erin')
  const keys: string[] = []
  const states: { rev: string; cids: Set<string> }[] = []
  for (let i = 0; i < 90; i++) {
    const { rkey, commit } = await post(erin, `history ${i}`)
    keys.push(rkey)
    if (i % 3 === 2) {
      const [gone] = keys.splice((i * 7) % keys.length, 1)
      await erin.call('com.atproto.repo.deleteRecord', { json: { repo: erin.did, collection, rkey: gone } })
    }
    if (i % 6 === 0)
      states.push({ rev: commit.rev, cids: new Set((await cidsOf(await car('getRepo', { did: erin.did }))).cids) })
  }
  const now = new Set((await cidsOf(await car('getRepo', { did: erin.did }))).cids)
  for (const { rev, cids } of states) {
    const since = (await cidsOf(await car('getRepo', { did: erin.did, since: rev }))).cids
    expect(now.difference(cids).difference(new Set(since)).size).toBe(0)
    expect(now.isSupersetOf(new Set(since))).toBe(true)
    expect(new Set(since).size).toBe(since.length)
  }
  const head = (await sync('getLatestCommit', { did: erin.did })).body
  expect(await cidsOf(await car('getRepo', { did: erin.did, since: head.rev }))).toEqual({
    roots: [head.cid],
    cids: [head.cid],
  })
})

test('an export while others write is of one state', async () => {
  const bob = await createAccount(pds, 'bob')
  for (let i = 0; i < 20; i++) await post(bob, `first ${i}`)
  const writing = (async () => {
    for (let i = 0; i < 60; i++) await post(bob, `meanwhile ${i}`)
  })()
  const key = await keyOf(bob.did)
  for (let i = 0; i < 10; i++) await verifyRepoCar(await car('getRepo', { did: bob.did }), bob.did, key)
  await writing
})

test('a proof shows a record, and another shows that there is none', async () => {
  const { rkey, cid } = await post(alice, 'to be proven')
  const key = await keyOf(alice.did)
  const claims = {
    there: [
      {
        collection,
        rkey,
        cid: (await readTheirCar(await car('getRecord', { did: alice.did, collection, rkey }))).blocks
          .cids()
          .find((one) => String(one) === cid)!,
      },
    ],
  }
  const there = await verifyProofs(
    await car('getRecord', { did: alice.did, collection, rkey }),
    claims.there,
    alice.did,
    key,
  )
  expect([there.verified.length, there.unverified.length]).toEqual([1, 0])
  const absent = await verifyProofs(
    await car('getRecord', { did: alice.did, collection, rkey: 'nobody' }),
    [{ collection, rkey: 'nobody', cid: null }],
    alice.did,
    key,
  )
  expect([absent.verified.length, absent.unverified.length]).toEqual([1, 0])
})

test('blocks are given by their CIDs, in an archive without a root, or none of them', async () => {
  const { cid, commit } = await post(alice, 'a block')
  const bytes = await car('getBlocks', { did: alice.did, cids: [cid, commit.cid, cid] })
  const { roots, cids } = await cidsOf(bytes)
  expect([roots, cids.toSorted()]).toEqual([[], [cid, commit.cid].toSorted()])
  const foreign = 'bafyreib2rxk3rh6kzwq7zj4lj5m6u6i3j2vsm2d6jjnqn5n7u7hqv3b2da'
  const missing = await sync('getBlocks', { did: alice.did, cids: [cid, foreign] })
  expect(missing.status).toBe(400)
  expect(await sync('getBlocks', { did: alice.did, cids: ['nonsense'] })).toMatchObject({
    status: 400,
    body: { error: 'InvalidRequest' },
  })
})

test('blocks of every kind are given in one archive, a record that stands twice once', async () => {
  const record = { $type: collection, text: 'the same', createdAt: '2026-01-01T00:00:00.000Z' }
  const twins = await Promise.all(
    ['twin1', 'twin2'].map((rkey) =>
      alice.call('com.atproto.repo.createRecord', {
        json: { repo: alice.did, collection, rkey, record, validate: false },
      }),
    ),
  )
  expect(twins[0]!.body.cid).toBe(twins[1]!.body.cid)
  const all = [...new Set((await cidsOf(await car('getRepo', { did: alice.did }))).cids)]
  expect(await cidsOf(await car('getBlocks', { did: alice.did, cids: all }))).toEqual({ roots: [], cids: all })
})

test('records that are asked for by CID take a statement each, new ones one more, and none until the next commit', async () => {
  const posts = [await post(alice, 'asked for'), await post(alice, 'asked for too')]
  const { db } = pds.ctx
  const cids = posts.map(({ cid }) => parseCid(cid)!)
  const ask = () => exportBlocks(asked(), alice.did as Did, cids)
  expect(await leastCost(db, ask, () => post(alice, 'the next commit'))).toBe(1 + posts.length + (onPostgres ? 0 : 1))
  expect(await leastCost(db, ask)).toBe(1)
  for (let i = 0; i < 65; i++) await post(alice, 'many more')
  expect(await leastCost(db, ask, () => post(alice, 'the next commit'))).toBe(1 + posts.length)
})

test('a block that was given is not given once its record is gone, nor as one of another repository', async () => {
  const { rkey, cid } = await post(alice, 'here today')
  const dora = await createAccount(pds, 'dora')
  expect((await sync('getBlocks', { did: alice.did, cids: [cid] })).status).toBe(200)
  expect((await sync('getBlocks', { did: dora.did, cids: [cid] })).status).toBe(400)
  await alice.call('com.atproto.repo.deleteRecord', { json: { repo: alice.did, collection, rkey } })
  expect(await sync('getBlocks', { did: alice.did, cids: [cid] })).toMatchObject({
    status: 400,
    body: { error: 'BlockNotFound', message: `Could not find cids: ${cid}` },
  })
})

test('a block that two repositories have is given by each of them, until its record there is gone', async () => {
  const record = { $type: collection, text: 'of both', createdAt: '2026-01-01T00:00:00.000Z' }
  const json = (repo: string) => ({ repo, collection, rkey: 'both', record, validate: false })
  const both = [alice, await createAccount(pds, 'twin')] as const
  const cids: string[] = []
  for (const { did, call } of both) {
    const { body } = await call('com.atproto.repo.createRecord', { json: json(did) })
    cids.push(body.cid)
  }
  expect(cids[0]).toBe(cids[1]!)
  const statuses = async () => {
    const found: number[] = []
    for (const { did } of [...both, ...both]) found.push((await sync('getBlocks', { did, cids: [cids[0]!] })).status)
    return found
  }
  expect(await statuses()).toEqual([200, 200, 200, 200])
  await alice.call('com.atproto.repo.deleteRecord', { json: { repo: alice.did, collection, rkey: 'both' } })
  expect(await statuses()).toEqual([400, 200, 400, 200])
})

test('a proof of nodes that were read before takes one statement', async () => {
  const { rkey } = await post(alice, 'proven twice')
  await exportRecord(asked(), alice.did as Did, `${collection}/${rkey}`)
  expect(await leastCost(pds.ctx.db, () => exportRecord(asked(), alice.did as Did, `${collection}/${rkey}`))).toBe(1)
})

test('the latest commit is the one that the last write answered', async () => {
  const { commit } = await post(alice, 'the last one')
  expect((await sync('getLatestCommit', { did: alice.did })).body).toEqual(commit)
  expect((await sync('getHead', { did: alice.did })).body).toEqual({ root: commit.cid })
  expect((await sync('getRepoStatus', { did: alice.did })).body).toEqual({
    did: alice.did,
    active: true,
    rev: commit.rev,
  })
})

test('repositories are listed by age, page by page', async () => {
  const carol = await createAccount(pds, 'carol')
  const { commit } = await post(carol, 'hello')
  const all = (await sync('listRepos', {})).body
  expect(all.cursor).toBeUndefined()
  expect(all.repos.find(({ did }: { did: string }) => did === carol.did)).toEqual({
    did: carol.did,
    head: commit.cid,
    rev: commit.rev,
    active: true,
  })
  const pages: string[] = []
  for (let cursor: string | undefined; ;) {
    const { body } = await sync('listRepos', { limit: '1', ...(cursor && { cursor }) })
    pages.push(...body.repos.map(({ did }: { did: string }) => did))
    cursor = body.cursor
    if (!cursor) break
    expect(cursor).toMatch(/^\d+::did:/)
  }
  expect(pages).toEqual(all.repos.map(({ did }: { did: string }) => did))
  for (const cursor of ['x', '12', '12::x', '::did:plc:x'])
    expect(await sync('listRepos', { cursor })).toMatchObject({ status: 400, body: { message: 'Malformed cursor' } })
})

test('nobody reads what does not exist', async () => {
  const did = 'did:plc:nobodynobodynobodynobody'
  for (const [method, params] of [
    ['getRepo', {}],
    ['getCheckout', {}],
    ['getHead', {}],
    ['getLatestCommit', {}],
    ['getRepoStatus', {}],
    ['getRecord', { collection, rkey: 'a' }],
  ] as const) {
    expect(await sync(method, { did, ...params })).toMatchObject({ status: 400, body: { error: 'RepoNotFound' } })
  }
})

test('a deactivated repository is for its owner and the operator; its status is for all', async () => {
  const dave = await createAccount(pds, 'dave')
  const { commit, cid, rkey } = await post(dave, 'hidden soon')
  await pds.damage('account', { did: dave.did }, { deactivated_at: pds.clock.now() })
  const owner = { headers: { authorization: `Bearer ${dave.accessJwt}` } }
  const reads = [
    ['getRepo', {}],
    ['getLatestCommit', {}],
    ['getHead', {}],
    ['getRecord', { collection, rkey }],
    ['getBlocks', { cids: [cid] }],
  ] as const
  for (const [method, params] of reads) {
    const wanted = { did: dave.did, ...params } as Record<string, string | readonly string[]>
    expect(await sync(method, wanted)).toMatchObject({ status: 400, body: { error: 'RepoDeactivated' } })
    expect((await sync(method, wanted, { headers: { authorization: `Bearer ${alice.accessJwt}` } })).status).toBe(400)
    expect((await sync(method, wanted, owner)).status).toBe(200)
    expect((await sync(method, wanted, asAdmin)).status).toBe(200)
  }
  expect((await sync('getRepoStatus', { did: dave.did })).body).toEqual({
    did: dave.did,
    active: false,
    status: 'deactivated',
  })
  const listed = (await sync('listRepos', {})).body.repos.find(({ did }: { did: string }) => did === dave.did)
  expect(listed).toEqual({ did: dave.did, head: commit.cid, rev: commit.rev, active: false, status: 'deactivated' })
})

test('a client that goes away in the middle leaves nothing open', async () => {
  for (let i = 0; i < 5; i++) {
    const abort = new AbortController()
    const response = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}`, { signal: abort.signal })
    expect(response.status).toBe(200)
    abort.abort()
  }
  expect((await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}`, { method: 'HEAD' })).status).toBe(
    200,
  )
  await verifyRepoCar(await car('getRepo', { did: alice.did }), alice.did, await keyOf(alice.did))
})
