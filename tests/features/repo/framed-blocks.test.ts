/** An archive whose sections the database frames is the archive that is written block by block. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { StoredNodes } from '../../../src/features/data/repo/node-store.ts'
import {
  framedRecords,
  LAST_PATH,
  listRecordHeads,
  recordBlocksSince,
} from '../../../src/features/data/repo/record-store.ts'
import { stageBlocks, stageRepo } from '../../../src/features/data/repo/repo-staging.ts'
import { carOf, writeCar, type Block } from '../../../src/protocol/car.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Tid } from '../../../src/protocol/identifiers.ts'
import { leastCost } from '../../support/least-cost.ts'
import { useWorld } from '../../support/world.ts'

// The first server of a process may have to start PostgreSQL.
setDefaultTimeout(60_000)

const { pds } = useWorld()

const rev = '3labcdefghijk' as Tid
const blockOf = (bytes: Uint8Array): Block => ({ cid: cidOfCbor(bytes), bytes })
const randomBlock = (length: number) => blockOf(crypto.getRandomValues(new Uint8Array(length)))
const pathOf = (i: number) => `com.example.thing/${String(i).padStart(6, '0')}`

/** A repository of these records, or of these nodes: its id. */
const storedRecords = (blocks: readonly Block[]) =>
  stored({
    nodes: [],
    records: blocks.map(({ cid, bytes }, i) => ({ path: pathOf(i), cid, subject: null, value: bytes })),
  })
const storedNodes = (blocks: readonly Block[]) => stored({ nodes: blocks, records: [] })

const stored = (parts: Parameters<typeof stageBlocks>[3]) =>
  stageRepo(pds.ctx, rev, async (id) => {
    await stageBlocks(pds.ctx, id, rev, parts)
    return id
  })

async function chunksOf(pages: AsyncIterable<Uint8Array | readonly Block[]>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for await (const chunk of writeCar(null, pages)) chunks.push(chunk)
  return chunks
}

test('lengths on both sides of a longer varint, every byte, and a block that stands twice', async () => {
  const lengths = [1, 91, 92, 93, 16_347, 16_348, 70_000, 1_000_000]
  const everyByte = blockOf(Uint8Array.from({ length: 256 }, (_, i) => i))
  const blocks = [everyByte, blockOf(new Uint8Array(300)), ...lengths.map(randomBlock), everyByte]
  expect(Buffer.concat(await chunksOf(framedRecords(pds.ctx.db, await storedRecords(blocks))))).toEqual(
    Buffer.from(carOf(null, blocks)),
  )
})

test.each([0, 1, 63, 64, 65, 1000])('%i blocks of like size', async (count) => {
  const blocks = Array.from({ length: count }, () => randomBlock(250))
  expect(Buffer.concat(await chunksOf(framedRecords(pds.ctx.db, await storedRecords(blocks))))).toEqual(
    Buffer.from(carOf(null, blocks)),
  )
  const nodes = new StoredNodes(pds.ctx.db, await storedNodes(blocks))
  const inOrder = blocks.toSorted((a, b) => Buffer.compare(a.cid.bytes, b.cid.bytes))
  expect(Buffer.concat(await chunksOf(nodes.sections()))).toEqual(Buffer.from(carOf(null, inOrder)))
})

const misframed = async (id: number): Promise<number> =>
  (await listRecordHeads(pds.ctx.db, id, { after: '', upTo: LAST_PATH, limit: 100 })).filter(
    ({ isMisframed }) => isMisframed,
  ).length

test('what a row keeps is held against its block', async () => {
  const id = await storedRecords([1, 91, 92, 300, 16_347, 16_348, 70_000, 1_000_000].map(randomBlock))
  expect(await misframed(id)).toBe(0)
  await pds.damage('record', { repo_id: id }, { framing: null })
  expect(await misframed(id)).toBe(8)
  await pds.damage('record', { repo_id: id }, { framing: new Uint8Array([0x80, 1]) })
  expect(await misframed(id)).toBe(7) // it is right for a block of 92 bytes
})

test('chunks keep their size when blocks are large, and statements are few when they are small', async () => {
  const { db } = pds.ctx
  const large = await storedRecords(Array.from({ length: 100 }, () => randomBlock(50_000)))
  const sizes = (await chunksOf(framedRecords(db, large))).map(({ length }) => length)
  expect(Math.max(...sizes.slice(2))).toBeLessThan(500_000) // the header, and a chunk of rows of unknown size
  const small = await storedRecords(Array.from({ length: 2000 }, () => randomBlock(250)))
  expect(await leastCost(db, () => chunksOf(framedRecords(db, small)))).toBeLessThan(25)
  const few = await storedRecords(Array.from({ length: 50 }, () => randomBlock(250)))
  expect(await leastCost(db, () => chunksOf(framedRecords(db, few)))).toBe(2) // where they end, and what they are
})

test('large blocks after many small ones are read a few at a time, whole and since a revision', async () => {
  const { db } = pds.ctx
  const blocks = [
    ...Array.from({ length: 600 }, () => randomBlock(100)),
    ...Array.from({ length: 12 }, () => randomBlock(900_000)),
  ]
  const id = await stored({
    nodes: blocks,
    records: blocks.map(({ cid, bytes }, i) => ({ path: pathOf(i), cid, subject: null, value: bytes })),
  })
  const nodes = new StoredNodes(db, id)
  const inOrder = blocks.toSorted((a, b) => Buffer.compare(a.cid.bytes, b.cid.bytes))
  const MEBIBYTE = 1024 ** 2
  for (const [read, wanted] of [
    [() => framedRecords(db, id), blocks],
    [() => nodes.sections(), inOrder],
  ] as const) {
    const chunks = await chunksOf(read())
    expect(Buffer.concat(chunks).equals(Buffer.from(carOf(null, wanted)))).toBe(true)
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(1.5 * MEBIBYTE)
  }
  const before = '3laaaaaaaaaaa' as Tid
  for (const [read, wanted] of [
    [() => recordBlocksSince(db, id, before), blocks],
    [() => nodes.since(before), inOrder],
  ] as const) {
    const pages = await Array.fromAsync(read())
    const cidsOf = (some: readonly Block[]) => some.map(({ cid }) => cid.toString())
    expect(cidsOf(pages.flat())).toEqual(cidsOf(wanted))
    for (const page of pages)
      expect(page.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(4.5 * MEBIBYTE)
    expect(pages.length).toBeLessThan(20)
  }
  expect(await Array.fromAsync(recordBlocksSince(db, id, rev))).toEqual([[], []])
})
