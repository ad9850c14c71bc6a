import { describe, expect, test } from 'bun:test'
import { invertCommit } from '../../tests/support/oracle.ts'
import fixtures from '../../tests/vectors/interop/firehose/commit-proof-fixtures.json'
import { type Block, carOf, readCar } from './car.ts'
import { type Data, encode } from './cbor.ts'
import { type Cid, cidFromBytes, cidOfCbor, parseCid } from './cid.ts'
import {
  buildCommit,
  type BuiltCommit,
  type CommitFault,
  MAX_OPS_PER_COMMIT,
  parseCommit,
  type RecordWrite,
  verifyCommit,
} from './commit.ts'
import type { Did, Tid } from './identifiers.ts'
import { signingKey } from './keys.ts'
import { Malformed } from './malformed.ts'
import { keyHeight } from './mst-node.ts'
import { buildTree, Mst } from './mst.ts'
import { nextTid } from './tid.ts'

const did = 'did:plc:7iza6de2dwap2sbkpav7c6c6' as Did
const key = signingKey('p256', new Uint8Array(32).fill(5))
const random = (below: number): number => Math.floor(Math.random() * below)
const record = (value: Data): Block => {
  const bytes = encode(value)
  return { cid: cidOfCbor(bytes), bytes }
}

/** A repository in memory that obeys its commits. */
class Repo {
  readonly blocks = new Map<string, Uint8Array>()
  readonly entries = new Map<string, Cid>()
  data: Cid | null = null
  rev: Tid | null = null
  read = (cid: Cid): Uint8Array | null => this.blocks.get(cid.toString()) ?? null

  attempt(writes: RecordWrite[]): BuiltCommit | CommitFault {
    const rev = nextTid(this.rev, 1_720_000_000_000_000, 1)
    const built = buildCommit({ did, rev, prevData: this.data, writes, key, read: this.read })
    if (!built.ok) return built
    for (const { cid, bytes } of built.nodes) this.blocks.set(cid.toString(), bytes)
    for (const cid of built.removedNodes) this.blocks.delete(cid.toString())
    for (const { path, cid } of built.ops) {
      if (cid === null) this.entries.delete(path)
      else this.entries.set(path, cid)
    }
    this.data = built.data
    this.rev = rev
    return built
  }

  write(writes: RecordWrite[]): BuiltCommit {
    const built = this.attempt(writes)
    if (!built.ok) throw new Error(built.error)
    return built
  }
}

const create = (path: string, value: Data = path): RecordWrite => ({ action: 'create', path, record: record(value) })
const update = (path: string, value: Data): RecordWrite => ({ action: 'update', path, record: record(value) })
const remove = (path: string): RecordWrite => ({ action: 'delete', path })

async function blocksOf(car: Uint8Array): Promise<{ root: string; cids: string[] }> {
  const { roots, pages } = await readCar([car])
  const cids: string[] = []
  for await (const page of pages) cids.push(...page.map((block) => block.cid.toString()))
  return { root: String(roots[0]), cids }
}

/** The blocks of an archive, unverified. */
function archivedBlocks(car: Uint8Array): Block[] {
  const blocks: Block[] = []
  let at = 1 + (car[0] as number)
  while (at < car.length) {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = car[at++] as number
      length |= (byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    blocks.push({ cid: cidFromBytes(car.slice(at, at + 36)) as Cid, bytes: car.slice(at + 36, at + length) })
    at += length
  }
  return blocks
}

describe('a commit', () => {
  const repo = new Repo()
  const genesis = repo.write([])
  const first = repo.write([create('com.example.a/1'), create('com.example.a/2')])

  test('holds the six fields, signed by the key', () => {
    for (const built of [genesis, first]) {
      const commit = parseCommit(built.commit.bytes)
      expect(Object.keys(commit).toSorted()).toEqual(['data', 'did', 'prev', 'rev', 'sig', 'version'])
      expect([commit.did, commit.version, commit.prev, commit.data.toString()]).toEqual([
        did,
        3,
        null,
        built.data.toString(),
      ])
      expect(verifyCommit(commit, key.publicKey)).toBe(true)
      expect(verifyCommit({ ...commit, rev: '3jzfcijpj2z2a' as Tid }, key.publicKey)).toBe(false)
      expect(verifyCommit(commit, signingKey('p256', new Uint8Array(32).fill(6)).publicKey)).toBe(false)
    }
  })

  test('starts a repository with the empty tree', () => {
    expect(genesis.prevData).toBeNull()
    expect(genesis.ops).toEqual([])
    expect(genesis.data.toString()).toBe('bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm')
    expect(first.prevData?.equals(genesis.data)).toBe(true)
    expect(first.removedNodes.map(String)).toEqual([genesis.data.toString()])
  })

  test('carries each block once: itself first, its nodes and its records', async () => {
    const { root, cids } = await blocksOf(first.car.bytes)
    expect(root).toBe(first.commit.cid.toString())
    expect(cids[0]).toBe(root)
    expect(new Set(cids).size).toBe(cids.length)
    expect(cids).toContain(first.data.toString())
    for (const op of first.ops) expect(cids).toContain(String(op.cid))
  })

  test('reports what each record was before', () => {
    const before = first.ops[0]?.cid as Cid
    const { ops } = repo.write([update('com.example.a/1', 'new'), remove('com.example.a/2'), create('com.example.a/3')])
    expect(ops.map(({ action, prev }) => [action, prev?.toString()])).toEqual([
      ['update', before.toString()],
      ['delete', first.ops[1]?.cid?.toString()],
      ['create', undefined],
    ])
  })

  const unsigned = parseCommit(first.commit.bytes)
  const refused: [string, Data][] = [
    ['of version 2', { ...unsigned, version: 2 }],
    ['without prev', Object.fromEntries(Object.entries(unsigned).filter(([name]) => name !== 'prev'))],
    ['with a prev', { ...unsigned, prev: first.data }],
    ['without a signature', { ...unsigned, sig: 'x' }],
    ['with a rev that is no TID', { ...unsigned, rev: 'now' }],
    ['with a DID that is none', { ...unsigned, did: 'alice' }],
    ['without a tree', { ...unsigned, data: null }],
    ['that is no map', [1]],
    ['that is null', null],
  ]
  for (const [what, value] of refused)
    test(`${what} is refused`, () => expect(() => parseCommit(encode(value))).toThrow(Malformed))
})

describe('a write that does not fit is refused, and nothing is built', () => {
  const repo = new Repo()
  repo.write([create('com.example.a/1')])
  const current = repo.entries.get('com.example.a/1') as Cid
  const other = record('other').cid
  const cases: [string, RecordWrite[], object][] = [
    ['create over a record', [create('com.example.a/1')], { error: 'RecordExists', path: 'com.example.a/1' }],
    ['update of nothing', [update('com.example.a/2', 'x')], { error: 'RecordNotFound', path: 'com.example.a/2' }],
    ['delete of nothing', [remove('com.example.a/2')], { error: 'RecordNotFound', path: 'com.example.a/2' }],
    [
      'a stale swap',
      [{ ...update('com.example.a/1', 'x'), swapRecord: other }],
      { error: 'InvalidSwap', path: 'com.example.a/1', current: current.toString() },
    ],
    [
      'a swap for absence',
      [{ ...update('com.example.a/1', 'x'), swapRecord: null }],
      { error: 'InvalidSwap', path: 'com.example.a/1', current: current.toString() },
    ],
    [
      'a swap of nothing',
      [{ ...create('com.example.a/2'), swapRecord: other }],
      { error: 'InvalidSwap', path: 'com.example.a/2', current: null },
    ],
    [
      'one path twice',
      [create('com.example.a/2'), remove('com.example.a/2')],
      { error: 'DuplicatePath', path: 'com.example.a/2' },
    ],
    [
      'a late fault',
      [create('com.example.a/2'), create('com.example.a/1')],
      { error: 'RecordExists', path: 'com.example.a/1' },
    ],
    [
      'too many writes',
      Array.from({ length: MAX_OPS_PER_COMMIT + 1 }, (_, i) => create(`com.example.a/n${i}`)),
      { error: 'TooManyWrites' },
    ],
    ['too many bytes', [create('com.example.a/2', 'x'.repeat(2_000_000))], { error: 'EventTooLarge' }],
  ]
  for (const [what, writes, fault] of cases) {
    test(what, () => {
      const [data, blocks] = [repo.data, new Map(repo.blocks)]
      const answer = repo.attempt(writes)
      expect(JSON.parse(JSON.stringify(answer, (_, value) => value?.$link ?? value))).toMatchObject({
        ok: false,
        ...fault,
      })
      expect([repo.data, repo.blocks]).toEqual([data, blocks])
    })
  }

  test('while swaps that hold go through', () => {
    expect(
      repo.attempt([
        { ...update('com.example.a/1', 'x'), swapRecord: current },
        { ...create('com.example.a/9'), swapRecord: null },
      ]).ok,
    ).toBe(true)
  })
})

describe('interop commit proofs', () => {
  for (const fixture of fixtures) {
    test(fixture.comment, async () => {
      const value = parseCid(fixture.leafValue) as Cid
      const blocks = new Map<string, Uint8Array>()
      const leaf = { cid: value, bytes: new Uint8Array([0xf6]) } // the fixture does not say its bytes
      const root = buildTree(
        fixture.keys.toSorted().map((path) => [path, value] as const),
        ({ cid, bytes }) => blocks.set(cid.toString(), bytes),
      )
      expect(root.toString()).toBe(fixture.rootBeforeCommit)
      const writes: RecordWrite[] = [
        ...fixture.adds.map((path): RecordWrite => ({ action: 'create', path, record: leaf })),
        ...fixture.dels.map((path): RecordWrite => ({ action: 'delete', path })),
      ]
      const read = (cid: Cid) => blocks.get(cid.toString()) ?? null
      const built = buildCommit({ did, rev: '3jzfcijpj2z2a' as Tid, prevData: root, writes, key, read }) as BuiltCommit
      expect(built.data.toString()).toBe(fixture.rootAfterCommit)
      const carried = archivedBlocks(built.car.bytes).filter(({ cid }) => !cid.equals(value))
      const expected = [built.commit.cid.toString(), ...fixture.blocksInProof]
      expect(carried.map(({ cid }) => cid.toString()).toSorted()).toEqual(expected.toSorted())
      expect(await invertCommit(carOf(built.commit.cid, carried), built.ops)).toBe(fixture.rootBeforeCommit)
    })
  }
})

describe('every commit can be undone from its own blocks', () => {
  /** Paths of all heights, so that trees are deep and their nodes split and merge. */
  const paths: string[] = (() => {
    const byHeight: string[][] = []
    for (let i = 0; i < 60_000; i++) {
      const path = `com.example.${i % 4}/${(i * 7919).toString(36)}`
      const peers = (byHeight[keyHeight(path)] ??= [])
      if (peers.length < 25) peers.push(path)
    }
    return byHeight.flat()
  })()

  function randomWrites(repo: Repo, pool: string[], count: number): RecordWrite[] {
    return pool
      .toSorted(() => Math.random() - 0.5)
      .slice(0, count)
      .map((path) => {
        if (!repo.entries.has(path)) return create(path, random(1000))
        return random(3) === 0 ? update(path, random(1000)) : remove(path)
      })
  }

  for (const [what, histories, commits, batch] of [
    ['single writes', 12, 25, 1],
    ['small batches', 10, 12, 6],
    ['large batches', 4, 4, 80],
  ] as const) {
    test(what, async () => {
      for (let history = 0; history < histories; history++) {
        const pool = paths.toSorted(() => Math.random() - 0.5).slice(0, 12 + random(batch * 4))
        const repo = new Repo()
        repo.write(pool.slice(0, random(pool.length)).map((path) => create(path)))
        for (let i = 0; i < commits; i++) {
          const built = repo.write(randomWrites(repo, pool, 1 + random(batch)))
          expect(await invertCommit(built.car.bytes, built.ops)).toBe(String(built.prevData))
        }
        const entries = [...repo.entries].toSorted(([a], [b]) => (a < b ? -1 : 1))
        expect(repo.data?.toString()).toBe(buildTree(entries, () => {}).toString())
      }
    })
  }

  test('every change between any two trees over six keys', () => {
    // Two keys of the lowest layer on either side of each other height, as splits and merges need them.
    const [low, middle, high] = [0, 1, 3].map((height) =>
      paths.filter((path) => keyHeight(path) === height).toSorted(),
    ) as [string[], string[], string[]]
    const keys = [...low.slice(0, 2), middle[3], high[2], ...low.slice(-2)] as string[]
    const subset = (bits: number): string[] => keys.filter((_, i) => bits & (1 << i))
    for (let from = 0; from < 64; from++) {
      for (let to = 0; to < 64; to++) {
        const repo = new Repo()
        repo.write(subset(from).map((path) => create(path)))
        const built = repo.write([...subset(from & ~to).map(remove), ...subset(to & ~from).map((path) => create(path))])
        expect(undo(built).toString()).toBe(String(built.prevData))
        const root = buildTree(
          subset(to)
            .toSorted()
            .map((path) => [path, repo.entries.get(path) as Cid] as const),
          () => {},
        )
        expect(built.data.toString()).toBe(root.toString())
      }
    }
  })

  /** Undo a commit with our own tree, which asks for no block outside the event either. */
  function undo({ car, data, ops }: BuiltCommit): Cid {
    const carried = new Map(archivedBlocks(car.bytes).map(({ cid, bytes }) => [cid.toString(), bytes]))
    const tree = new Mst(data, (cid) => carried.get(cid.toString()) ?? null)
    for (const { path, prev } of ops.toReversed()) {
      if (prev === null) tree.delete(path)
      else tree.put(path, prev)
    }
    return tree.flush().root
  }
})
