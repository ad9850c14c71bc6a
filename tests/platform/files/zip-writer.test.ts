/** Archives are read by another implementation, which finds entries by the directory at the end. */
import { crc32 } from 'node:zlib'
import { expect, test } from 'bun:test'
import { contentOf, entriesOf, zipped } from '../../support/zip-reading.ts'
import { thrownBy } from '../../support/thrown.ts'

const GIB = 1024 ** 3
const MIB = 1024 ** 2
const text = (content: string) => [Buffer.from(content)]

test('entries come back with their names, times and contents, whether or not their checksums were known before', async () => {
  const modifiedAt = Date.UTC(2026, 4, 17, 13, 30, 58)
  const archive = await zipped([
    { name: 'a.txt', content: text('known'), crc32: crc32('known'), modifiedAt },
    { name: 'folder/ü.txt', content: text('unknown'), modifiedAt },
    { name: 'empty', content: [] },
  ])
  const contents = await archive.contents()
  expect([...contents].map(([name, bytes]) => [name, bytes.toString()])).toEqual([
    ['a.txt', 'known'],
    ['folder/ü.txt', 'unknown'],
    ['empty', ''],
  ])
  for await (const entry of entriesOf(await archive.open())) {
    expect(entry.crc32).toBe(crc32(contents.get(entry.fileName)!))
    if (entry.fileName !== 'empty') expect(entry.getLastModDate({ timezone: 'UTC' }).getTime()).toBe(modifiedAt)
  }
})

test('an archive without entries is an archive', async () => {
  expect((await (await zipped([])).contents()).size).toBe(0)
})

test('more entries than 16 bits can count are all found', async () => {
  const names = Array.from({ length: 70_000 }, (_, i) => `blobs/${i}`)
  const archive = await zipped(names.map((name) => ({ name, content: text(name), size: name.length })))
  const zip = await archive.open()
  const found: string[] = []
  for await (const { fileName } of entriesOf(zip)) found.push(fileName)
  expect(zip.entryCount).toBe(70_000)
  expect(found).toEqual(names)
})

test('an entry above 4 GiB, and what follows it, are found where they are', async () => {
  const zeros = new Uint8Array(MIB)
  function* large() {
    for (let i = 0; i < 4 * 1024; i++) yield zeros
    yield Buffer.from('the end')
  }
  const size = 4 * GIB + 7
  const archive = await zipped([
    { name: 'large', content: large(), size },
    { name: 'after', content: text('after it') },
  ])
  const zip = await archive.open()
  const [first, after] = await Array.fromAsync(entriesOf(zip))
  expect([first!.fileName, first!.uncompressedSize, after!.fileName]).toEqual(['large', size, 'after'])
  expect(after!.relativeOffsetOfLocalHeader).toBeGreaterThan(size)
  expect((await contentOf(zip, first!, { start: size - 7, end: size })).toString()).toBe('the end')
  expect((await contentOf(zip, after!)).toString()).toBe('after it')
})

test('content of another size or checksum than was announced ends the archive with an error', async () => {
  expect(await thrownBy(zipped([{ name: 'a', content: text('abc'), size: 4 }]))).toThrow(
    'a does not match its announced content',
  )
  expect(await thrownBy(zipped([{ name: 'a', content: text('abc'), crc32: 1 }]))).toThrow(
    'a does not match its announced content',
  )
})
