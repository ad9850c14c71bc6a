import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BlockFile } from '../../src/platform/block-file.ts'
import { Spool } from '../../src/platform/spool.ts'
import { cidOfCbor } from '../../src/protocol/cid.ts'

const dir = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
afterAll(() => rmSync(dir, { recursive: true }))

const filled = (length: number, byte: number) => new Uint8Array(length).fill(byte)
const openFiles = () => readdirSync('/proc/self/fd').length

test.each([0, 10, 100])('what is spooled comes out again, %p chunks of 64 KiB', async (count) => {
  const before = openFiles()
  const spool = new Spool(dir)
  for (let i = 0; i < count; i++) spool.write(filled(65_536, i))
  expect(spool.size).toBe(count * 65_536)
  expect(readdirSync(dir)).toEqual([])
  const bytes = Buffer.from(await new Response(spool.stream()).arrayBuffer())
  expect(bytes.equals(Buffer.concat(Array.from({ length: count }, (_, i) => filled(65_536, i))))).toBe(true)
  expect(openFiles()).toBe(before)
})

test('a stream that is given up, or never begun, lets go of its file', async () => {
  const before = openFiles()
  for (const reads of [0, 1]) {
    const spool = new Spool(dir)
    for (let i = 0; i < 100; i++) spool.write(filled(65_536, i))
    const reader = spool.stream().getReader()
    for (let i = 0; i < reads; i++) await reader.read()
    await reader.cancel()
  }
  expect(openFiles()).toBe(before)
})

test('blocks are found by their CID, whatever their number and size', () => {
  const file = new BlockFile(dir)
  const blocks = Array.from({ length: 20_000 }, (_, i) => {
    const bytes = Buffer.from(`block ${i} `.padEnd(i % 100 === 0 ? 5000 : 20 + (i % 300), 'x'))
    return { cid: cidOfCbor(bytes), bytes }
  })
  const large = filled(700_000, 7)
  blocks.push({ cid: cidOfCbor(large), bytes: Buffer.from(large) })
  for (const block of blocks) file.add(block)
  for (const block of blocks.slice(0, 100)) file.add(block)
  expect(file.count).toBe(blocks.length)
  for (const { cid, bytes } of blocks) expect(bytes.equals(file.get(cid)!)).toBe(true)
  expect(file.get(cidOfCbor(filled(1, 1)))).toBeNull()
  expect(readdirSync(dir)).toEqual([])
  file.close()
})
