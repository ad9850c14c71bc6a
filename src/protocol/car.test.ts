import { describe, expect, test } from 'bun:test'
import { blocksToCarFile, readCar as oracleRead, BlockMap } from '@atproto/repo'
import { CID } from 'multiformats/cid'
import { type Block, carOf, readCar, readSections, writeCar } from './car.ts'
import { encode, type Data } from './cbor.ts'
import { cidOfBlob, cidOfCbor } from './cid.ts'
import { Malformed } from './malformed.ts'
import { errorOf } from '../../tests/support/thrown.ts'

const blockOf = (value: Data): Block => {
  const bytes = encode(value)
  return { cid: cidOfCbor(bytes), bytes }
}
const randomBlocks = (count: number, maxBytes: number) =>
  Array.from({ length: count }, (_, i) =>
    blockOf([i, crypto.getRandomValues(new Uint8Array(Math.floor(Math.random() * maxBytes)))]),
  )

/** The same bytes, arriving in pieces of `size`. */
function* inPieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function readAll(source: Iterable<Uint8Array>, bounds?: Parameters<typeof readCar>[1]) {
  const car = await readCar(source, bounds)
  const blocks: Block[] = []
  for await (const page of car.pages) blocks.push(...page)
  return { roots: car.roots, blocks }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<{ bytes: Uint8Array; sizes: number[] }> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return { bytes: Buffer.concat(all), sizes: all.map((chunk) => chunk.length) }
}

describe('writing', () => {
  test('the reference reads what we write, streamed or whole', async () => {
    const blocks = randomBlocks(200, 3000)
    const root = blocks[7]!.cid
    const streamed = await collect(writeCar(root, [blocks.slice(0, 50), [], blocks.slice(50)]))
    expect(streamed.bytes).toEqual(Buffer.from(carOf(root, blocks)))
    const theirs = await oracleRead(streamed.bytes)
    expect(theirs.roots.map(String)).toEqual([root.toString()])
    expect(theirs.blocks.size).toBe(200)
    for (const block of blocks) expect(theirs.blocks.get(CID.decode(block.cid.bytes))).toEqual(block.bytes)
  })

  test('chunks stay at or below 64 KiB, but for a block that is larger', async () => {
    const small = randomBlocks(300, 2000)
    const large = blockOf(new Uint8Array(200_000))
    const { sizes, bytes } = await collect(writeCar(small[0]!.cid, [[...small, large, ...small]]))
    expect(sizes.filter((size) => size > 64 * 1024)).toHaveLength(1)
    expect(sizes.length).toBeLessThan(bytes.length / 50_000)
    expect((await readAll([bytes])).blocks).toHaveLength(601)
  })

  test('asks for its pages one at a time', async () => {
    let asked = 0
    async function* pages() {
      for (; asked < 50; asked++) yield randomBlocks(40, 4000)
    }
    const stream = writeCar(blockOf(1).cid, pages())
    await stream.next()
    expect(asked).toBeLessThan(5)
    await stream.return(undefined)
  })
})

describe('reading', () => {
  const blocks = randomBlocks(60, 700)
  const car = carOf(blocks[0]!.cid, blocks)

  test('gives the same blocks however the bytes arrive', async () => {
    for (const size of [1, 2, 3, 37, 1000, 64 * 1024, car.length]) {
      const read = await readAll(inPieces(car, size))
      expect(read.roots.map(String)).toEqual([blocks[0]!.cid.toString()])
      expect(read.blocks.map((block) => block.bytes)).toEqual(blocks.map((block) => block.bytes))
    }
  })

  test('reads what the reference writes, raw blocks too', async () => {
    const map = new BlockMap()
    const raw = new TextEncoder().encode('raw')
    map.set(CID.decode(cidOfBlob(raw).bytes), raw)
    for (const block of blocks) map.set(CID.decode(block.cid.bytes), block.bytes)
    const theirs = await blocksToCarFile(CID.decode(blocks[3]!.cid.bytes), map)
    const read = await readAll([theirs])
    expect(read.roots[0]?.equals(blocks[3]!.cid)).toBe(true)
    expect(read.blocks).toHaveLength(61)
  })

  test('hands out blocks that do not change as reading goes on', async () => {
    const source = await readCar(inPieces(car, 500))
    const kept: Block[] = []
    for await (const page of source.pages) kept.push(...page)
    for (const block of kept) expect(cidOfCbor(block.bytes).equals(block.cid)).toBe(true)
  })

  test('gives the same in sections', async () => {
    for (const size of [1, 500, car.length]) {
      const { roots, pages } = await readSections(inPieces(car, size))
      const sections: Buffer[] = []
      for await (const page of pages) for (const section of page) sections.push(Buffer.from(section))
      expect(roots[0]?.equals(blocks[0]!.cid)).toBe(true)
      expect(sections).toEqual(blocks.map(({ cid, bytes }) => Buffer.concat([cid.bytes, bytes])))
    }
  })

  test('refuses every truncation, except between blocks', async () => {
    const small = carOf(blocks[0]!.cid, blocks.slice(0, 2))
    const whole = new Set([carOf(blocks[0]!.cid, []).length, carOf(blocks[0]!.cid, blocks.slice(0, 1)).length])
    for (let length = 0; length < small.length; length++) {
      const reading = readAll([small.subarray(0, length)])
      if (whole.has(length)) expect((await reading).blocks.length).toBeLessThan(2)
      else expect(await errorOf(reading)).toBeInstanceOf(Malformed)
    }
  })

  test('refuses a block with one changed bit', async () => {
    for (const at of [car.length - 1, carOf(blocks[0]!.cid, []).length + 10]) {
      const damaged = car.slice()
      damaged[at]! ^= 1
      expect(await errorOf(readAll([damaged]))).toBeInstanceOf(Malformed)
    }
  })

  const header = (value: Data) => {
    const bytes = encode(value)
    return [bytes.length, ...bytes]
  }
  const good = header({ roots: [blocks[0]!.cid], version: 1 })
  const refused: [string, number[]][] = [
    ['an empty stream', []],
    ['another version', header({ roots: [], version: 2 })],
    ['no roots', header({ version: 1 })],
    ['roots that are no links', header({ roots: ['x'], version: 1 })],
    ['a header that is no map', header([1])],
    ['a header of null', header(null)],
    ['a header that is no CBOR', [2, 0xff, 0xff]],
    ['a header beyond its bound', [0xff, 0x7f, 0xa0]],
    ['a length of too many bytes', [...good, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ['a length not in its shortest form', [...good, 0x80, 0x00]],
    ['an empty section', [...good, 0]],
    ['a section too short for a CID', [...good, 3, 1, 0x71, 0x12]],
    ['a CID of another kind', [...good, 38, 1, 0x70, 0x12, 32, ...new Uint8Array(34)]],
  ]
  for (const [what, bytes] of refused) {
    test(`refuses ${what}`, async () =>
      expect(await errorOf(readAll([new Uint8Array(bytes)]))).toBeInstanceOf(Malformed))
  }

  test('refuses a block beyond the bound at its length, before its bytes arrive', async () => {
    let pulled = 0
    function* endless() {
      yield new Uint8Array([...good, 0x80, 0x80, 0x80, 0x01]) // a block of 2 MiB
      for (; pulled < 100; pulled++) yield new Uint8Array(64 * 1024)
    }
    expect(await errorOf(readAll(endless(), { maxHeaderBytes: 1000, maxBlockBytes: 100_000 }))).toBeInstanceOf(
      Malformed,
    )
    expect(pulled).toBe(0)
  })
})
