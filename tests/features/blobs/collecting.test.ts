/** The garbage collector, seen by those whose blobs it takes. */
import { expect, test } from 'bun:test'
import { deleteAccountBlobs, removeBlobFiles } from '../../../src/features/data/blobs/blob-removal.ts'
import { setBlobTakedown } from '../../../src/features/data/blobs/blobs.ts'
import { bearer } from '../../support/clients/http.ts'
import { randomBytes, SERVED, Uploader } from '../../support/clients/uploader.ts'
import { useUploaders } from '../../support/blob-world.ts'

const GRACE_SECS = 60

const { pds, stored, alice, bob } = useUploaders({ tempTtlSecs: GRACE_SECS })

const gc = () => pds.runSweep('blob-gc')
const isThere = async (who: Uploader, cid: string) => (await who.read(cid, bearer(who.token))).status === 200

test('many uploads of several accounts go in one pass, and nothing is left to be removed', async () => {
  const uploads = await Promise.all(Array.from({ length: 23 }, (_, i) => (i % 2 ? alice : bob).upload(randomBytes(90))))
  pds.clock.advance({ secs: GRACE_SECS + 5 })
  expect(await gc()).toMatchObject({ swept: 23, errors: 0 })
  await stored.removalsEnd()
  expect(uploads.filter(({ ref }) => stored.has(ref.$link))).toEqual([])
  expect(await pds.rows('blob_removal', {}, ['cid'])).toEqual([])
})

test('an upload nobody references is gone after its grace, and not before', async () => {
  const cid = (await alice.upload(randomBytes(100))).ref.$link
  pds.clock.advance({ secs: GRACE_SECS - 5 })
  expect(await gc()).toMatchObject({ swept: 0, errors: 0 })
  expect(await isThere(alice, cid)).toBe(true)
  pds.clock.advance({ secs: 6 })
  expect(await gc()).toMatchObject({ swept: 1, errors: 0 })
  expect(await isThere(alice, cid)).toBe(false)
  await stored.removalsEnd()
  expect(stored.has(cid)).toBe(false)
})

test('a blob that loses its last reference has the same grace again', async () => {
  const blob = await alice.upload(randomBytes(101))
  const cid = blob.ref.$link
  await alice.refer('a.b.c/1', blob)
  pds.clock.advance({ secs: GRACE_SECS * 10 })
  await gc()
  expect(await alice.sees(cid)).toEqual(SERVED)
  await alice.refer('a.b.c/1')
  pds.clock.advance({ secs: GRACE_SECS - 5 })
  await gc()
  expect(await isThere(alice, cid)).toBe(true)
  pds.clock.advance({ secs: 6 })
  expect(await gc()).toMatchObject({ swept: 1 })
  await stored.removalsEnd()
  expect(stored.has(cid)).toBe(false)
})

test('a repetition of an upload renews its grace', async () => {
  const bytes = randomBytes(102)
  const cid = (await alice.upload(bytes)).ref.$link
  pds.clock.advance({ secs: GRACE_SECS - 5 })
  await alice.upload(bytes)
  pds.clock.advance({ secs: 10 })
  await gc()
  expect(await isThere(alice, cid)).toBe(true)
})

test('a file stays as long as one account has it', async () => {
  const bytes = randomBytes(103)
  const cid = (await alice.upload(bytes)).ref.$link
  await bob.refer('a.b.c/1', await bob.upload(bytes))
  pds.clock.advance({ secs: GRACE_SECS + 1 })
  await gc()
  expect(await isThere(alice, cid)).toBe(false)
  expect(await bob.sees(cid)).toEqual(SERVED)
  await bob.refer('a.b.c/1')
  pds.clock.advance({ secs: GRACE_SECS + 1 })
  await gc()
  await stored.removalsEnd()
  expect(stored.has(cid)).toBe(false)
})

test('a taken-down blob is kept: it must not be uploaded anew', async () => {
  const bytes = randomBytes(104)
  const cid = (await alice.upload(bytes)).ref.$link
  await pds.ctx.db.transaction((tx) => setBlobTakedown(tx, { did: alice.did, cid, ref: 'mod' }))
  pds.clock.advance({ secs: GRACE_SECS * 10 })
  expect(await gc()).toMatchObject({ swept: 0 })
  expect((await alice.post(bytes)).status).toBe(400)
})

test('a purge removes what only that account had, and a crash before the files leaves work for the next pass', async () => {
  const shared = randomBytes(105)
  const own = (await bob.upload(randomBytes(106))).ref.$link
  const both = (await bob.upload(shared)).ref.$link
  await alice.refer('a.b.c/9', await alice.upload(shared))
  const purge = () => pds.ctx.db.transaction((tx) => deleteAccountBlobs(tx, bob.did, pds.clock.now()))
  expect(await purge()).toEqual([own])
  expect(stored.has(own)).toBe(true)
  await gc()
  await stored.removalsEnd()
  expect(stored.has(own)).toBe(false)
  expect(await alice.sees(both)).toEqual(SERVED)

  const again = (await bob.upload(randomBytes(107))).ref.$link
  await removeBlobFiles(pds.ctx, await purge())
  await stored.removalsEnd()
  expect(stored.has(again)).toBe(false)
})

test('what is uploaded again while its file waits for removal stays', async () => {
  const bytes = randomBytes(108)
  await bob.upload(bytes)
  await pds.ctx.db.transaction((tx) => deleteAccountBlobs(tx, bob.did, pds.clock.now()))
  const cid = (await alice.upload(bytes)).ref.$link
  await gc()
  expect(await isThere(alice, cid)).toBe(true)
  expect(await pds.rows('blob_removal', {}, ['cid'])).toEqual([])
})

test('uploads and passes at the same time never lose what was answered', async () => {
  await pds.restart({ blobs: { tempTtlSecs: 0 } })
  const contents = Array.from({ length: 8 }, () => randomBytes(2000))
  for (let round = 0; round < 5; round++) {
    const [uploaded] = await Promise.all([Promise.all(contents.map(async (bytes) => alice.upload(bytes))), gc(), gc()])
    const kept = await Promise.all(
      uploaded.map(async (blob) => ({ row: await isThere(alice, blob.ref.$link), file: stored.has(blob.ref.$link) })),
    )
    // With no grace a pass may take an upload at once, but then all of it. In a bucket the object stays for a while.
    for (const { row, file } of kept) expect(file).toBe(row || pds.bucket !== null)
  }
  expect(stored.incoming()).toEqual([])
})
