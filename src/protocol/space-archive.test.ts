/**
 * The vectors have no test of their own for two members of `commit_ES256` and `commit_ES256K`: `car_length` and
 * `car_sha256` are of an archive with four records, and the contract has only the CIDs of these. Three are known, by
 * trying; the fourth, of 41 bytes, is not.
 */
import { readCar as readWithLibrary } from '@atproto/repo'
import { expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/permissioned-data-v1.json' with { type: 'json' }
import { Random } from '../../tests/support/random.ts'
import { readCar, type Block } from './car.ts'
import { decode, encode, type DataObject } from './cbor.ts'
import { Cid, cidOfCbor, parseCid } from './cid.ts'
import type { Tid } from './identifiers.ts'
import { spaceArchive, SpaceIndex, type RecordBlocks } from './space-archive.ts'
import type { SpaceCommit } from './space-commit.ts'

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

const commitWith = (sig: string): SpaceCommit => ({
  ver: 1,
  hash: bytes(vectors.repo_hash),
  ikm: new Uint8Array(32).fill(7),
  sig: bytes(sig),
  mac: bytes(vectors.mac),
  rev: '3kbcq3p7ad400' as Tid,
})
const ofVectors = commitWith(vectors.commit_ES256K.sig)

async function archiveOf(
  cids: Readonly<Record<string, Cid>>,
  records: RecordBlocks | null,
  { commit = ofVectors, pause = async () => {} } = {},
): Promise<Buffer> {
  const index = new SpaceIndex()
  const paths = Object.keys(cids).toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  for (const path of paths) index.add(path, cids[path]!)
  const chunks: Uint8Array[] = []
  for await (const chunk of spaceArchive(commit, index, records, pause)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function blocksOf(archive: Uint8Array): Promise<{ roots: string[]; blocks: Block[] }> {
  const { roots, pages } = await readCar([archive])
  return { roots: roots.map(String), blocks: (await Array.fromAsync(pages)).flat() }
}

const recordOf = (text: string): Block => {
  const block = encode({ $type: 'com.example.note', text })
  return { cid: cidOfCbor(block), bytes: block }
}

test('the roots are the commit and the index of the vectors, and nothing follows without values', async () => {
  const index = Object.fromEntries(Object.entries(vectors.record_cids).map(([path, cid]) => [path, parseCid(cid)!]))
  const asked: string[][] = []
  const archive = await archiveOf(index, (paths) => {
    asked.push([...paths])
    return []
  })
  expect(asked.flat()).toEqual(vectors.index_order)
  expect(archive).toEqual(await archiveOf(index, null))
  const { roots, blocks } = await blocksOf(archive)
  expect(roots).toEqual([vectors.commit_ES256K.cid, vectors.index_cid])
  expect(blocks.map(({ cid }) => String(cid))).toEqual(roots)
  expect(Buffer.from(blocks[1]!.bytes).toString('hex')).toBe(vectors.index_block)
})

test('the commit of either curve is the first root, by its CID', async () => {
  for (const { sig, cid } of [vectors.commit_ES256, vectors.commit_ES256K])
    expect((await blocksOf(await archiveOf({}, null, { commit: commitWith(sig) }))).roots[0]).toBe(cid)
})

test('records have the CIDs of the vectors', () => {
  const known: Record<string, DataObject> = {
    'com.example.note/a': { $type: 'com.example.note', text: 'first' },
    'com.example.note/b': { $type: 'com.example.note', text: 'second' },
    'com.example.z/aa': { text: 'hello' },
  }
  const cids = Object.entries(known).map(([path, value]) => [path, cidOfCbor(encode(value)).toString()])
  expect(vectors.record_cids).toMatchObject(Object.fromEntries(cids))
})

test('an empty repository has an empty index', async () => {
  const { roots } = await blocksOf(await archiveOf({}, () => []))
  expect(roots).toEqual([vectors.commit_ES256K.cid, vectors.empty_index_cid])
})

test('records follow in the order of the index, with those that are the same repeated, and others read them', async () => {
  const random = new Random(1605)
  const records = new Map<string, Block>()
  for (let i = 0; i < 300; i++)
    records.set(
      `com.example.${random.of(['note', 'z', 'thread'])}/${'x'.repeat(random.below(40))}${i}`,
      recordOf(`text ${random.below(200)}`),
    )
  const index = Object.fromEntries([...records].map(([path, { cid }]) => [path, cid]))
  const archive = await archiveOf(index, async function* (paths) {
    for (const path of paths) yield [records.get(path)!]
  })
  const { roots, blocks } = await blocksOf(archive)
  const order = [...records.keys()].sort(
    (a, b) => a.length - b.length || Buffer.compare(Buffer.from(a), Buffer.from(b)),
  )
  expect(blocks.map(({ cid }) => String(cid))).toEqual([
    ...roots,
    ...order.map((path) => String(records.get(path)!.cid)),
  ])
  const read = decode(blocks[1]!.bytes) as Record<string, Cid>
  expect(Object.keys(read)).toEqual(order)
  const library = await readWithLibrary(archive)
  expect(library.roots.map(String)).toEqual(roots)
  expect(library.blocks.size).toBe(new Set(blocks.map(({ cid }) => String(cid))).size)
  expect(decode(blocks[0]!.bytes) as unknown).toEqual({ ...ofVectors } as unknown as DataObject)
})

test('a long index is encoded in pieces, and is the same', async () => {
  const { cid } = recordOf('of all paths')
  const paths = Array.from({ length: 5500 }, (_, i) => `com.example.note/${i}`)
  const cids = Object.fromEntries(paths.map((path) => [path, cid]))
  let pauses = 0
  const index = new SpaceIndex()
  for (const path of paths.toSorted()) index.add(path, cid)
  const chunks: Uint8Array[] = []
  for await (const chunk of spaceArchive(ofVectors, index, null, async () => void pauses++)) chunks.push(chunk)
  const { blocks } = await blocksOf(Buffer.concat(chunks))
  expect(Buffer.from(blocks[1]!.bytes)).toEqual(Buffer.from(encode(cids)))
  expect(pauses).toBeGreaterThanOrEqual(6)
  // It is in memory as a whole nowhere.
  expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(blocks[1]!.bytes.length / 3)
})
