import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { cidOfCbor, type Cid } from '../../protocol/cid.ts'
import { BlockFile } from './block-file.ts'

const sizes = [1, 40, 400, 900, 1000, 5000, 70_000, 300_000]

function filled(count: number) {
  const file = new BlockFile(tmpdir())
  const blocks: { cid: Cid; bytes: Uint8Array }[] = []
  const add = (n: number) => {
    const bytes = new Uint8Array(n % 50 === 0 ? sizes[(n / 50) % sizes.length]! : 300 + (n % 200)).fill(n)
    const cid = cidOfCbor(Buffer.from(`${n}`))
    file.add(Buffer.concat([cid.bytes, bytes]))
    blocks.push({ cid, bytes })
  }
  for (let n = 0; n < count; n++) add(n)
  return { file, blocks, add }
}

const orders: Record<string, (n: number, count: number) => number> = {
  'in the order of the file': (n) => n,
  backwards: (n, count) => count - 1 - n,
  'here and there': (n, count) => (n * 617) % count,
}

test.each(Object.keys(orders))('blocks are found %s, and those added in between', (order) => {
  const { file, blocks, add } = filled(1000)
  for (let n = 0; n < 1000; n++) {
    const { cid, bytes } = blocks[orders[order]!(n, 1000)]!
    expect(Buffer.compare(file.get(cid)!, bytes)).toBe(0)
    if (n % 10 !== 0) continue
    add(1000 + n)
    const { cid: added, bytes: latest } = blocks.at(-1)!
    expect(Buffer.compare(file.get(added)!, latest)).toBe(0)
  }
  expect(file.get(cidOfCbor(Buffer.from('another')))).toBeNull()
  expect(file.count).toBe(1100)
  file.close()
})

test('blocks whose digests begin alike take no longer than others', () => {
  const file = new BlockFile(tmpdir())
  const cidAt = (n: number): Uint8Array => {
    const cid = Uint8Array.from(cidOfCbor(Buffer.from(`${n}`)).bytes)
    cid.set(n % 2 === 0 ? [0, 0, 0, 0] : [n >> 9, 0, 0, 0], 4)
    return cid
  }
  const COUNT = 40_000
  for (let n = 0; n < COUNT; n++) file.add(Buffer.concat([cidAt(n), Buffer.from(`${n}`)]))
  expect(file.count).toBe(COUNT)
  file.close()
})
