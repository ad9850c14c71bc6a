/** Before the collector deletes: references that do not say what the records say. */
import { expect, test } from 'bun:test'
import { correctClocks } from '../../../src/features/data/blobs/blob-store.ts'
import { insertReferences } from '../../../src/features/data/blobs/reference-store.ts'
import { parseCid } from '../../../src/protocol/cid.ts'
import type { Tid } from '../../../src/protocol/identifiers.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { BLOB_NOT_FOUND, randomBytes, SERVED, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { useUploaders } from '../../support/blob-world.ts'
import { beforeRead } from '../../support/interruptions.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'

const GRACE_SECS = 60

const { pds, stored, alice, bob } = useUploaders({ tempTtlSecs: GRACE_SECS })

const gc = () => pds.runSweep('blob-gc')
let records = 0
const publish = async (
  who: Uploader,
  bytes = randomBytes(100),
): Promise<{ blob: Blob; cid: string; record: string }> => {
  const blob = await who.upload(bytes)
  const record = `a.b.c/${++records}`
  await who.refer(record, blob)
  return { blob, cid: blob.ref.$link, record }
}
const loseReference = async (cid: string) => {
  await pds.lose('blob_reference', { cid })
  await pds.damage('blob', { cid }, { unreferenced_at: 1 })
}

test('a reference that got lost is found again in the record, and its blob is not deleted', async () => {
  const { cid } = await publish(alice)
  await gc()
  await loseReference(cid)
  expect(await gc()).toMatchObject({ swept: 0, errors: 0, mended: 1 })
  pds.clock.advance({ secs: GRACE_SECS * 2 })
  expect(await gc()).toMatchObject({ swept: 0, mended: 0 })
  expect(await alice.sees(cid)).toEqual(SERVED)
})

test('a reference without its record goes, and the grace of its blob starts then', async () => {
  const blob = await alice.upload(randomBytes(101))
  const cid = blob.ref.$link
  await pds.ctx.db.transaction(async (tx) => {
    await insertReferences(tx, alice.did, '3k22222222222' as Tid, [{ record: 'zz.b.c/gone', cid }])
    await correctClocks(tx, alice.did, pds.clock.now())
  })
  await publish(alice)
  pds.clock.advance({ secs: GRACE_SECS * 2 })
  expect(await gc()).toMatchObject({ mended: 1, swept: 0 })
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
  expect(stored.has(cid)).toBe(true)
  pds.clock.advance({ secs: GRACE_SECS + 1 })
  expect(await gc()).toMatchObject({ swept: 1 })
  await stored.removalsEnd()
  expect(stored.has(cid)).toBe(false)
})

test('a reference in the shape of old records, which an import brings, keeps its blob', async () => {
  const { ref, mimeType } = await alice.upload(randomBytes(106))
  const old = { $type: 'a.b.c', picture: { cid: ref.$link, mimeType } }
  await alice.importRecords({ 'a.b.c/old': old })
  expect(await gc()).toMatchObject({ mended: 0, errors: 0 })
  pds.clock.advance({ secs: GRACE_SECS * 2 })
  await gc()
  expect(await alice.sees(ref.$link)).toEqual(SERVED)
})

test('a clock that starts during a pass does not end in it, even without a grace', async () => {
  await pds.restart({ blobs: { tempTtlSecs: 0 } })
  const { cid } = await publish(alice)
  await pds.lose('record', { path: `a.b.c/${records}` })
  expect(await gc()).toMatchObject({ mended: 1, swept: 0 })
  pds.clock.advance({ secs: 1 })
  expect(await gc()).toMatchObject({ swept: 1 })
  await stored.removalsEnd()
  expect(stored.has(cid)).toBe(false)
  await pds.restart()
})

test('an account whose records cannot be read keeps everything, and others do not suffer', async () => {
  const { cid } = await publish(alice)
  const abandoned = (await alice.upload(randomBytes(102))).ref.$link
  const other = (await bob.upload(randomBytes(103))).ref.$link
  await loseReference(cid)
  const [row] = await pds.rows('record', { path: `a.b.c/${records}` })
  const broken = Buffer.concat([Buffer.from([0xff]), row!.value])
  await pds.damage('record', { path: `a.b.c/${records}` }, { value: broken })
  pds.clock.advance({ secs: GRACE_SECS * 2 })
  expect(await gc()).toMatchObject({ swept: 1, errors: 1 })
  await stored.removalsEnd()
  expect([cid, abandoned, other].map((each) => stored.has(each))).toEqual([true, true, false])
  await pds.damage('record', { path: `a.b.c/${records}` }, { value: row!.value })
  expect(await gc()).toMatchObject({ swept: 1, errors: 0, mended: 1 })
  await stored.removalsEnd()
  expect([cid, abandoned].map((each) => stored.has(each))).toEqual([true, false])
})

test('a referenced file that is here already is adopted, with its type', async () => {
  const bytes = randomBytes(104)
  const { cid } = await publish(bob, bytes)
  await pds.damage('blob', { cid }, { mime_type: 'video/mp4' })
  const { cid: mine, record } = await publish(alice)
  // As an import leaves it: the record is here, the blob not yet.
  const [row] = await pds.rows('record', { path: record })
  await pds.damage('record', { path: record }, { value: swapCid(row!.value, mine, cid) })
  expect(await gc()).toMatchObject({ mended: 1, adopted: 1, errors: 0 })
  const response = await alice.read(cid)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  expect(
    (await request(`${pds.url}/xrpc/com.atproto.repo.listMissingBlobs`, { headers: bearer(alice.token) })).body.blobs,
  ).toEqual([])
})

test('a referenced file is not adopted while moderators withhold it from the readers of another account', async () => {
  const { cid } = await publish(bob, randomBytes(105))
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: bob.did, cid }
  const takeDown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: bearer(ADMIN_TOKEN),
      json: { subject, takedown: { applied } },
    })
  expect((await takeDown(true)).status).toBe(200)
  const { cid: mine, record } = await publish(alice)
  // As an import leaves it.
  const [row] = await pds.rows('record', { path: record })
  await pds.damage('record', { path: record }, { value: swapCid(row!.value, mine, cid) })
  expect(await gc()).toMatchObject({ mended: 1, adopted: 0, errors: 0 })
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
  expect((await takeDown(false)).status).toBe(200)
  await publish(alice)
  expect(await gc()).toMatchObject({ adopted: 1 })
  expect(await alice.sees(cid)).toEqual(SERVED)
})

/** Alice's newest record refers to a blob of Bob's, as an import leaves it. */
async function lackOf(cid: string): Promise<void> {
  const { cid: mine, record } = await publish(alice)
  const [row] = await pds.rows('record', { path: record })
  await pds.damage('record', { path: record }, { value: swapCid(row!.value, mine, cid) })
}

/** Bytes of a blob that is to be adopted were read. */
const bytesRead = { words: 'AS "mimeType" FROM blob WHERE cid =', number: 1 }

test('a file that moderators withhold while its bytes are read is not adopted', async () => {
  const { cid } = await publish(bob, randomBytes(107))
  await lackOf(cid)
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: bob.did, cid }
  const withheld = { headers: bearer(ADMIN_TOKEN), json: { subject, takedown: { applied: true } } }
  using _ = beforeRead(pds, bytesRead, () => request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, withheld))
  expect(await gc()).toMatchObject({ mended: 1, adopted: 0, errors: 0 })
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
})

test('what is wrong far into an account of many blobs is put right', async () => {
  const blobs = await Promise.all(Array.from({ length: 230 }, () => alice.upload(randomBytes(16))))
  await alice.refer(`a.b.c/${++records}`, ...blobs)
  const [unclaimed, stopped] = blobs
    .map(({ ref }) => ref.$link)
    .toSorted()
    .slice(-2) as [string, string]
  await pds.lose('blob', { cid: unclaimed })
  await pds.damage('blob', { cid: stopped }, { unreferenced_at: 1 })
  expect(await gc()).toMatchObject({ swept: 0, adopted: 1, mended: 0, errors: 0 })
  expect(await alice.sees(unclaimed)).toEqual(SERVED)
  expect(await alice.sees(stopped)).toEqual(SERVED)
})

function swapCid(value: Uint8Array, from: string, to: string): Uint8Array {
  const bytes = (cid: string) => Buffer.from(parseCid(cid)!.bytes)
  const changed = Buffer.from(value)
  const at = changed.indexOf(bytes(from))
  expect(at).toBeGreaterThan(0)
  changed.set(bytes(to), at)
  return changed
}

test('a file is not adopted for an account that is deleted while its bytes are read', async () => {
  const { cid } = await publish(bob, randomBytes(108))
  await lackOf(cid)
  using _ = beforeRead(pds, bytesRead, () =>
    request(`${pds.url}/xrpc/com.atproto.admin.deleteAccount`, {
      headers: bearer(ADMIN_TOKEN),
      json: { did: alice.did },
    }),
  )
  expect(await gc()).toMatchObject({ adopted: 0 })
  expect(await pds.count('blob', { did: alice.did })).toBe(0)
})
