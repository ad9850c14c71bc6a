/** Nodes in memory: a bounded number of bytes, however large an account makes those of its tree. */
import { expect, test } from 'bun:test'
import type { StoredNodes } from '../../../src/features/data/repo/node-store.ts'
import { buildOnStored, pathBlocks, recentNodes } from '../../../src/features/data/repo/tree-nodes.ts'
import type { Block } from '../../../src/protocol/car.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Cid } from '../../../src/protocol/cid.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { buildTree, Mst } from '../../../src/protocol/mst.ts'
import { keyHeight, MstNode } from '../../../src/protocol/mst-node.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const value = cidOfCbor(new Uint8Array([0xa0]))
const nodeOf = (entries: number) => {
  const keys = Array.from({ length: entries }, (_, i) => `org.example.note/${String(i).padStart(13, '0')}`)
  return new MstNode(
    0,
    keys,
    keys.map(() => value),
    Array<null>(entries + 1).fill(null),
  )
}

test('tens of thousands of usual nodes are kept, and a few of the largest', () => {
  const cached = recentNodes(pds.ctx)
  const usual = nodeOf(4)
  for (let i = 0; i < 60_000; i++) cached.set(`usual ${i}`, usual)
  expect(cached.size).toBeGreaterThan(16_000)
  // As many entries as fit into the largest block.
  const largest = nodeOf(30_000)
  for (let i = 0; i < 100; i++) cached.set(`largest ${i}`, largest)
  expect(cached.size).toBeLessThan(10)
  expect(cached.get('largest 99')).toBe(largest)
})

/** Numbered keys of one height. */
function* keysOf(start: string, height: number, end = ''): Generator<string> {
  for (let i = 0; ; i++) {
    const key = `${start}${String(i).padStart(6, '0')}${end}`
    if (keyHeight(key) === height) yield key
  }
}

/** A tree of large leaves, with a key between them: the blocks, and a key of each leaf. */
function treeOfLeaves(leaves: number, entries: number) {
  const keys: string[] = []
  const ofLeaves: string[] = []
  for (let leaf = 0; leaf < leaves; leaf++) {
    const start = `org.example.note/${String(leaf).padStart(4, '0')}`
    // Long keys that differ near their beginning: prefixes are stored once.
    keys.push(...keysOf(`${start}-`, 0, 'x'.repeat(400)).take(entries))
    ofLeaves.push(keys.at(-1)!)
    keys.push(...keysOf(`${start}~`, 1).take(1))
  }
  const blocks = new Map<string, Block>()
  const root = buildTree(
    keys.map((key) => [key, value] as const),
    (block) => blocks.set(block.cid.toString(), block),
  )
  return { root, blocks, ofLeaves }
}

/** A tree of two nodes, the lower one behind the last key of the upper one: its blocks, and a key of each. */
function treeOfTwo(upper: number, lower: number, longTo: number) {
  const high = [...keysOf('org.example.note/a', 1, 'x'.repeat(longTo)).take(upper)]
  const low = [...keysOf('org.example.note/b', 0, 'x'.repeat(longTo)).take(lower)]
  const blocks = new Map<string, Block>()
  const root = buildTree(
    [...high, ...low].map((key) => [key, value] as const),
    (block) => blocks.set(block.cid.toString(), block),
  )
  expect(blocks.size).toBe(2)
  const stored = { repoId: 1, find: async (cids: readonly Cid[]) => cids.map((cid) => blocks.get(cid.toString())!) }
  return { root, blocks, high, low, stored: stored as unknown as StoredNodes }
}

test('large nodes are not kept, and the proof of a key leads through them', async () => {
  const { root, blocks, high, low, stored } = treeOfTwo(2000, 2000, 4)
  const recent = recentNodes(pds.ctx)
  recent.turn()
  recent.turn()
  const tree = new Mst(root, (cid) => blocks.get(cid.toString())?.bytes ?? null)
  for (const key of [
    high[0]!,
    high[1234]!,
    `${high[7]}~`,
    low[0]!,
    low[1999]!,
    `${low[1500]}~`,
    'org.example.note/c',
    'a/a',
  ]) {
    const proof = await pathBlocks(stored, root, recent, key)
    expect(proof.map(({ cid }) => cid.toString())).toEqual(tree.path(key).map(String))
  }
  expect(recent.size).toBe(0)
})

test('a commit whose event would be too large is refused before the nodes are decoded, cached or not', async () => {
  const { root, low, stored } = treeOfTwo(2200, 2200, 450)
  const recent = recentNodes(pds.ctx)
  recent.turn()
  recent.turn()
  const building = (paths: readonly string[], action: 'update' | 'delete', tree = { root, stored }) =>
    buildOnStored(tree.stored, recent, {
      did: 'did:plc:7iza6de2dwap2sbkpav7c6c6' as Did,
      rev: '3labcdefghijk' as Tid,
      prevData: tree.root,
      writes: paths.map((path) =>
        action === 'delete'
          ? { path, action }
          : { path, action, record: { cid: value, bytes: new Uint8Array([0xa0]) } },
      ),
      key: signingKey('k256', new Uint8Array(32).fill(9)),
    })
  const tooLarge = { ok: false, error: 'EventTooLarge' } as const
  for (const action of ['update', 'delete'] as const) {
    expect(await building(low.slice(5, 6), action)).toMatchObject(tooLarge)
    expect(await building(low.slice(5, 9), action)).toMatchObject(tooLarge)
  }
  // Nothing of the tree was decoded or built, so nothing was to be kept.
  expect(recent.size).toBe(0)
  // A commit may have nearly as many bytes.
  const smaller = treeOfTwo(40, 3500, 450)
  expect(await building(smaller.low.slice(5, 6), 'delete', smaller)).toMatchObject({ ok: true })
  // The nodes beside a record that is only replaced are not in the event.
  const wide = treeOfTwo(40, 4300, 450)
  expect(await building(wide.high.slice(-1), 'update', wide)).toMatchObject({ ok: true })
  expect(await building(wide.high.slice(-2), 'update', wide)).toMatchObject({ ok: true })
})

test('a commit that would read more of a tree than it may write is refused before', async () => {
  const { root, blocks, ofLeaves } = treeOfLeaves(120, 600)
  expect(Math.max(...blocks.values().map(({ bytes }) => bytes.length))).toBeGreaterThan(200_000)
  let read = 0
  const find = async (cids: readonly Cid[]) => {
    const found = cids.map((cid) => blocks.get(cid.toString())!)
    for (const { bytes } of found) read += bytes.length
    return found
  }
  const stored = { repoId: 1, find } as unknown as StoredNodes
  const deleting = (paths: readonly string[]) =>
    buildOnStored(stored, recentNodes(pds.ctx), {
      did: 'did:plc:7iza6de2dwap2sbkpav7c6c6' as Did,
      rev: '3labcdefghijk' as Tid,
      prevData: root,
      writes: paths.map((path) => ({ path, action: 'delete' })),
      key: signingKey('k256', new Uint8Array(32).fill(9)),
    })
  expect(await deleting(ofLeaves)).toEqual({ ok: false, error: 'EventTooLarge', limit: 2_000_000 })
  expect(read).toBeLessThan(20_000_000)
  expect(await deleting(ofLeaves.slice(0, 2))).toMatchObject({ ok: true })
})
