/** Archives of strangers: what is taken, and everything that is not. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ImportedRepo, type ImportedPage } from '../../../src/features/data/sync/imported-repo.ts'
import { Refusal } from '../../../src/http/errors.ts'
import { encode } from '../../../src/protocol/cbor.ts'
import { cidOfBlob, cidOfCbor } from '../../../src/protocol/cid.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { archiveOf, blockOf, packed, post } from '../../support/archive.ts'

const dir = mkdtempSync(join(tmpdir(), 'holdfast-import-'))
afterAll(() => rmSync(dir, { recursive: true }))

const did = 'did:plc:7iza6de2dwap2sbkpav7c6c6' as Did
const rev = '3jzfcijpj2z2a'
const key = signingKey('p256', new Uint8Array(32).fill(7))
const many = Object.fromEntries(
  Array.from({ length: 4500 }, (_, i) => [`app.bsky.feed.post/${i.toString(36).padStart(13, '0')}`, post(`post ${i}`)]),
)

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(bytes: Uint8Array, chunkBytes = 4096): Promise<{ repo: ImportedRepo; pages: ImportedPage[] }> {
  const repo = await ImportedRepo.receive(did, inChunks(bytes, chunkBytes), dir)
  try {
    const pages: ImportedPage[] = []
    for await (const page of repo.pages()) pages.push(page)
    return { repo, pages }
  } finally {
    repo.close()
  }
}

const refusal = async (bytes: Uint8Array): Promise<Refusal> => {
  const error = await read(bytes).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(Refusal)
  return error as Refusal
}

test('a whole repository is taken in pages, every block once, in the order in which it is stored', async () => {
  const archive = archiveOf(did, rev, many, key)
  for (const chunkBytes of [100, 65_536]) {
    const { repo, pages } = await read(archive.bytes, chunkBytes)
    expect(repo.root.equals(archive.root)).toBe(true)
    expect(pages.length).toBeGreaterThan(1)
    const cids = pages.flatMap(({ nodes, records }) => [...nodes, ...records].map(({ cid }) => cid.toString()))
    expect(cids.toSorted()).toEqual(
      archive.blocks
        .slice(1)
        .map(({ cid }) => cid.toString())
        .toSorted(),
    )
    expect(pages.flatMap(({ records }) => records.map(({ path }) => path))).toEqual(Object.keys(many).toSorted())
    for (const { nodes } of pages) {
      const order = nodes.map(({ cid }) => Buffer.from(cid.bytes).toString('hex'))
      expect(order).toEqual(order.toSorted())
    }
  }
  expect(readdirSync(dir)).toEqual([])
})

test('an empty repository is one', async () => {
  const { pages } = await read(archiveOf(did, rev, {}, key).bytes)
  expect(pages.flatMap(({ records }) => records)).toEqual([])
  expect(pages.flatMap(({ nodes }) => nodes)).toHaveLength(1)
})

test('blocks in any order, repeated, or beside the tree do not matter, and the last are left out', async () => {
  const archive = archiveOf(did, rev, many, key)
  const stray = blockOf(post('not in the tree'))
  const { pages } = await read(packed(archive.root, [stray, ...archive.blocks.toReversed()]).bytes)
  const cids = pages.flatMap(({ nodes, records }) => [...nodes, ...records].map(({ cid }) => cid.toString()))
  expect(cids).toHaveLength(archive.blocks.length - 1)
  expect(cids).not.toContain(stray.cid.toString())
})

test('references to blobs are found, in the new shape and in the old one', async () => {
  const [blob, old] = [cidOfBlob(Buffer.from('a')), cidOfBlob(Buffer.from('b'))]
  const image = { image: { $type: 'blob', ref: blob, mimeType: 'image/png', size: 1 } }
  const archive = archiveOf(
    did,
    rev,
    {
      'app.bsky.feed.post/a': post('x', { embed: [image, image] }),
      'app.bsky.actor.profile/self': {
        $type: 'app.bsky.actor.profile',
        avatar: { cid: old.toString(), mimeType: 'image/png' },
      },
    },
    key,
  )
  const { pages } = await read(archive.bytes)
  const records = pages.flatMap((page) => page.records)
  expect(Object.fromEntries(records.map(({ path, blobs }) => [path, blobs]))).toEqual({
    'app.bsky.feed.post/a': [blob.toString()],
    'app.bsky.actor.profile/self': [old.toString()],
  })
})

const PATH = 'app.bsky.feed.post/a'
const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0]))

test.each([
  ['an object with more than 10000 members', { a: [members(10_000)] }, { a: [members(10_001)] }],
  [
    'more than 100000 lists, objects, links and byte strings',
    { a: Array(99_998).fill([]) }, // beside this list and the record itself
    { a: Array(99_998).fill([]), b: new Uint8Array(0) },
  ],
])('a record with %s is refused, and told so; one at the bound is taken', async (excess, largest, larger) => {
  const archived = (more: object) => archiveOf(did, rev, { [PATH]: post('x', more as never) }, key).bytes
  const { pages } = await read(archived(largest))
  expect(pages.flatMap(({ records }) => records)).toHaveLength(1)
  const { status, message } = await refusal(archived(larger))
  expect([status, message]).toEqual([400, `The record at '${PATH}' has ${excess}`])
  expect(readdirSync(dir)).toEqual([])
})

describe('refused is', () => {
  const archive = archiveOf(did, rev, many, key)
  const [commit, ...others] = archive.blocks
  const bytes = Buffer.from(archive.bytes)
  const without = (index: number) => packed(archive.root, archive.blocks.toSpliced(index, 1)).bytes
  const withCommit = (fields: Record<string, unknown>) => {
    const changed = blockOf({
      did,
      version: 3,
      data: archive.data,
      rev,
      prev: null,
      sig: new Uint8Array(64),
      ...fields,
    } as never)
    return packed(changed.cid, [changed, ...others]).bytes
  }
  const withRecord = (path: string, record: never) => archiveOf(did, rev, { [path]: record }, key).bytes
  const headed = (header: Uint8Array, rest = bytes.subarray(1 + bytes[0]!)) =>
    Buffer.concat([Buffer.from([header.length]), header, rest])
  const large = Buffer.concat([bytes.subarray(0, 1 + bytes[0]!), Buffer.from([0xff, 0xff, 0xff, 0x7f])])

  const broken: [string, Uint8Array, number?][] = [
    ['nothing', new Uint8Array(0)],
    ['text', Buffer.from('this is not an archive at all, whatever its type says')],
    ['an archive that ends in a block', bytes.subarray(0, -10)],
    ['an archive that ends in a length', Buffer.concat([bytes, Buffer.from([0x80])])],
    ['an archive that ends after the header', bytes.subarray(0, 1 + bytes[0]!)],
    ['a header without roots', headed(encode({ roots: [], version: 1 }))],
    ['a header with two roots', headed(encode({ roots: [archive.root, others[0]!.cid], version: 1 }))],
    ['a header of another version', headed(encode({ roots: [archive.root], version: 2 }))],
    ['a header that is no map', headed(encode([archive.root]))],
    ['a block whose length is beyond all bounds', large],
    ['a block that is not what its CID says', Buffer.from(bytes).fill(0x41, bytes.length - 20)],
    ['an archive without its root', without(0)],
    ['an archive without a node', without(1)],
    ['an archive without a record', without(archive.blocks.length - 1)],
    ['a root that is a record', packed(others.at(-1)!.cid, archive.blocks).bytes],
    ['a root that is a node', packed(others[0]!.cid, archive.blocks).bytes],
    ['a commit of version 2', withCommit({ version: 2 })],
    ['a commit without a signature', withCommit({ sig: null })],
    ['a commit with a bad revision', withCommit({ rev: 'now' })],
    ['a commit whose data is a record', withCommit({ data: others.at(-1)!.cid })],
    ['a commit whose data is itself missing', withCommit({ data: cidOfCbor(Buffer.from('x')) })],
    ['a repository of somebody else', archiveOf('did:plc:otherotherotherotherothe', rev, many, key).bytes, 403],
    ['a record that is a number', withRecord('app.bsky.feed.post/a', 7 as never)],
    ['a record of more than 1 MiB', withRecord('app.bsky.feed.post/a', post('x'.repeat(1024 ** 2)) as never)],
    ['a record without a type', withRecord('app.bsky.feed.post/a', { text: 'x' } as never)],
    ['a collection that is no NSID', withRecord('post/a', post('x') as never)],
    ['a record key that is none', withRecord('app.bsky.feed.post/..', post('x') as never)],
  ]
  test.each(broken)('%s', async (_, archived, status = 400) => {
    expect(await refusal(archived)).toMatchObject({ status, name: status === 400 ? 'InvalidRequest' : 'Forbidden' })
    expect(commit!.cid.equals(archive.root)).toBe(true)
    expect(readdirSync(dir)).toEqual([])
  })

  test('an archive with any one byte changed', async () => {
    const small = Buffer.from(archiveOf(did, rev, { 'app.bsky.feed.post/a': post('x') }, key).bytes)
    for (let at = 0; at < small.length; at++) {
      const damaged = Buffer.from(small)
      damaged[at]! ^= 0x01
      await refusal(damaged)
    }
  })
})

test('an archive may repeat a record at many paths, but not without end', async () => {
  const large = { $type: 'org.example.note', text: 'x'.repeat(500_000) }
  const repeated = (times: number) =>
    archiveOf(
      did,
      rev,
      Object.fromEntries(
        Array.from({ length: times }, (_, i) => [`org.example.note/${String(i).padStart(4, '0')}`, large]),
      ),
      key,
    ).bytes
  const { pages } = await read(repeated(100))
  expect(pages.flatMap(({ records }) => records)).toHaveLength(100)
  const endless = repeated(10_000)
  expect(endless.length).toBeLessThan(2_000_000)
  expect(await refusal(endless)).toMatchObject({ status: 400, message: 'CAR repeats large records too often' })
})
