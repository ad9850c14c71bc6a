/** The mirror, the scrub, and files that are fetched from the mirror, against a real S3 server on a wire that fails. */
import { beforeEach, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bearer, request } from '../../support/clients/http.ts'
import { BLOB_NOT_FOUND, randomBytes, SERVED, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
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
const faults = () => pds.rows('blob_fault')
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
  const rotten = randomBytes(106)
  for (const changes of [{ blobScrub: { autoHeal: false } }, { blobMirror: { ...bucket.mirror, bucket: null } }]) {
    await pds.restart(changes)
    writeFileSync(pathOf(ref.$link), rotten)
    expect(await scrub()).toMatchObject({ healed: 0, flagged: 1 })
    expect(onDisk(ref.$link)).toEqual(rotten)
  }
  await pds.stop()
  rmSync(pathOf(ref.$link))
  await pds.restart()
  await until(() => onDisk(ref.$link) !== false)
})

/** Stop, lose files, and start while the mirror is as it is. */
async function startWithout(...cids: string[]): Promise<void> {
  await pds.stop()
  for (const cid of cids) rmSync(pathOf(cid))
  await pds.restart()
}

test('after a start, missing and cut files are fetched from the mirror, and what it lacks or has damaged is not', async () => {
  const contents = [1, 2, 3].map(() => randomBytes(3000))
  const [missing, cut, lost] = (await Promise.all(contents.map(publish))).map((blob) => blob.ref.$link) as [
    string,
    string,
    string,
  ]
  await mirror()
  await pds.stop()
  truncateSync(pathOf(cut), 5)
  await bucket.write(keyOf(lost), randomBytes(3000))
  await startWithout(missing, lost)
  await until(() => onDisk(missing) !== false && (onDisk(cut) as Uint8Array).length === 3000)
  expect([missing, cut].map(onDisk)).toEqual(contents.slice(0, 2))
  expect(await alice.sees(lost)).toMatchObject({ status: 503 })
  expect(onDisk(lost)).toBe(false)
  await forget(lost)
})

test('the port opens before anything is fetched, and what is read is fetched first, once for all readers', async () => {
  const cids: string[] = []
  for (let i = 0; i < 6; i++) cids.push((await publish(randomBytes(3000))).ref.$link)
  await mirror()
  // The pass goes by the CIDs, and waits for the first ones.
  const [read, ...others] = cids.toSorted().toReversed() as [string, ...string[]]
  const held: (() => void)[] = []
  bucket.intercept = (request, response, key) => {
    if (request.method !== 'GET' || !others.some((cid) => key.endsWith(cid))) return false
    held.push(() => bucket.pass(request, response))
    return true
  }
  await startWithout(...cids)
  await until(() => held.length === 4)
  const before = bucket.requests.length
  expect(await Promise.all([1, 2, 3].map(() => alice.sees(read)))).toEqual([SERVED, SERVED, SERVED])
  expect(bucket.requests.slice(before)).toEqual([`GET /copies/${keyOf(read)}`])
  expect(cids.map(onDisk).filter((bytes) => bytes !== false)).toHaveLength(1)
  bucket.intercept = null
  for (const pass of held) pass()
  await until(() => cids.every((cid) => onDisk(cid) !== false))
})

test('a file that is lost or damaged while the server runs is replaced when it is read', async () => {
  const contents = [1, 2, 3].map(() => randomBytes(300_000))
  const cids = (await Promise.all(contents.map(publish))).map((blob) => blob.ref.$link)
  const [lost, damaged, told] = cids as [string, string, string]
  await mirror()
  rmSync(pathOf(lost))
  rmSync(pathOf(told))
  const rotten = contents[1]!.slice()
  rotten[0]! ^= 1
  writeFileSync(pathOf(damaged), rotten)
  bucket.fault = 'down'
  await scrub()
  expect((await faults()).map(({ fault }) => fault).toSorted()).toEqual(['damaged', 'missing', 'missing'])
  bucket.fault = null
  for (const cid of cids) expect(await alice.sees(cid)).toEqual(SERVED)
  expect(cids.map(onDisk)).toEqual(contents)
  expect(await faults()).toEqual([])
})

test('a blob that is taken down while it is fetched is not sent', async () => {
  const { ref } = await publish(randomBytes(3000))
  const cid = ref.$link
  await mirror()
  rmSync(pathOf(cid))
  const held: (() => void)[] = []
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'GET' || !key.endsWith(cid)) return false
    held.push(() => bucket.pass(incoming, response))
    return true
  }
  const read = alice.sees(cid)
  await until(() => held.length === 1)
  const takeDown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      headers: bearer(ADMIN_TOKEN),
      json: {
        subject: { $type: 'com.atproto.admin.defs#repoBlobRef', did: alice.did, cid },
        takedown: { applied },
      },
    })
  expect((await takeDown(true)).status).toBe(200)
  bucket.intercept = null
  held[0]!()
  expect(await read).toEqual(BLOB_NOT_FOUND)
  await takeDown(false)
  expect(await alice.sees(cid)).toEqual(SERVED)
})

test('a mirror that does not respond at the start is asked again', async () => {
  const cids: string[] = []
  for (let i = 0; i < 3; i++) cids.push((await publish(randomBytes(3000))).ref.$link)
  await mirror()
  bucket.fault = 'down'
  await startWithout(...cids)
  for (const cid of cids) expect(await alice.sees(cid)).toMatchObject({ status: 503 })
  bucket.fault = null
  await until(() => cids.every((cid) => onDisk(cid) !== false))
  for (const cid of cids) expect(await alice.sees(cid)).toEqual(SERVED)
})

test('without healing, a damaged file stays as it is, and a missing one is fetched', async () => {
  const contents = [1, 2].map(() => randomBytes(3000))
  const [lost, damaged] = (await Promise.all(contents.map(publish))).map((blob) => blob.ref.$link) as [string, string]
  await mirror()
  await pds.restart({ blobScrub: { autoHeal: false } })
  rmSync(pathOf(lost))
  const rotten = contents[1]!.slice()
  rotten[0]! ^= 1
  writeFileSync(pathOf(damaged), rotten)
  expect(await alice.sees(lost)).toEqual(SERVED)
  expect(await alice.sees(damaged)).toMatchObject({ status: 503 })
  await pds.restart()
  expect(await alice.sees(damaged)).toEqual(SERVED)
})
