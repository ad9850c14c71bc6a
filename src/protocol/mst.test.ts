import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { oracleRoot } from '../../tests/support/oracle.ts'
import commonPrefixes from '../../tests/vectors/interop/mst/common_prefix.json'
import keyHeights from '../../tests/vectors/interop/mst/key_heights.json'
import type { Block } from './car.ts'
import { type Data, decode, encode } from './cbor.ts'
import { Cid, cidOfCbor, parseCid } from './cid.ts'
import { Malformed } from './malformed.ts'
import { decodeNode, keyHeight, layerOfRoot, type MstNode, sharedPrefix, subtreeTowards } from './mst-node.ts'
import { buildTree, MissingBlock, Mst, walkTree } from './mst.ts'
import { errorOf, thrownBy } from '../../tests/support/thrown.ts'

const valueOf = (n: number): Cid => cidOfCbor(encode(n))
const exampleKeys = readFileSync(`${import.meta.dir}/../../tests/vectors/interop/mst/example_keys.txt`, 'utf8')
  .trim()
  .split('\n')
const random = (below: number): number => Math.floor(Math.random() * below)

/** Keys for deep and ragged trees: some of every height, up to the rarest that a short search finds. */
const keyPool: string[] = (() => {
  const byHeight: string[][] = []
  for (let i = 0; i < 150_000; i++) {
    const key = `com.example.${i % 3 === 0 ? 'a' : 'record'}/${(i * 7919).toString(36)}`
    const peers = (byHeight[keyHeight(key)] ??= [])
    if (peers.length < 12) peers.push(key)
  }
  return [...byHeight.flat(), ...exampleKeys]
})()

/** A block store that obeys a flush, and says what it holds. */
class Store {
  readonly blocks = new Map<string, Uint8Array>()
  reads = 0
  read = (cid: Cid): Uint8Array | null => {
    this.reads++
    return this.blocks.get(cid.toString()) ?? null
  }
  apply({ created, removed }: { created: Block[]; removed: Cid[] }): void {
    for (const { cid, bytes } of created) {
      expect(this.blocks.has(cid.toString())).toBe(false)
      this.blocks.set(cid.toString(), bytes)
    }
    for (const cid of removed) expect(this.blocks.delete(cid.toString())).toBe(true)
  }
}

const sorted = (entries: Map<string, Cid>) => [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))

/** All blocks of the tree that holds these entries, and its root. */
function rebuilt(entries: Map<string, Cid>): { root: Cid; blocks: Map<string, Uint8Array> } {
  const blocks = new Map<string, Uint8Array>()
  const root = buildTree(sorted(entries), ({ cid, bytes }) => blocks.set(cid.toString(), bytes))
  return { root, blocks }
}

/** Keep entries and tree in step through one random change. */
function change(tree: Mst, entries: Map<string, Cid>, keys: string[]): void {
  const key = keys[random(keys.length)] as string
  const before = entries.get(key) ?? null
  if (random(5) < 2) {
    expect(tree.delete(key)?.toString()).toBe(before?.toString() as string)
    entries.delete(key)
  } else {
    const value = valueOf(random(5))
    expect(tree.put(key, value)?.toString()).toBe(before?.toString() as string)
    entries.set(key, value)
  }
}

describe('interop vectors', () => {
  test('a key has the height of its hash', () => {
    for (const { key, height } of keyHeights) expect([key, keyHeight(key)]).toEqual([key, height])
  })
  test('two keys share as many bytes as the vectors say', () => {
    for (const { left, right, len } of commonPrefixes) expect(sharedPrefix(left, right)).toBe(len)
  })
  test('a tree has the root that others compute for its records', () => {
    const value = parseCid('bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454') as Cid
    const roots: [string, string[]][] = [
      ['bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm', []],
      ['bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu', ['com.example.record/3jqfcqzm3fo2j']],
      ['bafyreih7wfei65pxzhauoibu3ls7jgmkju4bspy4t2ha2qdjnzqvoy33ai', ['com.example.record/3jqfcqzm3fx2j']],
    ]
    for (const [root, keys] of roots) {
      const tree = new Mst(null, () => null)
      for (const key of keys) tree.put(key, value)
      expect(tree.flush().root.toString()).toBe(root)
    }
  })
})

describe('the root', () => {
  test('equals that of the reference, built at once or key by key in any order', async () => {
    for (const count of [0, 1, 2, 3, 10, 60, 200]) {
      const keys = keyPool.toSorted(() => Math.random() - 0.5).slice(0, count)
      const entries = new Map(keys.map((key, i) => [key, valueOf(i)]))
      const tree = new Mst(null, () => null)
      for (const [key, value] of entries) tree.put(key, value)
      const expected = await oracleRoot(entries)
      expect(tree.flush().root.toString()).toBe(expected)
      expect(rebuilt(entries).root.toString()).toBe(expected)
    }
  })

  test('equals that of the reference after random histories of adds, updates and deletes', async () => {
    for (let history = 0; history < 60; history++) {
      const keys = keyPool.toSorted(() => Math.random() - 0.5).slice(0, 4 + random(16))
      const entries = new Map<string, Cid>()
      const tree = new Mst(null, () => null)
      for (let step = 0; step < 30; step++) change(tree, entries, keys)
      expect(tree.flush().root.toString()).toBe(await oracleRoot(sorted(entries)))
    }
  })
})

test('a flush names exactly the blocks that came and went, through thousands of changes', () => {
  for (let history = 0; history < 120; history++) {
    const keys = keyPool.toSorted(() => Math.random() - 0.5).slice(0, 3 + random(60))
    const entries = new Map<string, Cid>()
    const store = new Store()
    let root: Cid | null = null
    for (let flushes = 0; flushes < 20; flushes++) {
      // Every second history opens the tree anew for each flush, as commits do.
      const tree = new Mst(root, store.read)
      const changes = 1 + random(history % 3 === 0 ? 12 : 2)
      for (let i = 0; i < changes; i++) change(tree, entries, keys)
      const flush = tree.flush()
      store.apply(flush)
      root = flush.root
      const expected = rebuilt(entries)
      expect(root.toString()).toBe(expected.root.toString())
      expect([...store.blocks.keys()].toSorted()).toEqual([...expected.blocks.keys()].toSorted())
    }
  }
})

test('one tree goes on after its flush, and a shared cache never goes stale', () => {
  const cache = new Map<string, MstNode>()
  const entries = new Map<string, Cid>()
  const store = new Store()
  const tree = new Mst(null, store.read, cache)
  for (let i = 0; i < 300; i++) {
    change(tree, entries, keyPool)
    store.apply(tree.flush())
    if (i % 25 !== 0) continue
    const reader = new Mst(rebuilt(entries).root, store.read, cache)
    for (const key of keyPool) expect(reader.get(key)).toEqual(entries.get(key) ?? null)
  }
  for (const [cid, node] of cache) {
    const bytes = store.blocks.get(cid)
    if (bytes !== undefined) expect(decodeNode(bytes, node.layer).keys).toEqual(node.keys)
  }
})

test('a change that is undone before the flush leaves no trace', () => {
  const { root, blocks } = rebuilt(new Map(keyPool.map((key, i) => [key, valueOf(i)])))
  const tree = new Mst(root, (cid) => blocks.get(cid.toString()) ?? null)
  tree.put('com.example.record/new', valueOf(1))
  const first = tree.get(keyPool[5] as string) as Cid
  tree.delete(keyPool[5] as string)
  tree.put(keyPool[5] as string, first)
  tree.delete('com.example.record/new')
  const flush = tree.flush()
  expect([flush.root.toString(), flush.created, flush.removed]).toEqual([root.toString(), [], []])
})

test('a change reads only the nodes on its path', () => {
  const store = new Store()
  const entries = Array.from({ length: 20_000 }, (_, i): [string, Cid] => [
    `app.bsky.feed.post/3k${String(i).padStart(11, '0')}`,
    valueOf(i % 50),
  ])
  const root = buildTree(entries, ({ cid, bytes }) => store.blocks.set(cid.toString(), bytes))
  const tree = new Mst(root, store.read)
  tree.put('app.bsky.feed.post/3kzzzzzzzzzzz', valueOf(1))
  const { created } = tree.flush()
  expect(store.reads).toBeLessThan(20)
  expect(created.length).toBeLessThan(20)
})

describe('reading', () => {
  const entries = new Map(keyPool.map((key, i) => [key, valueOf(i)]))
  const { root, blocks } = rebuilt(entries)
  const read = (cid: Cid) => blocks.get(cid.toString()) ?? null
  const tree = new Mst(root, read)

  test('finds every key and no other', () => {
    for (const [key, value] of entries) expect(tree.get(key)?.equals(value)).toBe(true)
    for (const key of ['', 'A0/501343', 'A0/5013440', 'com.example.record/', 'zz/zz']) expect(tree.get(key)).toBeNull()
  })

  test('the path to a key proves it, or its absence, without the other blocks', () => {
    for (const key of [...keyPool.slice(0, 60), 'A0/000000', 'com.example.record/nothing', 'zz/zz']) {
      const path = new Set(tree.path(key).map(String))
      const partial = new Mst(root, (cid) => (path.has(cid.toString()) ? read(cid) : null))
      expect(partial.get(key)?.toString()).toBe(entries.get(key)?.toString() as string)
    }
  })

  test('says which block is missing', () => {
    const gone = tree.path(keyPool[0] as string).at(-1) as Cid
    const partial = new Mst(root, (cid) => (cid.equals(gone) ? null : read(cid)))
    expect(() => partial.get(keyPool[0] as string)).toThrow(MissingBlock)
    expect(() => new Mst(gone, () => null).get('a/b')).toThrow(MissingBlock)
  })
})

test('entries out of order or repeated are not built into a tree', () => {
  const value = valueOf(1)
  for (const keys of [
    ['b/b', 'a/a'],
    ['a/a', 'a/a'],
  ]) {
    expect(() =>
      buildTree(
        keys.map((key) => [key, value] as const),
        () => {},
      ),
    ).toThrow(Malformed)
  }
})

describe('a tree of unknown origin', () => {
  const paths = keyPool.filter((key) => !key.includes('//'))
  const entries = new Map(paths.map((key, i) => [key, valueOf(i)]))
  const { root, blocks } = rebuilt(entries)

  async function verify(top: Cid, extra = new Map<string, Uint8Array>()): Promise<{ nodes: number; keys: string[] }> {
    const seen = { nodes: 0, keys: [] as string[] }
    for await (const page of walkTree(
      top,
      async (cid) => extra.get(cid.toString()) ?? blocks.get(cid.toString()) ?? null,
    )) {
      seen.nodes += page.nodes.length
      for (const [key, value] of page.entries) {
        expect(value.equals(entries.get(key) ?? value)).toBe(true)
        seen.keys.push(key)
      }
    }
    return seen
  }

  test('is taken when it is whole, and all of it is visited, in the order of its keys', async () => {
    expect(await verify(root)).toEqual({ nodes: blocks.size, keys: sorted(entries).map(([key]) => key) })
    const empty = rebuilt(new Map())
    expect(await verify(empty.root, empty.blocks)).toEqual({ nodes: 1, keys: [] })
  })

  test('is refused when any one block is missing', async () => {
    for (const cid of [...blocks.keys()].slice(0, 30)) {
      const kept = blocks.get(cid)!
      blocks.delete(cid)
      expect(await thrownBy(verify(root))).toThrow(MissingBlock)
      blocks.set(cid, kept)
    }
  })

  // Keys with a height they need: found by search, so that a crafted node differs from a good one in one point.
  const keyAt = (height: number, after: string): string => {
    for (let i = 0; ; i++) if (keyHeight(`${after}${i}`) === height) return `${after}${i}`
  }
  const [a0, b0, c1] = [keyAt(0, 'aa.bb.cc/a'), keyAt(0, 'aa.bb.cc/b'), keyAt(1, 'aa.bb.cc/c')]
  const value = valueOf(1)
  const entry = (key: string, more: object = {}, p = 0): Data => ({
    p,
    k: Buffer.from(key.slice(p)),
    v: value,
    t: null,
    ...more,
  })
  const node = (e: Data[], l: Cid | null = null, more: object = {}): Data => ({ l, e, ...more })
  const craft = (data: Data): { root: Cid; blocks: Map<string, Uint8Array> } => {
    const bytes = encode(data)
    return { root: cidOfCbor(bytes), blocks: new Map([[cidOfCbor(bytes).toString(), bytes]]) }
  }
  const under = (child: Data, parent: (link: Cid) => Data) => {
    const below = craft(child)
    const top = craft(parent(below.root))
    return { root: top.root, blocks: new Map([...below.blocks, ...top.blocks]) }
  }

  test('the crafted nodes below are good but for the point named', async () => {
    const good = craft(node([entry(a0), entry(b0, {}, sharedPrefix(a0, b0))]))
    expect((await verify(good.root, good.blocks)).keys).toEqual([a0, b0])
    const two = under(node([entry(b0)]), (link) => node([entry(c1)], link))
    expect((await verify(two.root, two.blocks)).keys).toEqual([b0, c1])
  })

  const refused: [string, { root: Cid; blocks: Map<string, Uint8Array> }][] = [
    ['a value that is no node', craft('node')],
    ['null', craft(null)],
    ['a record in place of a node', craft({ $type: 'com.example.record', text: 'x' })],
    ['another field', craft(node([entry(a0)], null, { x: 1 }))],
    ['no list of entries', craft({ l: null, e: null })],
    ['an entry that is no map', craft(node([null]))],
    ['an entry with another field', craft(node([entry(a0, { x: 1 })]))],
    ['an entry without a value', craft(node([entry(a0, { v: null })]))],
    ['a subtree that is no link', craft(node([entry(a0, { t: 'x' })]))],
    ['a key that is text', craft(node([entry(a0, { k: a0 })]))],
    ['an empty key', craft(node([entry('')]))],
    ['a prefix beyond the key before', craft(node([entry(a0, { p: 3 })]))],
    ['a negative prefix', craft(node([entry(a0, { p: -1 })]))],
    ['a prefix shorter than it could be', craft(node([entry(a0), entry(b0)]))],
    ['keys out of order', craft(node([entry(b0), entry(a0)]))],
    ['a key twice', craft(node([entry(a0), entry(a0)]))],
    ['a key that is no path', craft(node([entry(keyAt(0, 'no-slash-'))]))],
    ['a key of two slashes', craft(node([entry(keyAt(0, 'aa.bb.cc/d/'))]))],
    ['a key with a space', craft(node([entry(keyAt(0, 'aa.bb.cc/ '))]))],
    ['a key outside ASCII', craft(node([entry(a0, { k: Buffer.from('aa.bb.cc/é') })]))],
    ['a key too long', craft(node([entry(keyAt(0, `aa.bb.cc/${'x'.repeat(1020)}`))]))],
    ['a key on the wrong layer', craft(node([entry(a0), entry(c1, {}, sharedPrefix(a0, c1))]))],
    ['a subtree below layer 0', under(node([entry(a0)]), (link) => node([entry(b0)], link))],
    ['a subtree out of its range', under(node([entry(keyAt(0, 'aa.bb.cc/d'))]), (link) => node([entry(c1)], link))],
    ['an empty subtree', under(node([]), (link) => node([entry(c1)], link))],
    ['a root without keys', under(node([entry(a0)]), (link) => node([], link))],
    [
      'a root that is another kind of block',
      { root: root, blocks: new Map([[root.toString(), encode(node([entry(a0)], cidOfCbor(new Uint8Array())))]]) },
    ],
  ]
  for (const [what, { root: top, blocks: extra }] of refused) {
    test(`is refused for ${what}`, async () => expect(await errorOf(verify(top, extra))).toBeInstanceOf(Malformed))
  }

  test('is refused when bytes of a node are damaged, whatever they are', async () => {
    const [cid, bytes] = [...blocks].find(([, block]) => block.length > 200) as [string, Uint8Array]
    const decoded = encode(decode(bytes))
    for (let i = 0; i < 500; i++) {
      const damaged = decoded.slice()
      // Not within a value, which the tree does not look into: the first bytes are heads and the first key.
      damaged[random(20)]! ^= 1 << random(8)
      expect(await thrownBy(verify(root, new Map([[cid, damaged]])))).toThrow(Malformed)
    }
  })
})

test('the subtree towards a key is found in the block of a node as in the node', () => {
  for (let round = 0; round < 40; round++) {
    const keys = Array.from({ length: 1 + random(60) }, () => keyPool[random(keyPool.length)] as string)
    const { root, blocks } = rebuilt(new Map(keys.map((key) => [key, valueOf(1)])))
    const rootBlock = blocks.get(root.toString())!
    expect(layerOfRoot(rootBlock)).toBe(Math.max(...keys.map(keyHeight)))
    // Keys that are there, and others before, between and behind them.
    const wanted = [
      ...keys,
      ...keys.flatMap((key) => [key.slice(0, -1), `${key}-`, `${key}z`]),
      'a',
      'zz',
      ...keyPool.slice(0, 50),
    ]
    for (const key of wanted) {
      for (let cid: Cid | null = root, layer = layerOfRoot(rootBlock); cid !== null; layer--) {
        const block: Uint8Array = blocks.get(cid.toString())!
        const node: MstNode = decodeNode(block, layer)
        const i = node.lowerBound(key)
        const expected: Cid | null = node.keys[i] === key ? null : (node.subtrees[i] as Cid | null)
        expect(String(subtreeTowards(block, key))).toBe(String(expected))
        cid = expected
      }
    }
  }
  expect(layerOfRoot(rebuilt(new Map()).blocks.values().next().value!)).toBe(0)
})

test('a node that is cut off has no subtree towards a key', () => {
  const { root, blocks } = rebuilt(new Map(keyPool.slice(0, 40).map((key) => [key, valueOf(1)])))
  const block = blocks.get(root.toString())!
  for (let length = 0; length < block.length; length++)
    expect(() => subtreeTowards(block.subarray(0, length), keyPool[7]!)).toThrow(Malformed)
})
