/**
 * Records that the indices on CIDs and revisions have not got yet: whoever reads by either sees no difference.
 */
import { expect, test } from 'bun:test'
import { recordsSince } from '../../../src/features/data/repo/repo.ts'
import { listRevisions, pathsOfRevision } from '../../../src/features/operations/data-browser/browsed-data-store.ts'
import { readCar } from '../../../src/protocol/car.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()
const collection = 'com.example.note'

interface Kept {
  cid: string
  rev: string
}

/** A writer, and what its repository must have: by path. */
class Model {
  readonly kept = new Map<string, Kept>()
  readonly gone = new Set<string>()
  readonly revs: string[] = []

  constructor(readonly account: TestAccount) {}

  async call<T>(method: string, input: object): Promise<T> {
    const { status, body } = await this.account.call(`com.atproto.repo.${method}`, {
      json: { repo: this.account.did, ...input },
    })
    expect(status).toBe(200)
    return body as T
  }

  async put(rkey: string, text: string): Promise<void> {
    const record = { $type: collection, text }
    const { cid, commit } = await this.call<{ cid: string; commit: { rev: string } }>('putRecord', {
      collection,
      rkey,
      record,
      validate: false,
    })
    this.note(`${collection}/${rkey}`, { cid, rev: commit.rev })
  }

  note(path: string, next: Kept | null, rev = next!.rev): void {
    const before = this.kept.get(path)
    if (before) this.gone.add(before.cid)
    if (next === null) this.kept.delete(path)
    else this.kept.set(path, next)
    this.revs.push(rev)
  }

  async delete(rkey: string): Promise<void> {
    const { commit } = await this.call<{ commit: { rev: string } }>('deleteRecord', { collection, rkey })
    this.note(`${collection}/${rkey}`, null, commit.rev)
  }

  /** Many in one commit. */
  async addMany(count: number, name: string): Promise<void> {
    const writes = Array.from({ length: count }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection,
      rkey: `${name}${i}`,
      value: { $type: collection, text: `${name} ${i}` },
    }))
    const { commit, results } = await this.call<{ commit: { rev: string }; results: { cid: string }[] }>(
      'applyWrites',
      { writes, validate: false },
    )
    for (const [i, { cid }] of results.entries()) this.note(`${collection}/${name}${i}`, { cid, rev: commit.rev })
  }

  async blocks(method: string, query: string): Promise<Set<string>> {
    const response = await fetch(`${pds.url}/xrpc/com.atproto.sync.${method}?did=${this.account.did}&${query}`)
    expect(response.status).toBe(200)
    const found = new Set<string>()
    for await (const page of (await readCar([await response.bytes()])).pages)
      for (const { cid } of page) found.add(cid.toString())
    return found
  }

  /** Every read by CID or revision, at some revisions. */
  async check(): Promise<void> {
    const did = this.account.did as Did
    const kept = [...this.kept]
    const cids = kept.map(([, { cid }]) => cid)
    for (let i = 0; i < cids.length; i += 20) {
      const some = cids.slice(i, i + 20)
      expect(await this.blocks('getBlocks', some.map((cid) => `cids=${cid}`).join('&'))).toEqual(new Set(some))
    }
    for (const place of [0, 0.3, 0.9, 1]) {
      const since = this.revs[Math.floor(place * (this.revs.length - 1))]!
      const newer = kept.filter(([, { rev }]) => rev > since)
      const sent = await this.blocks('getRepo', `since=${since}`)
      expect(newer.filter(([, { cid }]) => !sent.has(cid))).toEqual([])
      expect(kept.filter(([, { cid, rev }]) => rev <= since && sent.has(cid))).toEqual([])
      const read = await recordsSince(pds.ctx.db, did, since as Tid, 10)
      const some = newer.length === kept.length ? [] : newer
      const oldest = some.toSorted(([a, x], [b, y]) => (`${x.rev} ${a}` < `${y.rev} ${b}` ? -1 : 1)).slice(0, 10)
      expect(read.map(({ path, cid, rev }) => [path, String(cid), rev])).toEqual(
        oldest.map(([path, { cid, rev }]) => [path, cid, rev]),
      )
    }
    const revs = [...new Set(kept.map(([, { rev }]) => rev))].toSorted().toReversed()
    expect<string[]>(await listRevisions(pds.ctx.db, did, null, 1000)).toEqual(revs)
    const middle = revs[Math.floor(revs.length / 2)]!
    expect<string[]>(await listRevisions(pds.ctx.db, did, middle, 3)).toEqual(
      revs.filter((rev) => rev < middle).slice(0, 3),
    )
    expect((await pathsOfRevision(pds.ctx.db, did, middle as Tid, 500)).toSorted()).toEqual(
      kept.flatMap(([path, { rev }]) => (rev === middle ? [path] : [])).toSorted(),
    )
  }

  async unlisted(): Promise<number> {
    const rows = await pds.rows('repo', { did: this.account.did }, ['id'])
    return pds.count('record', { repo_id: rows[0]!.id, unlisted: 1 })
  }
}

test('records are read by CID and by revision whether the indices have them or not', async () => {
  const model = new Model(await createAccount(pds, 'lister'))
  let most = 0
  for (let i = 0; i < 150; i++) {
    const rkeys = [...model.kept.keys()].map((path) => path.slice(collection.length + 1))
    const some = rkeys[(i * 7919) % rkeys.length]
    if (some !== undefined && i % 10 === 9) await model.delete(some)
    else await model.put(some !== undefined && i % 3 === 2 ? some : `r${i}`, `text ${i}`)
    most = Math.max(most, await model.unlisted())
    if (i % 25 === 24) await model.check()
  }
  expect(most).toBeLessThanOrEqual(64)
  // PostgreSQL adds them at once.
  expect(most > 32).toBe(!onPostgres)
  await model.addMany(100, 'many')
  expect(await model.unlisted()).toBe(0)
  await model.check()
  await model.put('after', 'one')
  await model.addMany(5, 'few')
  await model.check()
  for (const cid of [...model.gone].slice(0, 5))
    expect(
      (await fetch(`${pds.url}/xrpc/com.atproto.sync.getBlocks?did=${model.account.did}&cids=${cid}`)).status,
    ).toBe(400)
}, 60_000)

test('a write that is refused as its commit would add records to the indices leaves all of them readable', async () => {
  const model = new Model(await createAccount(pds, 'unlucky'))
  for (let i = 0; i < 64; i++) await model.put(`r${i}`, `text ${i}`)
  const undone = await model.account.call('com.atproto.repo.putRecord', {
    json: {
      repo: model.account.did,
      collection,
      rkey: 'r1',
      record: { $type: collection },
      swapRecord: 'bafyreiclp443lavogvhj3d2ob2cxbfuscni2k5jk7bebjzg7khl3esabwq',
    },
  })
  expect(undone.status).toBe(400)
  await model.check()
  await model.put('last', 'one')
  await model.check()
}, 60_000)

test('records of the same content hide none of the blocks that are asked for with them', async () => {
  const model = new Model(await createAccount(pds, 'twice'))
  for (let i = 0; i < 10; i++) {
    await model.put(`r${i}`, 'the same')
    const all = await model.blocks('getRepo', '')
    expect(await model.blocks('getBlocks', [...all].map((cid) => `cids=${cid}`).join('&'))).toEqual(all)
  }
})
