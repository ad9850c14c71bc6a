/** Blobs in a bucket: what its faults do to those who upload and read, and to the rest of the server. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { cidOfBlob, type Cid } from '../../../src/protocol/cid.ts'
import { Bucket } from '../../../src/platform/network/bucket.ts'
import { UploadInParts } from '../../../src/platform/network/bucket-uploads.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { SlowDownload } from '../../support/faults/slow-download.ts'
import { randomBytes, SERVED, Uploader } from '../../support/clients/uploader.ts'
import { useWorld } from '../../support/world.ts'
import { eventLoopTurns, until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const MIB = 1024 ** 2
/** Of a blob that is sent in two parts. */
const TWO_PARTS = 8 * MIB + 1000

let alice: Uploader
const { pds, bucket } = useWorld({ bucket: true, config: ({ bucket }) => ({ blobs: bucket.primary }) })
let accounts = 0
// Hours pass in these tests, and sessions end.
beforeEach(async () => {
  alice = await Uploader.join(pds, `alice${accounts++}`)
})
afterEach(() => {
  // A bucket that counted as lost is tried again.
  pds.clock.advance({ secs: 6 })
})

const keyOf = (cid: string) => `blobs/${cid.slice(7, 9)}/${cid}`
const cidOf = (bytes: Uint8Array) => cidOfBlob(bytes).toString()
let records = 0
const publish = async (bytes: Uint8Array): Promise<string> => {
  const blob = await alice.upload(bytes)
  await alice.refer(`a.b.c/${records++}`, blob)
  return blob.ref.$link
}
/** A write that needs no blob. */
const write = async () => {
  const json = { repo: alice.did, collection: 'a.b.c', record: { $type: 'a.b.c' } }
  const { status } = await request(`${pds.url}/xrpc/com.atproto.repo.createRecord`, {
    headers: bearer(alice.token),
    json,
  })
  expect(status).toBe(200)
}
const gc = () => pds.runSweep('blob-gc')
const scrub = (name = 'blob-scrub-full') => pds.runSweep(name)
/** Requests that `act` makes. */
const requestsOf = async (act: () => Promise<unknown>): Promise<string[]> => {
  const before = bucket.requests.length
  await act()
  return bucket.requests.slice(before)
}
/** Holds requests of a kind until they are let go. */
const hold = (wanted: (request: IncomingMessage, key: string) => boolean) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let isHeld = false
  bucket.intercept = (request, response, key) => {
    if (isHeld || !wanted(request, key)) return false
    isHeld = true
    arrive()
    void released.then(() => bucket.pass(request, response))
    return true
  }
  return { arrived, release }
}
const UNAVAILABLE = { status: 503, error: 'ServiceUnavailable' }
const LOST = { status: 502, error: 'UpstreamFailure' }

test('a pass looks for a thousand at most of the blobs that an account says it refers to', async () => {
  const blobs = Array.from({ length: 1200 }, (_, i) => cidOfBlob(Buffer.from(`nowhere ${i}`)))
  const image = (ref: Cid) => ({ $type: 'blob', ref, mimeType: 'image/png', size: 1 })
  await alice.importRecords({ 'a.b.c/many': { $type: 'a.b.c', images: blobs.map(image) } })
  expect(await requestsOf(gc)).toHaveLength(1000)
})

test('an object that nobody owns is told of once it is too old to be an upload', async () => {
  await alice.upload(randomBytes(10))
  const orphan = keyOf(cidOf(randomBytes(10)))
  await bucket.write(orphan, randomBytes(10))
  expect(await scrub()).toMatchObject({ flagged: 0, errors: 0 })
  pds.clock.advance({ secs: 3601 })
  expect(await scrub()).toMatchObject({ flagged: 1, errors: 0 })
  expect(bucket.keys()).toContain(orphan)
  bucket.delete(orphan)
})

test('a small blob is sent in one request under its own name, is looked at, and comes back', async () => {
  const bytes = randomBytes(5000)
  const cid = cidOf(bytes)
  expect(await requestsOf(() => publish(bytes))).toEqual([`PUT /copies/${keyOf(cid)}`, `HEAD /copies/${keyOf(cid)}`])
  expect(bucket.read(keyOf(cid))).toEqual(bytes)
  const response = await alice.read(cid)
  expect(response.headers.get('content-length')).toBe('5000')
  expect(await response.bytes()).toEqual(bytes)
})

test('a large blob is sent in parts, and gets its name once its digest is known', async () => {
  const bytes = randomBytes(20 * MIB)
  const cid = cidOf(bytes)
  const seen: { keys: string[]; parts: number }[] = []
  bucket.intercept = ({ method, url, headers }) => {
    if (method === 'PUT' && !headers['x-amz-copy-source'])
      seen.push({ keys: bucket.keys(), parts: Number(url!.includes('partNumber')) })
    return false
  }
  await publish(bytes)
  expect(seen.map(({ parts }) => parts)).toEqual([1, 1, 1])
  expect(seen.flatMap(({ keys }) => keys)).not.toContain(keyOf(cid))
  expect(bucket.read(keyOf(cid))).toEqual(bytes)
  expect(bucket.keys().filter((key) => key.includes('incoming'))).toEqual([])
  expect(await (await alice.read(cid)).bytes()).toEqual(bytes)
})

test('what the headers say is said without the bucket', async () => {
  const cid = await publish(randomBytes(1000))
  const ask = (headers: Record<string, string>, method = 'GET') =>
    fetch(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`, { method, headers })
  const made = await requestsOf(async () => {
    expect((await ask({ 'if-none-match': `"${cid}"` })).status).toBe(304)
    expect((await ask({ range: 'bytes=1000-' })).status).toBe(416)
    const { status, headers } = await ask({}, 'HEAD')
    expect([status, headers.get('content-length')]).toEqual([200, '1000'])
  })
  expect(made).toEqual([])
})

test('a part of a large blob is a part of the object', async () => {
  const bytes = randomBytes(3 * MIB)
  const cid = await publish(bytes)
  const ranges: unknown[] = []
  bucket.intercept = ({ headers }) => ranges.push(headers.range) === 0
  const part = await alice.read(cid, { range: 'bytes=1000000-1000999' })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 1000000-1000999/${bytes.length}`])
  expect(await part.bytes()).toEqual(bytes.subarray(1_000_000, 1_001_000))
  expect(ranges).toEqual(['bytes=1000000-1000999'])
})

test('a part is only sent of an object that is right as a whole, which is read once to see that', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const bytes = randomBytes(3 * MIB)
  const cid = await publish(bytes)
  const part = async () => {
    const before = bucket.requests.length
    const response = await alice.read(cid, { range: 'bytes=1000000-1000999' })
    const isRight =
      response.status === 206 && Buffer.from(bytes.subarray(1_000_000, 1_001_000)).equals(await response.bytes())
    return { status: response.status, isRight, requests: bucket.requests.length - before }
  }
  expect(await part()).toEqual({ status: 206, isRight: true, requests: 1 })
  const rotten = bytes.slice()
  rotten[2_000_000]! ^= 1
  await bucket.write(keyOf(cid), rotten)
  expect(await part()).toMatchObject({ status: 502, isRight: false })
  await bucket.write(keyOf(cid), bytes)
  // The server has forgotten what it knew.
  await pds.restart()
  expect(await part()).toMatchObject({ status: 206, isRight: true, requests: 5 })
  expect(await part()).toEqual({ status: 206, isRight: true, requests: 1 })
})

test('while the bucket is lost, blobs wait and everything else goes on', async () => {
  const cid = await publish(randomBytes(1000))
  for (const fault of ['down', 503, 500, 403] as const) {
    bucket.fault = fault
    const upload = await alice.post(randomBytes(100))
    expect([upload.status, upload.body.error, upload.headers.get('retry-after')]).toEqual([
      503,
      'ServiceUnavailable',
      '10',
    ])
    expect((await alice.post(randomBytes(10 * MIB))).status).toBe(503)
    expect(await alice.sees(cid)).toEqual(UNAVAILABLE)
    expect((await request(`${pds.url}/xrpc/_health`)).status).toBe(200)
    await write()
    bucket.fault = null
    pds.clock.advance({ secs: 6 })
    expect(await alice.sees(cid)).toEqual(SERVED)
  }
})

test('a bucket that is lost is left alone for a while, and nobody waits for it', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const cid = await publish(randomBytes(1000))
  bucket.fault = 500
  for (let i = 0; i < 3; i++) expect(await alice.sees(cid)).toEqual(UNAVAILABLE)
  const made = await requestsOf(async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => alice.sees(cid)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
  })
  expect(made).toEqual([])
  bucket.fault = null
  expect(await alice.sees(cid)).toEqual(UNAVAILABLE)
  pds.clock.advance({ secs: 6 })
  expect(await alice.sees(cid)).toEqual(SERVED)
  expect(pds.log.map(({ message }) => message)).toContain('the blob bucket is available again')
})

test('a bucket that stalls holds up nobody who does not need it', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const cid = await publish(randomBytes(1000))
  const held: (() => void)[] = []
  bucket.intercept = (request, response) => held.push(() => bucket.pass(request, response)) > 0
  const readers = Promise.all(Array.from({ length: 150 }, () => alice.sees(cid)))
  await until(() => held.length > 0)
  expect((await request(`${pds.url}/xrpc/_health`)).status).toBe(200)
  await write()
  // The runtime has 256 connections for all requests to others, those of this test included.
  expect(held.length).toBeLessThanOrEqual(64)
  bucket.intercept = null
  for (const go of held) go()
  expect(new Set((await readers).map(({ status }) => status))).toEqual(new Set([200]))
})

test('one failure is not worth mentioning: it is tried again', async () => {
  const bytes = randomBytes(TWO_PARTS)
  let failures = 0
  const failed = new Set<string>()
  bucket.intercept = ({ method, url }, response) => {
    const what = `${method} ${url}`
    if (failed.has(what)) return false
    failed.add(what)
    failures++
    response.writeHead(503).end()
    return true
  }
  const cid = await publish(bytes)
  expect(await alice.sees(cid)).toEqual(SERVED)
  expect(failures).toBeGreaterThan(5)
})

test('a copy that begins as a success and ends as an error has not happened', async () => {
  const bytes = randomBytes(TWO_PARTS)
  bucket.intercept = ({ headers }, response) => {
    if (headers['x-amz-copy-source'] === undefined) return false
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end('<?xml version="1.0"?><Error><Code>InternalError</Code></Error>')
    return true
  }
  expect(await alice.post(bytes)).toMatchObject({ status: 503 })
  expect(bucket.keys()).not.toContain(keyOf(cidOf(bytes)))
  expect(bucket.keys().filter((key) => key.includes('incoming'))).toEqual([])
})

test('wrong bytes in the bucket are never served whole', async () => {
  const small = randomBytes(2000)
  const large = randomBytes(3 * MIB)
  for (const bytes of [small, large]) {
    const cid = await publish(bytes)
    const rotten = bytes.slice()
    rotten[bytes.length >> 1]! ^= 1
    await bucket.write(keyOf(cid), rotten)
    const got = await alice
      .read(cid)
      .then((response) => (response.ok ? response.bytes() : null))
      .catch(() => null)
    expect(got).toBeNull()
    await bucket.write(keyOf(cid), bytes.subarray(0, 1500))
    expect(await alice.sees(cid)).toEqual(LOST)
    bucket.delete(keyOf(cid))
    expect(await alice.sees(cid)).toEqual(LOST)
    await alice.upload(bytes)
    expect(await alice.sees(cid)).toEqual(SERVED)
  }
})

test('a connection that ends in the middle of a piece is taken up again', async () => {
  const bytes = randomBytes(3 * MIB)
  const cid = await publish(bytes)
  let broken = 0
  bucket.intercept = ({ headers }, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
    if (first === undefined || broken++ % 2 === 1) return false
    const size = Number(last) - Number(first) + 1
    response.writeHead(206, { 'content-length': size, 'content-range': `bytes ${first}-${last}/${bytes.length}` })
    response.write(bytes.subarray(Number(first), Number(first) + (size >> 1)), () => response.socket?.destroy())
    return true
  }
  expect(await (await alice.read(cid)).bytes()).toEqual(bytes)
  expect(broken).toBeGreaterThan(3)
})

/** More than the requests to a bucket that may be under way. */
const READERS = 70

test('many slow readers hold no connection to the bucket', async () => {
  const bytes = randomBytes(8 * MIB)
  const cid = await publish(bytes)
  const { port } = new URL(pds.url)
  const before = bucket.requests.length
  const sockets = await Promise.all(
    Array.from({ length: READERS }, async () => {
      const socket = connect(Number(port), 'localhost')
      socket.write(`GET /xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      await new Promise((resolve) => socket.once('data', resolve))
      return socket.pause()
    }),
  )
  await until(() => bucket.underWay === 0)
  const made = bucket.requests.length - before
  expect(made).toBeLessThan(READERS * 128)
  expect(await (await alice.read(cid)).bytes()).toEqual(bytes)
  for (const socket of sockets) socket.destroy()
})

test('a network has its part of the downloads, others have theirs meanwhile, and whoever goes away makes room', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const cid = await publish(randomBytes(1000))
  const held: (() => void)[] = []
  bucket.intercept = (incoming, response) => held.push(() => bucket.pass(incoming, response)) > 0
  const path = `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`
  const ask = (address: string) => new SlowDownload(pds.url, path, address)
  const crowd = Array.from({ length: 50 }, (_, i) => ask(`198.51.100.${i}`))
  const OF_NETWORK = 32
  await until(() => held.length === OF_NETWORK)
  const other = ask('203.0.113.1')
  await until(() => held.length === OF_NETWORK + 1)
  held.at(-1)!()
  expect(await other.read()).toMatchObject({ status: 200, isWhole: true })
  expect(held).toHaveLength(OF_NETWORK + 1)
  await Promise.all(crowd.map((one) => one.leave()))
  const next = Array.from({ length: OF_NETWORK }, (_, i) => ask(`198.51.100.${i}`))
  await until(() => held.length === 2 * OF_NETWORK + 1)
  bucket.intercept = null
  for (const go of held) go()
  for (const one of next) expect(await one.read()).toMatchObject({ status: 200, isWhole: true })
})

test.each(['an account', 'a blob'])(
  'who waits for a place gets nothing of %s that is taken down meanwhile',
  async (what) => {
    using _ = atOneNode(pds, 'each node counts for itself')
    const held: (() => void)[] = []
    const path = (cid: string) => `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`
    const [first, second] = [await publish(randomBytes(1000)), await publish(randomBytes(1000))]
    bucket.intercept = (incoming, response) => held.push(() => bucket.pass(incoming, response)) > 0
    const crowd = Array.from({ length: 32 }, () => new SlowDownload(pds.url, path(first), '198.51.100.1'))
    await until(() => held.length === crowd.length)
    const last = new SlowDownload(pds.url, path(second), '198.51.100.1')
    await eventLoopTurns(50)
    const repo = { $type: 'com.atproto.admin.defs#repoRef', did: alice.did }
    const blob = { $type: 'com.atproto.admin.defs#repoBlobRef', did: alice.did, cid: second }
    const taken = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      json: { subject: what === 'an account' ? repo : blob, takedown: { applied: true } },
      headers: basic('admin', ADMIN_TOKEN),
    })
    expect(taken.status).toBe(200)
    bucket.intercept = null
    for (const go of held) go()
    const { status, body } = await last.read()
    expect({ status, ...JSON.parse(Buffer.from(body).toString()) }).toMatchObject({
      status: 400,
      error: what === 'an account' ? 'RepoTakendown' : 'BlobNotFound',
    })
    for (const one of crowd) await one.leave()
  },
)

test('a slow reader gives its place to others, and still gets the whole blob', async () => {
  const bytes = randomBytes(8 * MIB)
  const cid = await publish(bytes)
  const path = `/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`
  const crowd = Array.from({ length: 70 }, () => new SlowDownload(pds.url, path, '198.51.100.1'))
  const last = new SlowDownload(pds.url, path, '198.51.100.1')
  expect(Buffer.compare((await last.read()).body, bytes)).toBe(0)
  expect(Buffer.compare((await crowd[0]!.read()).body, bytes)).toBe(0)
  for (const one of crowd) await one.leave()
})

test('the headers of a blob, and of a part of it, are told without reading the bucket', async () => {
  const cid = await publish(randomBytes(MIB))
  const before = bucket.requests.length
  const url = `${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`
  const whole = await fetch(url, { method: 'HEAD' })
  expect([whole.status, whole.headers.get('content-length')]).toEqual([200, String(MIB)])
  const part = await fetch(url, { method: 'HEAD', headers: { range: 'bytes=10-19' } })
  expect([part.status, part.headers.get('content-length'), part.headers.get('content-range')]).toEqual([
    206,
    '10',
    `bytes 10-19/${MIB}`,
  ])
  expect(bucket.requests.length).toBe(before)
})

test('a client that goes takes its request to the bucket with it', async () => {
  const cid = await publish(randomBytes(1000))
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  bucket.intercept = (request) => {
    request.socket.once('close', resolve)
    arrive()
    return true
  }
  const leaving = new AbortController()
  const reading = fetch(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`, {
    signal: leaving.signal,
  })
  await arrived
  leaving.abort()
  expect(await thrownBy(reading)).toThrow()
  await closed
})

test('an upload that breaks off between two parts leaves neither parts nor files', async () => {
  const { port } = new URL(pds.url)
  const socket = connect(Number(port), 'localhost')
  socket.write(
    `POST /xrpc/com.atproto.repo.uploadBlob HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${alice.token}\r\nContent-Type: video/mp4\r\nContent-Length: ${30 * MIB}\r\n\r\n`,
  )
  socket.write(randomBytes(20 * MIB))
  await until(() => bucket.uploads().length === 1)
  socket.destroy()
  await until(() => bucket.uploads().length === 0)
})

test('a removal waits for an hour, and an upload in the meantime calls it off', async () => {
  const [kept, gone] = [randomBytes(300), randomBytes(301)]
  for (const bytes of [kept, gone]) await alice.upload(bytes)
  await pds.age('blob')
  expect(await gc()).toMatchObject({ errors: 0 })
  const has = (bytes: Uint8Array) => bucket.keys().includes(keyOf(cidOf(bytes)))
  expect([has(kept), has(gone)]).toEqual([true, true])
  expect((await alice.read(cidOf(gone), bearer(alice.token))).status).toBe(400)
  await alice.upload(kept)
  pds.clock.advance({ secs: 3500 })
  await gc()
  expect(has(gone)).toBe(true)
  pds.clock.advance({ secs: 101 })
  await gc()
  expect([has(kept), has(gone)]).toEqual([true, false])
  // Remembered for as long, and then forgotten.
  await pds.age('blob_removal')
  await gc()
  expect(await pds.rows('blob_removal', {}, ['cid'])).toEqual([])
})

const removable = async (): Promise<Uint8Array<ArrayBuffer>> => {
  const bytes = randomBytes(400)
  await alice.upload(bytes)
  await pds.age('blob', { cid: cidOf(bytes) })
  await gc()
  await pds.age('blob_removal', { cid: cidOf(bytes) })
  return bytes
}

test('an upload that placed its object before another server removed it places it again', async () => {
  const bytes = await removable()
  const key = keyOf(cidOf(bytes))
  // The object is there, but the server has not heard so yet.
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: placed, resolve: place } = Promise.withResolvers<void>()
  let isHeld = false
  bucket.intercept = ({ method }, response, given) => {
    if (isHeld || method !== 'PUT' || given !== key) return false
    isHeld = true
    const end = response.end.bind(response)
    response.end = ((...rest: never[]) => {
      place()
      void released.then(() => end(...rest))
      return response
    }) as typeof response.end
    return false
  }
  const uploading = alice.upload(bytes)
  await placed
  await gc()
  expect(bucket.keys()).not.toContain(key)
  release()
  await uploading
  expect(bucket.keys()).toContain(key)
  expect((await alice.read(cidOf(bytes), bearer(alice.token))).status).toBe(200)
})

test('an upload waits until a removal under way has ended', async () => {
  const bytes = await removable()
  const key = keyOf(cidOf(bytes))
  const { arrived, release } = hold(({ method }, given) => method === 'DELETE' && given === key)
  const removing = gc()
  await arrived
  const uploading = alice.upload(bytes)
  await Promise.race([uploading.then(() => Promise.reject(new Error('it did not wait'))), eventLoopTurns(100)])
  release()
  await Promise.all([removing, uploading])
  expect(bucket.keys()).toContain(key)
})

test('a removal whose server died is taken up by another, and uploads ask for patience until then', async () => {
  const bytes = await removable()
  const cid = cidOf(bytes)
  await pds.damage('blob_removal', { cid }, { taken_at: pds.clock.now(), taker: 'dead' })
  await gc()
  const refused = await alice.post(bytes)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
  pds.clock.advance({ secs: 601 })
  await gc()
  expect(bucket.keys()).not.toContain(keyOf(cid))
  await alice.upload(bytes)
  expect(bucket.keys()).toContain(keyOf(cid))
}, 60_000)

test('the scrub finds damage, gaps and strangers, and deletes what nobody finished', async () => {
  expect(await scrub()).toMatchObject({ flagged: 0, errors: 0 })
  const [damaged, missing, cut] = [
    await publish(randomBytes(900)),
    await publish(randomBytes(901)),
    await publish(randomBytes(902)),
  ]
  await bucket.write(keyOf(damaged), randomBytes(900))
  bucket.delete(keyOf(missing))
  await bucket.write(keyOf(cut), randomBytes(3))
  const orphan = cidOf(randomBytes(10))
  await bucket.write(keyOf(orphan), randomBytes(10))
  await bucket.write('blobs/note.txt', randomBytes(10))
  expect(await scrub()).toMatchObject({ flagged: 5, healed: 0, errors: 0, stale: 0 })
  expect(bucket.keys()).toContain(keyOf(orphan))
  // The scheduled one reads a share, so it may miss the object whose size is right.
  const { flagged } = await scrub('blob-scrub')
  expect(flagged).toBeGreaterThanOrEqual(4)
  await bucket.write('blobs/incoming/left', randomBytes(10))
  await UploadInParts.begin(new Bucket({ ...bucket.mirror, region: 'auto' }), 'blobs/incoming/begun')
  expect(bucket.uploads()).toHaveLength(1)
  pds.clock.advance({ days: 1 })
  expect(await scrub()).toMatchObject({ stale: 2 })
  expect(bucket.uploads()).toEqual([])
  expect(bucket.keys().filter((key) => key.includes('incoming'))).toEqual([])
})

/** What somebody says who has stored nothing. */
const falseAnswers: Record<string, (response: ServerResponse) => void> = {
  'a page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Back soon</html>'),
  'a page with a tag': (response) => response.writeHead(200, { etag: '"5f3c-1a2b"' }).end('<html>Back soon</html>'),
  'a tag as stores have them': (response) => response.writeHead(200, { etag: `"${'0'.repeat(32)}"` }).end(),
  'nothing at all': (response) => response.writeHead(204).end(),
  'that it will do so later': (response) => response.writeHead(202).end(),
  'the list of a bucket': (response) =>
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end('<?xml version="1.0"?><ListBucketResult></ListBucketResult>'),
  'where else to go': (response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
}
const kindOf = ({ method, url, headers }: IncomingMessage) => {
  const { searchParams } = new URL(url ?? '/', 'http://localhost')
  if (method === 'POST') return searchParams.has('uploadId') ? 'complete' : 'begin'
  if (method !== 'PUT') return null
  return headers['x-amz-copy-source'] !== undefined ? 'copy' : searchParams.has('partNumber') ? 'part' : 'put'
}

for (const [what, answer] of Object.entries(falseAnswers))
  test(`a success that is none is not believed: ${what}`, async () => {
    for (const [kind, size] of [
      ['put', 2000],
      ['part', TWO_PARTS],
      ['complete', TWO_PARTS],
      ['copy', TWO_PARTS],
    ] as const) {
      const bytes = randomBytes(size)
      const cid = cidOf(bytes)
      // Of the same size, so that only its tag tells it from the one that was sent.
      await bucket.write(keyOf(cid), randomBytes(size))
      bucket.intercept = (incoming, response) => {
        if (kindOf(incoming) !== kind) return false
        incoming.resume()
        answer(response)
        return true
      }
      expect([kind, (await alice.post(bytes)).status]).toEqual([kind, 503])
      bucket.intercept = null
      pds.clock.advance({ secs: 6 })
      expect((await alice.read(cid, bearer(alice.token))).status).toBe(400)
      await alice.upload(bytes)
      expect((await alice.read(cid, bearer(alice.token))).status).toBe(200)
    }
  }, 60_000)

test('the mirror has nothing to do, and says so', async () => {
  expect(await pds.runSweep('blob-mirror')).toMatchObject({ swept: 0, errors: 0 })
  expect(pds.log.map(({ message }) => message)).toContain(
    'blob_mirror is ignored: the blobs themselves are in a bucket',
  )
})

test('a bucket that refuses the server keeps it from starting; one that is out of reach does not', async () => {
  await pds.stop()
  bucket.fault = 403
  expect(await thrownBy(pds.restart())).toThrow(/the bucket .* refuses this server: .*403.*keys of \[blobs\]/)
  expect(await thrownBy(pds.restart({ blobs: { ...bucket.primary, s3Bucket: 'another' } }))).toThrow(
    'refuses this server',
  )
  bucket.fault = 'down'
  await pds.restart()
  expect(pds.log.map(({ message }) => message)).toContain('the blob bucket is unreachable; starting without it')
})

test('a bucket or prefix of somebody else is refused', async () => {
  expect(await thrownBy(pds.restart({ blobs: { ...bucket.primary, s3KeyPrefix: 'elsewhere/' } }))).toThrow(
    /database lists blobs, but the bucket .* is empty/,
  )
  await pds.restart()
})

test('a removal that failed while the clock was ahead refuses no upload for longer once the clock is right', async () => {
  const bytes = randomBytes(400)
  const cid = cidOf(bytes)
  const key = keyOf(cid)
  await alice.upload(bytes)
  await pds.age('blob', { cid })
  pds.clock.jump({ days: 365 })
  // A sweep that deletes skips one pass once the clock was set.
  await gc()
  await gc()
  pds.clock.advance({ secs: 3601 })
  const { arrived, release } = hold(({ method }, given) => method === 'DELETE' && given === key)
  const removing = gc()
  await arrived
  await pds.damage('blob_removal', { cid }, { taker: 'dead' })
  release()
  await removing
  pds.clock.jump({ days: -365 })
  expect((await alice.post(bytes)).status).toBe(503)
  await gc()
  await gc()
  await alice.upload(bytes)
  expect(bucket.keys()).toContain(key)
}, 60_000)
