import { expect, test } from 'bun:test'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import { nextRev, repoHead } from '../../../src/features/data/repo/repo.ts'
import { repoFaults } from '../../../src/features/data/repo/repo-verification.ts'
import { findTree, replaceRepo, updateHead, updateTree } from '../../../src/features/data/repo/repo-store.ts'
import { WriteConflict } from '../../../src/platform/database/database.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { followRepo, type Followed } from '../../support/history.ts'
import { oracleRoot } from '../../support/oracle.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { readCar } from '../../../src/protocol/car.ts'
import { parseCid } from '../../../src/protocol/cid.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds } = useWorld()

const post = (text: string) => ({ $type: 'app.bsky.feed.post', text, createdAt: '2026-01-01T00:00:00.000Z' })

async function follow({ did }: TestAccount): Promise<Followed> {
  const head = (await repoHead(pds.ctx.db, did as Did))!
  const subscriber = new Subscriber(pds.url, '?cursor=0')
  for (let count = 1; ; count = subscriber.messages.length + 1) {
    const messages = await subscriber.until(count)
    if (messages.some(({ type, body }) => type === '#commit' && String(body['commit']) === head.head.toString())) break
  }
  subscriber.close()
  const followed = await followRepo(subscriber.messages, did)
  expect(followed.rev as string).toBe(head.rev)
  expect(await faults(did as Did)).toEqual([])
  expect(await oracleRoot([...followed.records].map(([path, cid]) => [path, parseCid(cid)!] as const))).toBe(
    head.data.toString(),
  )
  return followed
}

/** What is stored must be the tree, no less and no more. */
async function faults(did: Did): Promise<string[]> {
  const key = (await signingKeyOf(pds.ctx, pds.ctx.db, did))!
  return pds.ctx.db.snapshot(
    async (reader) => (await repoFaults(reader, (await repoHead(reader, did))!, key.publicKey)).faults,
  )
}

/** Numbers between 0 and 1, the same in every run. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

test.each([1, 2, 3])(
  'every commit of a random history undoes itself over its own blocks (%i)',
  async (seed) => {
    const alice = await createAccount(pds, `history${seed}`)
    const next = random(seed)
    const pick = (count: number) => Math.floor(next() * count)
    const keys = new Set<string>()
    let commits = 1
    const call = async (nsid: string, json: Record<string, unknown>) => {
      const answer = await alice.call(`com.atproto.repo.${nsid}`, {
        json: { repo: alice.did, validate: false, ...json },
      })
      expect(answer.status).toBe(200)
      if (answer.body.commit) commits++
    }
    const known = () => [...keys][pick(keys.size)]!
    const place = (key: string) => ({ collection: key.split('/')[0]!, rkey: key.split('/')[1]! })
    const fresh = () => {
      const key = `${['app.bsky.feed.post', 'com.example.thing', 'com.example.thing.more'][pick(3)]}/${pick(1e9).toString(36)}`
      keys.add(key)
      return place(key)
    }
    const record = ({ collection }: { collection: string }) => ({ $type: collection, n: pick(1e9) })
    for (let i = 0; i < 60; i++) {
      const choice = keys.size < 5 ? 0 : pick(6)
      if (choice <= 1) {
        const key = fresh()
        await call('createRecord', { ...key, record: record(key) })
      } else if (choice === 2) {
        const key = place(known())
        await call('putRecord', { ...key, record: record(key) })
      } else if (choice === 3) {
        const key = known()
        keys.delete(key)
        await call('deleteRecord', place(key))
      } else {
        const touched = new Set<string>()
        const writes: unknown[] = []
        for (let n = pick(40) + 1; n > 0; n--) {
          const key = pick(3) === 0 ? known() : ''
          if (key === '' || touched.has(key)) {
            const created = fresh()
            touched.add(`${created.collection}/${created.rkey}`)
            writes.push({ $type: 'com.atproto.repo.applyWrites#create', ...created, value: record(created) })
          } else {
            touched.add(key)
            const isDelete = pick(2) === 0
            if (isDelete) keys.delete(key)
            writes.push(
              isDelete
                ? { $type: 'com.atproto.repo.applyWrites#delete', ...place(key) }
                : { $type: 'com.atproto.repo.applyWrites#update', ...place(key), value: record(place(key)) },
            )
          }
        }
        await call('applyWrites', { writes })
      }
    }
    for (const key of keys) await call('deleteRecord', place(key))
    const followed = await follow(alice)
    expect(followed.commits).toBe(commits)
    expect(followed.records.size).toBe(0)
  },
  60_000,
)

const uncounted = { records: null, nodes: null, unlisted: 0, hasLarge: 0 }

test('a head is replaced only where it is the one that was read', async () => {
  const { ctx } = pds
  const { did } = await createAccount(pds, 'overtaken')
  const read = (await repoHead(ctx.db, did as Did))!
  await ctx.db.transaction(async (tx) =>
    updateTree(tx, read, { ...read, rev: nextRev(ctx, read.rev) }, (await findTree(tx, did as Did))!.fresh, uncounted),
  )
  const overtaken = (await repoHead(ctx.db, did as Did))!
  const late = { ...read, rev: nextRev(ctx, overtaken.rev) }
  expect(await thrownBy(ctx.db.transaction((tx) => updateTree(tx, read, late, new Uint8Array(), uncounted)))).toThrow(
    WriteConflict,
  )
  expect(await thrownBy(ctx.db.transaction((tx) => updateHead(tx, read, late)))).toThrow(WriteConflict)
  expect(await thrownBy(ctx.db.transaction((tx) => replaceRepo(tx, did as Did, read, read, late, uncounted)))).toThrow(
    WriteConflict,
  )
  expect(await repoHead(ctx.db, did as Did)).toEqual(overtaken)
})

test('fifty writers on one repository lose nothing and make one history', async () => {
  const alice = await createAccount(pds, 'crowd')
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, writer) => {
      const results = []
      for (let i = 0; i < 5; i++) {
        results.push(
          await alice.call('com.atproto.repo.createRecord', {
            json: { repo: alice.did, collection: 'app.bsky.feed.post', record: post(`${writer} ${i}`) },
          }),
        )
      }
      return results
    }),
  )
  const results = answers.flat()
  expect(results.every(({ status }) => status === 200)).toBe(true)
  const followed = await follow(alice)
  expect(followed.commits).toBe(251)
  expect(followed.records).toEqual(
    new Map(results.map(({ body }) => [body.uri.split('/').slice(3).join('/'), body.cid])),
  )
  expect(new Set(results.map(({ body }) => body.commit.rev)).size).toBe(250)
}, 60_000)

test('an archive of changes holds whatever the archive before lacks', async () => {
  const alice = await createAccount(pds, 'changes')
  const blocks = async (since = '') => {
    const response = await fetch(
      `${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}${since && `&since=${since}`}`,
    )
    const found = new Set<string>()
    for await (const page of (await readCar([await response.bytes()])).pages)
      for (const { cid } of page) found.add(cid.toString())
    return found
  }
  let written = 0
  const write = async (count: number) => {
    const writes = Array.from({ length: count }, () => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection: 'com.example.thing',
      rkey: `r${(written++ * 7919) % 100_003}`,
      value: { written },
    }))
    return (await alice.call('com.atproto.repo.applyWrites', { json: { repo: alice.did, writes } })).body.commit
      .rev as string
  }
  for (const [size, changes] of [
    [5, 30],
    [150, 3],
    [150, 60],
  ] as const) {
    const since = await write(size)
    const before = await blocks()
    for (let i = 0; i < changes; i++) await write(1)
    const [all, changed] = [await blocks(), await blocks(since)]
    expect([...all].filter((cid) => !before.has(cid) && !changed.has(cid))).toEqual([])
    expect(changed.size).toBeLessThan(all.size)
  }
  await follow(alice)
}, 60_000)

test('revisions grow though the clock steps back', async () => {
  using _ = atOneNode(pds, 'each node makes record keys that grow, by its own clock')
  const alice = await createAccount(pds, 'timewarp')
  const write = async () =>
    (
      await alice.call('com.atproto.repo.createRecord', {
        json: { repo: alice.did, collection: 'app.bsky.feed.post', record: post('x') },
      })
    ).body
  const before = await write()
  pds.clock.jump({ secs: -3600 })
  const after = await write()
  expect(after.commit.rev > before.commit.rev).toBe(true)
  expect(after.uri > before.uri).toBe(true)
  await follow(alice)
})
