/** What commits do to blobs, on a real database. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  applyBlobChanges,
  blobCounts,
  replaceBlobReferences,
  setBlobTakedown,
  spaceBlobs,
} from '../../../src/features/data/blobs/blobs.ts'
import { unthrottled, type Throttle } from '../../../src/base/pace.ts'
import { deleteAccountBlobs } from '../../../src/features/data/blobs/blob-removal.ts'
import type { AddedReference } from '../../../src/features/data/blobs/blob-references.ts'
import { correctClocks, deleteAllBlobs } from '../../../src/features/data/blobs/blob-store.ts'
import { deleteRemovals } from '../../../src/features/data/blobs/removal-store.ts'
import { allMissing, listReferencedCids, someMissing } from '../../../src/features/data/blobs/reference-store.ts'
import { inPieces, sql, sqlRows, type Database, type Tx } from '../../../src/platform/database/database.ts'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { openSqlite } from '../../../src/platform/database/sqlite.ts'
import type { Did, SpaceUri, Tid } from '../../../src/protocol/identifiers.ts'
import { testConfig } from '../../support/servers/config.ts'
import { errorOf } from '../../support/thrown.ts'

const did = 'did:plc:alice' as Did
const bob = 'did:plc:bob' as Did
const dir = mkdtempSync(join(tmpdir(), 'holdfast-references-'))
const config = testConfig({ dataDir: dir, port: 1, publicUrl: 'http://localhost:1' })
let db: Database

beforeAll(async () => {
  db = openSqlite({ path: join(dir, 'test.db'), strict: true })
  await migrate(db, migrations, 0)
})
afterAll(async () => {
  await db.close()
  rmSync(dir, { recursive: true })
})
beforeEach(async () => {
  await db.run(sql`DELETE FROM blob_reference`)
  await db.run(sql`DELETE FROM blob`)
})

const upload = (cid: string, owner = did) =>
  db.run(
    sql`INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at) VALUES (${owner}, ${cid}, 'image/png', 7, 1, 1)`,
  )
const to = (cid: string, record = 'a/1', changes: Partial<AddedReference> = {}): AddedReference => ({
  record,
  cid,
  mimeType: 'image/png',
  size: 7,
  validated: true,
  ...changes,
})
const commit = (added: AddedReference[], replaced: string[] = [], { rev = 'r1', now = 100 } = {}) =>
  db.transaction((tx) => applyBlobChanges(tx, { did, rev: rev as Tid, now, replaced, added }))
const clock = async (cid: string) =>
  (await db.get<{ at: number | null }>(
    sql`SELECT unreferenced_at AS at FROM blob WHERE did = ${did} AND cid = ${cid}`,
  ))!.at
/** Turns of the event loop during the work of a transaction. */
async function turnsOf(work: (tx: Tx) => Promise<unknown>): Promise<number> {
  let turns = 0
  let timer = setImmediate(function turn() {
    turns++
    timer = setImmediate(turn)
  })
  const during = await db.transaction(async (tx) => {
    turns = 0
    await work(tx)
    return turns
  })
  clearImmediate(timer)
  return during
}

const cids = async (since?: string) => (await listReferencedCids(db, { did, since, limit: 100 })).cids

test('a commit without blobs costs no statement, one with blobs two', async () => {
  await upload('x')
  await upload('y')
  const counted = async (work: () => Promise<void>) => {
    const before = db.counters.statements
    await work()
    return db.counters.statements - before
  }
  expect(await counted(() => commit([]))).toBe(0)
  expect(await counted(() => commit([to('x'), to('y')]))).toBe(2)
  expect(await counted(() => commit([], ['a/1']))).toBe(2)
  expect(await counted(() => commit([], ['a/1']))).toBe(1)
})

test('a blob is taken out of its grace by a reference, and put back when the last one goes', async () => {
  await upload('x')
  await commit([to('x', 'a/1'), to('x', 'a/2')])
  expect(await clock('x')).toBeNull()
  await commit([], ['a/1'], { now: 200 })
  expect(await clock('x')).toBeNull()
  await commit([], ['a/2'], { now: 300 })
  expect(await clock('x')).toBe(300)
})

test('a commit that moves the last reference leaves the clock stopped', async () => {
  await upload('x')
  await commit([to('x', 'a/1')])
  await commit([to('x', 'a/2')], ['a/1'], { now: 200 })
  expect(await clock('x')).toBeNull()
  expect(await cids()).toEqual(['x'])
})

test('missing, foreign and taken-down blobs are refused, and nothing of the commit stays', async () => {
  await upload('x')
  await upload('theirs', bob)
  await upload('down')
  await db.transaction((tx) => setBlobTakedown(tx, { did, cid: 'down', ref: 'mod-1' }))
  for (const cid of ['nowhere', 'theirs', 'down']) {
    expect(await errorOf(commit([to('x'), to(cid)]))).toMatchObject({
      status: 400,
      name: 'BlobNotFound',
      message: `Could not find blob: ${cid}`,
    })
  }
  expect(await cids()).toEqual([])
  expect(await clock('x')).toBe(1)
})

test('what a record says of a blob must be true until it is permanent, and after that if its type is known', async () => {
  await upload('x')
  expect(await errorOf(commit([to('x', 'a/1', { mimeType: 'image/gif', validated: false })]))).toMatchObject({
    name: 'InvalidMimeType',
    message: 'Referenced Mimetype does not match stored blob. Expected: image/png, Got: image/gif',
  })
  expect(await errorOf(commit([to('x', 'a/1', { size: 8 })]))).toMatchObject({ name: 'InvalidSize' })
  await commit([to('x', 'a/1')])
  await commit([to('x', 'a/2', { size: 8, validated: false })])
  expect(await errorOf(commit([to('x', 'a/3', { size: 8 })]))).toMatchObject({ name: 'InvalidSize' })
  // An update that keeps the reference of an imported record is no new claim.
  await commit([to('x', 'a/2', { size: 8 })], ['a/2'])
})

test('imported references come before their blobs, and make them permanent when they arrive', async () => {
  await upload('early')
  const references = [
    { record: 'a/2', cid: 'late' },
    { record: 'a/1', cid: 'late' },
    { record: 'a/1', cid: 'early' },
  ]
  await db.transaction((tx) =>
    replaceBlobReferences(tx, {
      did,
      rev: 'r5' as Tid,
      now: 9,
      batches: [references.slice(0, 1), references.slice(1)],
    }),
  )
  expect(await clock('early')).toBeNull()
  expect(await someMissing(db, { did, limit: 10 })).toEqual({ missing: [{ record: 'a/1', cid: 'late' }], next: null })
  expect(await blobCounts.exact({ db, config }, did)).toEqual({ expected: 2, imported: 1, bytes: 7 })
  await db.transaction((tx) => replaceBlobReferences(tx, { did, rev: 'r6' as Tid, now: 50, batches: [] }))
  expect(await clock('early')).toBe(50)
})

const numbered = (count: number) => Array.from({ length: count }, (_, i) => String(i).padStart(6, '0'))

/** References to as many blobs, of which the account has all but those with the numbers in `missing`. */
async function referTo(count: number, missing: readonly number[]): Promise<void> {
  const references = numbered(count).flatMap((cid) => [
    { record: `a/${cid}`, cid },
    { record: `b/${cid}`, cid },
  ])
  await db.transaction((tx) => replaceBlobReferences(tx, { did, rev: 'r1' as Tid, now: 1, batches: [references] }))
  await db.run(sql`
    INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at)
    SELECT DISTINCT did, cid, 'image/png', 7, 1, 1 FROM blob_reference`)
  for (const number of missing) await db.run(sql`DELETE FROM blob WHERE cid = ${String(number).padStart(6, '0')}`)
}

test('a missing blob is found behind thousands that are there, in steps that are bounded', async () => {
  await referTo(5000, [1, 4500, 4501])
  const first = { record: 'a/000001', cid: '000001' }
  const later = [4500, 4501].map((number) => ({ record: `a/00${number}`, cid: `00${number}` }))
  expect(await someMissing(db, { did, limit: 1 })).toMatchObject({ missing: [first] })
  const before = db.counters.statements
  const found = await someMissing(db, { did, cursor: first.cid, limit: 1 })
  expect(found).toEqual({ missing: [later[0]!], next: '004500' })
  // One for each thousand.
  expect(db.counters.statements - before).toBe(5)
  expect(await someMissing(db, { did, cursor: '004500', limit: 1 })).toEqual({ missing: [later[1]!], next: null })
  expect((await Array.fromAsync(allMissing(db, did))).flat()).toEqual([first, ...later])
  expect((await Array.fromAsync(allMissing(db, did, '000001'))).flat()).toEqual(later)
})

test('a search for missing blobs gives up after a while, and says where to continue', async () => {
  await referTo(20_900, [20_500])
  const given = await someMissing(db, { did, limit: 10 })
  expect(given).toEqual({ missing: [], next: '019999' })
  expect(await someMissing(db, { did, cursor: given.next!, limit: 10 })).toEqual({
    missing: [{ record: 'a/020500', cid: '020500' }],
    next: null,
  })
})

test('blobs are counted once, however many records refer to them, in steps that are bounded', async () => {
  const references = [
    ...numbered(12_000).map((record) => ({ record, cid: 'of many' })),
    ...numbered(7000).map((cid) => ({ record: 'a/1', cid })),
  ]
  await db.transaction((tx) => replaceBlobReferences(tx, { did, rev: 'r1' as Tid, now: 1, batches: [references] }))
  let turns = 0
  const turn = () => {
    turns++
    timer = setImmediate(turn)
  }
  let timer = setImmediate(turn)
  expect((await blobCounts.exact({ db, config }, did)).expected).toBe(7001)
  clearImmediate(timer)
  expect(turns).toBeGreaterThan(2)
})

test('thousands of references are replaced in turns, so that others can read meanwhile', async () => {
  const batch = (rev: string) => [Array.from({ length: 12_000 }, (_, i) => ({ record: `a/${i}`, cid: `${rev} ${i}` }))]
  for (const rev of ['r7', 'r8']) {
    let turns = 0
    let isDone = false
    const count = () => {
      turns++
      if (!isDone) setImmediate(count)
    }
    const replaced = db.transaction(async (tx) => {
      turns = 0
      await replaceBlobReferences(tx, { did, rev: rev as Tid, now: 9, batches: batch(rev) })
      return turns
    })
    setImmediate(count)
    // Two while inserting and one after it; two more while deleting those before.
    expect(await replaced).toBeGreaterThanOrEqual(rev === 'r7' ? 3 : 5)
    isDone = true
    expect((await blobCounts.exact({ db, config }, did)).expected).toBe(12_000)
  }
  await db.transaction((tx) => replaceBlobReferences(tx, { did, rev: 'r9' as Tid, now: 9, batches: [] }))
})

test('thousands of blobs are put right and deleted in turns, so that others can read meanwhile', async () => {
  const many = Array.from({ length: 12_000 }, (_, i) => [did, `c${String(i).padStart(5, '0')}`, 'image/png', 7, 1, 1])
  for (const rows of inPieces(many))
    await db.run(
      sql`INSERT INTO blob (did, cid, mime_type, size, uploaded_at, unreferenced_at) VALUES ${sqlRows(rows)}`,
    )
  await commit([to('c00003'), to('c11999')])
  await db.run(sql`UPDATE blob SET unreferenced_at = CASE WHEN cid IN ('c00003', 'c11999') THEN 1 END`)
  expect(await turnsOf((tx) => correctClocks(tx, did, 100))).toBeGreaterThanOrEqual(2)
  expect([await clock('c00003'), await clock('c11999'), await clock('c00002')]).toEqual([null, null, 100])
  expect(await db.get(sql`SELECT count(unreferenced_at) AS count FROM blob`)).toEqual({ count: 11_998 })
  expect(await turnsOf((tx) => deleteAllBlobs(tx, did, 1))).toBeGreaterThanOrEqual(2)
  expect(await db.get(sql`SELECT count(*) AS count FROM blob`)).toEqual({ count: 0 })
  expect(await db.get(sql`SELECT count(*) AS count FROM blob_removal`)).toEqual({ count: 12_000 })
  await db.run(sql`DELETE FROM blob_removal`)
})

test('references of records in a space are written and deleted in turns', async () => {
  const space = `at://${did}/space/test.forum.space/${'s'.repeat(400)}` as SpaceUri
  const many = Array.from({ length: 2000 }, (_, i) => `c${i}`)
  for (const cid of many) await upload(cid)
  const change = (rev: string, replaced: string[], added: AddedReference[]) =>
    turnsOf((tx) =>
      spaceBlobs.change(tx, { did, space, rev: rev as Tid, now: 100, replaced, replacedReferences: 5000, added }),
    )
  const record = `test.forum.note/${'r'.repeat(400)}`
  const all = many.map((cid) => to(cid, record))
  // Three for the blobs and, of 256 KiB each, some for the references.
  expect(await change('r1', [], all)).toBeGreaterThanOrEqual(15)
  expect(await spaceBlobs.countReferences(db, did, space, unthrottled)).toBe(2000)
  const [first] = all
  expect(await change('r2', [record], [first!])).toBeGreaterThanOrEqual(15)
  expect(await spaceBlobs.referencesOf(db, did, space, [record])).toEqual([{ record, cid: 'c0', rev: 'r2' as Tid }])
  expect([await clock('c0'), await clock('c1999')]).toEqual([100, 100])
  await db.run(sql`DELETE FROM space_blob_reference`)
})

test('references of records in spaces are counted in pieces, those to the same blob and those of no repository too', async () => {
  const spaceAt = (key: string) => `at://${did}/space/test.forum.space/${key}` as SpaceUri
  const space = spaceAt('counted')
  await db.run(sql`INSERT INTO space_place (did, space) VALUES (${did}, ${space})`)
  const names = Array.from({ length: 250 }, (_, i) => `m${String(i).padStart(3, '0')}`)
  for (const cid of names.slice(0, 240)) await upload(cid)
  const references = names.flatMap((cid) => Array.from({ length: 20 }, (_, i) => ({ cid, record: `a/${i}` })))
  const others = Array.from({ length: 300 }, (_, i) => spaceAt(`other${i}`))
  await db.transaction(async (tx) => {
    for (const [place, some] of [[space, references] as const, ...others.map((one) => [one, [to('m000')]] as const)])
      for (const piece of inPieces(some)) {
        const rows = piece.map(({ cid, record }) => [did, cid, place, record, 'r1'])
        await tx.run(sql`INSERT INTO space_blob_reference (did, cid, space, record, rev) VALUES ${sqlRows(rows)}`)
      }
  })
  const inPiecesOf = async (count: (throttled: Throttle) => Promise<number>) => {
    let pieces = 0
    const counted = await count((work) => {
      pieces++
      return work()
    })
    return { counted, pieces }
  }
  expect(await inPiecesOf((throttled) => spaceBlobs.countReferences(db, did, space, throttled))).toEqual({
    counted: 5000,
    pieces: 4,
  })
  expect(await inPiecesOf((throttled) => spaceBlobs.countMissing(db, did, space, throttled))).toEqual({
    counted: 10,
    pieces: 2,
  })
  const outside = await inPiecesOf((throttled) => spaceBlobs.countReferencesOutside(db, did, throttled))
  expect(outside.counted).toBe(300)
  expect(await spaceBlobs.countReferencesOutside(db, bob, unthrottled)).toBe(0)
  await db.run(sql`DELETE FROM space_blob_reference`)
  await db.run(sql`DELETE FROM space_place`)
})

test('any number of removals end at once', async () => {
  await db.run(sql`INSERT INTO blob_removal (cid, unowned_at) VALUES ('n0', 1), ('n259999', 1)`)
  const many = Array.from({ length: 260_000 }, (_, i) => `n${i}`)
  await db.transaction((tx) => deleteRemovals(tx, many))
  expect(await db.all(sql`SELECT cid FROM blob_removal`)).toEqual([])
})

test('listing follows the revision of the record that refers', async () => {
  await upload('x')
  await upload('y')
  await commit([to('x', 'a/1')], [], { rev: 'r1' })
  await commit([to('y', 'a/2')], [], { rev: 'r2' })
  expect(await cids()).toEqual(['x', 'y'])
  expect(await cids('r1')).toEqual(['y'])
  await commit([to('x', 'a/1')], ['a/1'], { rev: 'r3' })
  expect(await cids('r2')).toEqual(['x'])
})

test('a purge takes rows and references of its account alone', async () => {
  await upload('x')
  await upload('x', bob)
  await commit([to('x')])
  await upload('y')
  // Of the files only that one has no owner left.
  expect(await db.transaction((tx) => deleteAccountBlobs(tx, did, 1))).toEqual(['y'])
  expect(await blobCounts.exact({ db, config }, did)).toEqual({ expected: 0, imported: 0, bytes: 0 })
  expect(await blobCounts.exact({ db, config }, bob)).toMatchObject({ imported: 1 })
})
