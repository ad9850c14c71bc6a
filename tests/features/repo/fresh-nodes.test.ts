/**
 * Nodes in the row of their repository and outside, against a plain map: random commits, and every way to read what is
 * left.
 */
import { expect, test } from 'bun:test'
import { FreshNodes, packedBytes } from '../../../src/features/data/repo/fresh-nodes.ts'
import { changeNodes, StoredNodes } from '../../../src/features/data/repo/node-store.ts'
import { findTree, insertRepo, updateTree } from '../../../src/features/data/repo/repo-store.ts'
import type { Reader } from '../../../src/platform/database/database.ts'
import type { Block } from '../../../src/protocol/car.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { nextTid } from '../../../src/protocol/tid.ts'
import { createAccount } from '../../support/clients/account.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

/** Whole numbers below a bound, the same in every run. */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** What the nodes of a repository have to be: by the text of their CIDs. */
type Model = Map<string, Block & { rev: Tid }>

const block = (content: object): Block => {
  const bytes = encode(content as never)
  return { cid: cidOfCbor(bytes), bytes }
}
const texts = (blocks: readonly Block[]) =>
  blocks.map(({ cid, bytes }) => `${cid} ${Buffer.from(bytes).toString('hex')}`).toSorted()
const flat = async (pages: AsyncIterable<Block[]>) => (await Array.fromAsync(pages)).flat()

/** Sections of an archive, as they come: blocks, or many of them framed. */
async function sectionBytes(stored: StoredNodes): Promise<number> {
  let count = 0
  for await (const section of stored.sections())
    count +=
      section instanceof Uint8Array ? section.length : section.reduce((sum, { bytes }) => sum + framed(bytes.length), 0)
  return count
}
/** Length, CID and block: lengths are varints of the CID and the block together. */
const framed = (length: number) => (length + 36 < 128 ? 1 : 2) + 36 + length

async function compare(
  reader: Reader,
  repoId: number,
  model: Model,
  gone: readonly Block[],
  since: Tid,
): Promise<void> {
  const nodes = [...model.values()]
  const stored = new StoredNodes(reader, repoId)
  expect(texts(await stored.find([...nodes, ...gone].map(({ cid }) => cid)))).toEqual(texts(nodes))
  expect(await stored.count()).toBe(nodes.length)
  expect(texts(await flat(stored.since(since)))).toEqual(texts(nodes.filter(({ rev }) => rev > since)))
  expect(await sectionBytes(stored)).toBe(nodes.reduce((sum, { bytes }) => sum + framed(bytes.length), 0))
}

const bothWays = [1, 2, 3, 4].map((seed) => ({ seed, countsPages: seed % 2 === 0 }))

test.each(bothWays)('after any commits the nodes are those of a plain map (%p)', async ({ seed, countsPages }) => {
  const { ctx } = pds
  const below = dice(seed)
  const did = `did:plc:${String(seed).padStart(24, 'a')}` as Did
  const { cid: someCid, bytes: commitBlock } = block({ commit: seed })
  const model: Model = new Map()
  /** Nodes that were there once and are not now. */
  const gone = new Map<string, Block>()
  const revs: Tid[] = [nextTid(null, 1_700_000_000_000_000, seed)]
  await ctx.db.transaction((tx) =>
    insertRepo(tx, did, { rev: revs[0]!, head: someCid, data: someCid, commitBlock }, FreshNodes.none.packed, 0),
  )
  const seen = { spills: 0, staleAtOnce: 0, backWhileStale: 0 }

  for (let commit = 0; commit < 250; commit++) {
    const rev = nextTid(revs.at(-1)!, 1_700_000_000_000_000, seed)
    const removed = [...model.values()].filter(() => below(model.size) < 4)
    // Now and then nearly all of them go.
    if (below(40) === 0) removed.push(...[...model.values()].filter((node) => !removed.includes(node) && below(8) > 0))
    const back = [...gone.values()].filter(() => below(gone.size) < 2)
    const made = Array.from({ length: below(60) === 0 ? 120 : below(7) }, () =>
      block({ n: below(2 ** 31), text: 'x'.repeat(below(400)) }),
    )
    const created = [...back, ...made]

    await ctx.db.transaction(async (tx) => {
      const before = (await findTree(tx, did))!
      const fresh = new FreshNodes(before.fresh)
      const stored = new StoredNodes(tx, before.id, fresh)
      const change = { rev, created, removed: removed.map(({ cid }) => cid) }
      const packed = await changeNodes(tx, stored, change, { countsPages })
      await updateTree(tx, before, { rev, head: someCid, data: someCid, commitBlock }, packed, {
        records: null,
        nodes: null,
        unlisted: 0,
        hasLarge: 0,
      })
      const after = new FreshNodes(packed)
      seen.spills += Number(fresh.nodes.length > 0 && after.stale.length === 0 && fresh.stale.length > 0)
      seen.staleAtOnce = Math.max(seen.staleAtOnce, after.stale.length)
      seen.backWhileStale += back.filter(({ cid }) => after.has(cid) && after.isStale(cid)).length
    })
    for (const node of removed) {
      model.delete(node.cid.toString())
      gone.set(node.cid.toString(), node)
    }
    for (const node of created) {
      gone.delete(node.cid.toString())
      model.set(node.cid.toString(), { ...node, rev })
    }
    revs.push(rev)
    if (commit % 5 === 0) {
      const { id } = (await pds.rows('repo', { did }))[0]!
      await ctx.db.snapshot((reader) =>
        compare(reader, id, model, [...gone.values()].slice(-50), revs[below(revs.length)]!),
      )
    }
  }
  // The random walk has been everywhere.
  expect(seen.spills).toBeGreaterThan(5)
  expect(seen.staleAtOnce).toBeGreaterThan(5)
  expect(seen.backWhileStale).toBeGreaterThan(2)
})

test('records that follow one another leave little more than the newest nodes in the row of their repository', async () => {
  const { did, call } = await createAccount(pds, 'alice')
  const collection = 'app.bsky.feed.post'
  const more: number[] = []
  const all: number[] = []
  for (let i = 0; i < 60; i++) {
    const record = { $type: collection, text: `post ${i}`, createdAt: '2026-01-01T00:00:00.000Z' }
    expect((await call('com.atproto.repo.createRecord', { json: { repo: did, collection, record } })).status).toBe(200)
    const [row] = await pds.rows('repo', { did })
    const { packed, nodes } = new FreshNodes(row!.fresh)
    more.push(packed.length - packedBytes(nodes.filter(({ rev }) => rev === row!.rev)))
    all.push(packed.length)
  }
  // The log of PostgreSQL has every byte of the row with every commit; SQLite writes a page, whatever is on it.
  if (pds.ctx.db.dialect.name === 'postgres') expect(Math.max(...more)).toBeLessThanOrEqual(300)
  else {
    expect(Math.max(...all)).toBeLessThanOrEqual(3700)
    expect(Math.max(...more)).toBeGreaterThan(300)
  }
})
