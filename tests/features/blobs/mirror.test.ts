/** The mirror, the restore at boot and the scrub, against a real S3 server on a wire that fails. */
import { beforeEach, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes, SERVED, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const { pds, bucket } = useWorld({
  bucket: true,
  config: ({ bucket }) => ({ blobMirror: bucket.mirror }),
  options: { alone: 'nodes have no folder that could be mirrored' },
})
const alice = setUp(() => Uploader.join(pds, 'alice'))
beforeEach(async () => {
  await settle()
})

const pathOf = (cid: string) => join(pds.dataDir, 'blobs', cid.slice(-2), cid)
const keyOf = (cid: string) => `blobs/${cid}`
const onDisk = (cid: string) => existsSync(pathOf(cid)) && new Uint8Array(readFileSync(pathOf(cid)))
const mirror = () => pds.runSweep('blob-mirror')
const scrub = () => pds.runSweep('blob-scrub')
const forget = (cid: string) => pds.lose('blob', { cid })
let records = 0
const publish = async (bytes: Uint8Array): Promise<Blob> => {
  const blob = await alice.upload(bytes)
  await alice.refer(`a.b.c/${records++}`, blob)
  return blob
}

/** Everything copied, nothing surplus on either side. */
async function settle(): Promise<void> {
  for (const entry of readdirSync(join(pds.dataDir, 'blobs'), { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && (await pds.count('blob', { cid: entry.name })) === 0)
      rmSync(join(entry.parentPath, entry.name))
  }
  await mirror()
  await mirror()
  expect(await mirror()).toMatchObject({ swept: 0, errors: 0 })
}

test('a pass copies what the bucket lacks, and the next one has nothing to do', async () => {
  const bytes = randomBytes(150_000)
  const { ref } = await publish(bytes)
  expect(await mirror()).toMatchObject({ uploaded: 1, deleted: 0, errors: 0, swept: 1 })
  expect(bucket.read(keyOf(ref.$link))).toEqual(bytes)
  expect(await mirror()).toMatchObject({ uploaded: 0, deleted: 0, errors: 0 })
})

test('many copies, on two pages of the list, are compared with many rows, one by one', async () => {
  const blobs = await Promise.all(Array.from({ length: 130 }, () => alice.upload(randomBytes(16))))
  expect(await mirror()).toMatchObject({ uploaded: 130, errors: 0 })
  expect(await mirror()).toMatchObject({ swept: 0, errors: 0 })
  const lacking = blobs[77]!.ref.$link
  await bucket.write(keyOf(lacking), randomBytes(3))
  expect(await mirror()).toMatchObject({ uploaded: 1, deleted: 0, errors: 0 })
  expect(bucket.read(keyOf(lacking))).toHaveLength(16)
})

test('a copy nobody owns any more goes after two passes have found it so', async () => {
  const { ref } = await publish(randomBytes(100))
  await mirror()
  await forget(ref.$link)
  await bucket.write('blobs/not-a-cid', randomBytes(5))
  await bucket.write('elsewhere/mine', randomBytes(5))
  expect(await mirror()).toMatchObject({ deleted: 0 })
  expect(bucket.keys()).toContain(keyOf(ref.$link))
  expect(await mirror()).toMatchObject({ deleted: 2, errors: 0 })
  expect(bucket.keys()).not.toContain(keyOf(ref.$link))
  expect(bucket.keys()).toContain('elsewhere/mine')
})

test('a copy whose owner came back between two passes stays', async () => {
  const bytes = randomBytes(101)
  const { ref } = await publish(bytes)
  await mirror()
  await forget(ref.$link)
  await mirror()
  await alice.upload(bytes)
  expect(await mirror()).toMatchObject({ deleted: 0 })
  expect(bucket.keys()).toContain(keyOf(ref.$link))
})

test('an empty table and a full bucket: nothing is deleted, however often it looks', async () => {
  await publish(randomBytes(102))
  await mirror()
  const before = bucket.keys()
  const kept = await pds.rows('blob')
  await pds.lose('blob')
  for (let pass = 0; pass < 3; pass++) expect(await mirror()).toMatchObject({ deleted: 0, errors: 1 })
  expect(bucket.keys()).toEqual(before)
  await pds.plant('blob', kept)
  // Two whole passes are counted from here.
  const { ref } = await publish(randomBytes(103))
  await mirror()
  await forget(ref.$link)
  expect(await mirror()).toMatchObject({ deleted: 0 })
})

test('a damaged file is never copied over, and never as a good one', async () => {
  const bytes = randomBytes(5000)
  const { ref } = await publish(bytes)
  const rotten = bytes.slice()
  rotten[0]! ^= 1
  writeFileSync(pathOf(ref.$link), rotten)
  expect(await mirror()).toMatchObject({ uploaded: 0, errors: 1 })
  expect(bucket.keys()).not.toContain(keyOf(ref.$link))
  writeFileSync(pathOf(ref.$link), bytes)
  expect(await mirror()).toMatchObject({ uploaded: 1, errors: 0 })
})

test('a copy of another size is replaced', async () => {
  const bytes = randomBytes(5001)
  const { ref } = await publish(bytes)
  await bucket.write(keyOf(ref.$link), bytes.subarray(0, 100))
  expect(await mirror()).toMatchObject({ uploaded: 1 })
  expect(bucket.read(keyOf(ref.$link))).toEqual(bytes)
})

test('half an upload is no copy, and the next pass makes it whole', async () => {
  const bytes = randomBytes(3_000_000)
  const { ref } = await publish(bytes)
  bucket.fault = 'half-upload'
  expect(await mirror()).toMatchObject({ uploaded: 0, errors: 1 })
  expect(bucket.keys()).not.toContain(keyOf(ref.$link))
  bucket.fault = null
  expect(await mirror()).toMatchObject({ uploaded: 1, errors: 0 })
  expect(bucket.read(keyOf(ref.$link))).toEqual(bytes)
})

test('a bucket that is down, or cannot list, loses nothing and leaves the last report alone', async () => {
  const { ref } = await publish(randomBytes(104))
  await mirror()
  await forget(ref.$link)
  await mirror()
  const last = (await pds.ctx.sweeps.lastPasses()).get('blob-mirror')
  for (const fault of ['down', 'list'] as const) {
    bucket.fault = fault
    expect(await thrownBy(mirror())).toThrow()
    expect(bucket.keys()).toContain(keyOf(ref.$link))
  }
  expect((await pds.ctx.sweeps.lastPasses()).get('blob-mirror')).toEqual(last)
})

test('the scrub finds nothing where nothing is wrong', async () => {
  expect(await scrub()).toEqual({ swept: 0, errors: 0, flagged: 0, healed: 0, stale: 0 })
})

test('a flipped bit, a cut file and a missing one are healed from the mirror', async () => {
  const contents = [1, 2, 3].map(() => randomBytes(2000))
  const [flipped, cut, missing] = (await Promise.all(contents.map(publish))).map((blob) => blob.ref.$link) as [
    string,
    string,
    string,
  ]
  await mirror()
  const rotten = contents[0]!.slice()
  rotten[1999]! ^= 128
  writeFileSync(pathOf(flipped), rotten)
  truncateSync(pathOf(cut), 100)
  rmSync(pathOf(missing))
  expect(await scrub()).toMatchObject({ healed: 3, flagged: 0, errors: 0 })
  expect([flipped, cut, missing].map(onDisk)).toEqual(contents)
  for (const cid of [flipped, cut, missing]) expect(await alice.sees(cid)).toEqual(SERVED)
})

test('a copy that is wrong, cut short or not to be had heals nothing', async () => {
  const good = randomBytes(2_000_000)
  const { ref } = await publish(good)
  await mirror()
  rmSync(pathOf(ref.$link))
  bucket.fault = 'half-download'
  expect(await scrub()).toMatchObject({ healed: 0, flagged: 1, errors: 1 })
  bucket.fault = 'down'
  expect(await scrub()).toMatchObject({ healed: 0, flagged: 1, errors: 1 })
  bucket.fault = null
  await bucket.write(keyOf(ref.$link), randomBytes(2_000_000))
  expect(await scrub()).toMatchObject({ healed: 0, flagged: 1, errors: 0 })
  expect(onDisk(ref.$link)).toBe(false)
  expect(readdirSync(join(pds.dataDir, 'blobs', '.incoming'))).toEqual([])
  await bucket.write(keyOf(ref.$link), good)
  expect(await scrub()).toMatchObject({ healed: 1, flagged: 0 })
})

test('a file nobody owns is told of and never deleted', async () => {
  const { ref } = await publish(randomBytes(105))
  await forget(ref.$link)
  expect(await scrub()).toMatchObject({ flagged: 1, healed: 0 })
  expect(await scrub()).toMatchObject({ flagged: 1, healed: 0 })
  expect(onDisk(ref.$link)).not.toBe(false)
})

test('a file that waits for its removal is no finding', async () => {
  const { ref } = await alice.upload(randomBytes(107))
  await forget(ref.$link)
  await pds.plant('blob_removal', { cid: ref.$link })
  writeFileSync(join(pds.dataDir, 'blobs', 'stray.txt'), 'not in a shard')
  expect(await scrub()).toMatchObject({ flagged: 0 })
  await pds.runSweep('blob-gc')
  expect(onDisk(ref.$link)).toBe(false)
})

test('what an upload left behind goes after an hour', async () => {
  const left = join(pds.dataDir, 'blobs', '.incoming', 'left.tmp')
  writeFileSync(left, 'half')
  const minutesAgo = (minutes: number) => new Date(pds.clock.now() - minutes * 60_000)
  utimesSync(left, minutesAgo(59), minutesAgo(59))
  expect(await scrub()).toMatchObject({ stale: 0 })
  utimesSync(left, minutesAgo(61), minutesAgo(61))
  expect(await scrub()).toMatchObject({ stale: 1 })
  expect(existsSync(left)).toBe(false)
})

test('without healing, and without a mirror, damage is only told of', async () => {
  const { ref } = await publish(randomBytes(106))
  await mirror()
  for (const changes of [{ blobScrub: { autoHeal: false } }, { blobMirror: { ...bucket.mirror, bucket: null } }]) {
    await pds.restart(changes)
    rmSync(pathOf(ref.$link), { force: true })
    expect(await scrub()).toMatchObject({ healed: 0, flagged: 1 })
    expect(onDisk(ref.$link)).toBe(false)
  }
  await pds.restart()
  expect(onDisk(ref.$link)).not.toBe(false)
})

test('a start brings back missing and cut files before the port opens, and goes on without what it cannot have', async () => {
  const contents = [1, 2, 3].map(() => randomBytes(3000))
  const [missing, cut, lost] = (await Promise.all(contents.map(publish))).map((blob) => blob.ref.$link) as [
    string,
    string,
    string,
  ]
  await mirror()
  await pds.stop()
  rmSync(pathOf(missing))
  truncateSync(pathOf(cut), 5)
  rmSync(pathOf(lost))
  await bucket.write(keyOf(lost), randomBytes(3000))
  await pds.restart()
  expect(await alice.sees(missing)).toEqual(SERVED)
  expect(await alice.sees(cut)).toEqual(SERVED)
  expect(await alice.sees(lost)).toMatchObject({ status: 503 })
  expect(onDisk(lost)).toBe(false)
  await forget(lost)

  await pds.stop()
  rmSync(pathOf(missing))
  bucket.fault = 'down'
  await pds.restart()
  expect(await alice.sees(missing)).toMatchObject({ status: 503 })
  expect(await alice.sees(cut)).toEqual(SERVED)
  bucket.fault = null
  await scrub()
  expect(await alice.sees(missing)).toEqual(SERVED)
})
