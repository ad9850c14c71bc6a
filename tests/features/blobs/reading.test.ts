/** Blobs, seen by those who read them. */
import { beforeAll, expect, test } from 'bun:test'
import { replaceBlobReferences, setBlobTakedown } from '../../../src/features/data/blobs/blobs.ts'
import type { Tid } from '../../../src/protocol/identifiers.ts'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { BLOB_NOT_FOUND, png, randomBytes, SERVED, Uploader, type Blob } from '../../support/clients/uploader.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'
import { thrownBy } from '../../support/thrown.ts'

const FOR_CACHES = 'public, max-age=604800, s-maxage=60, immutable'

let avatar: Blob
const { pds } = useWorld()
const stored = new Stored(pds)
const alice = setUp(() => Uploader.join(pds, 'alice'))
beforeAll(async () => {
  avatar = await alice.upload(png, 'image/png')
  await alice.refer('a.b.c/avatar', avatar)
})

const published = async (bytes: Uint8Array, record: string, type?: string) => {
  const blob = await alice.upload(bytes, type)
  await alice.refer(record, blob)
  return blob.ref.$link
}

test('a blob comes back as it went in, and can do no harm in a browser', async () => {
  const response = await alice.read(avatar.ref.$link)
  expect(response.status).toBe(200)
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(png)
  const { headers } = response
  expect(headers.get('content-type')).toBe('image/png')
  expect(headers.get('content-length')).toBe(String(png.length))
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${avatar.ref.$link}"`)
  expect(headers.get('access-control-allow-origin')).toBe('*')
})

test('a page keeps its type and is still only ever downloaded', async () => {
  const cid = await published(Buffer.from('<html><script>alert(1)</script>'), 'a.b.c/page', 'text/html')
  const { headers } = await alice.read(cid)
  expect(headers.get('content-type')).toBe('text/html')
  expect(headers.get('content-disposition')).toStartWith('attachment')
})

test('caches keep what anybody may read, and ask by CID', async () => {
  const first = await alice.read(avatar.ref.$link)
  expect(first.headers.get('cache-control')).toBe(FOR_CACHES)
  const etag = first.headers.get('etag')!
  expect(etag).toBe(`"${avatar.ref.$link}"`)
  const again = await alice.read(avatar.ref.$link, { 'if-none-match': `W/${etag}` })
  expect([again.status, await again.text()]).toEqual([304, ''])
  const own = await alice.read(avatar.ref.$link, bearer(alice.token))
  expect(own.headers.get('cache-control')).toBe('private')
})

test('a part is served as a part', async () => {
  const bytes = randomBytes(200_000)
  const cid = await published(bytes, 'a.b.c/video')
  const part = await alice.read(cid, { range: 'bytes=1000-1999' })
  expect([part.status, part.headers.get('content-range'), part.headers.get('content-length')]).toEqual([
    206,
    'bytes 1000-1999/200000',
    '1000',
  ])
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(bytes.subarray(1000, 2000))
  const tail = await alice.read(cid, { range: 'bytes=-10' })
  expect(new Uint8Array(await tail.arrayBuffer())).toEqual(bytes.subarray(-10))
  const beyond = await alice.read(cid, { range: 'bytes=200000-' })
  expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */200000'])
  const whole = await alice.read(cid, { range: 'bytes=0-1,5-6' })
  expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, 200_000])
})

test('a part is a part of the bytes themselves, whatever codings the client takes', async () => {
  const text = 'again and again '.repeat(500)
  const cid = await published(Buffer.from(text), 'a.b.c/text', 'text/plain')
  const part = await alice.read(cid, { range: 'bytes=2000-3999', 'accept-encoding': 'gzip, br' })
  expect([part.status, part.headers.get('content-encoding'), await part.text()]).toEqual([
    206,
    null,
    text.slice(2000, 4000),
  ])
  const whole = await alice.read(cid, { 'accept-encoding': 'gzip' })
  expect([whole.headers.get('content-encoding'), await whole.text()]).toEqual(['gzip', text])
})

test('each coding has a tag of its own, and none is joined to a part of the bytes', async () => {
  const text = 'again and again '.repeat(500)
  const cid = await published(Buffer.from(`tagged ${text}`), 'a.b.c/tagged', 'text/plain')
  const tagIn = async (coding: string) => (await alice.read(cid, { 'accept-encoding': coding })).headers.get('etag')!
  const tags = [await tagIn('identity'), await tagIn('gzip'), await tagIn('br')]
  expect(tags).toEqual([`"${cid}"`, `"${cid}-gzip"`, `"${cid}-br"`])
  const part = (etag: string) =>
    alice.read(cid, { range: 'bytes=10-19', 'if-range': etag, 'accept-encoding': 'identity' })
  expect([(await part(tags[0]!)).status, (await part(tags[1]!)).status, (await part(tags[2]!)).status]).toEqual([
    206, 200, 200,
  ])
  // The copy that a client keeps goes on being called what it is.
  for (const etag of tags) {
    const same = await alice.read(cid, { 'if-none-match': `"other", ${etag}`, 'accept-encoding': 'gzip' })
    expect([same.status, same.headers.get('etag')]).toEqual([304, etag])
  }
})

test('HEAD tells size and type', async () => {
  const response = await fetch(`${pds.url}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${avatar.ref.$link}`, {
    method: 'HEAD',
  })
  expect([response.status, response.headers.get('content-type'), response.headers.get('content-length')]).toEqual([
    200,
    'image/png',
    String(png.length),
  ])
})

test('an upload is its owner’s alone until a record points at it', async () => {
  const blob = await alice.upload(randomBytes(50))
  const cid = blob.ref.$link
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
  expect((await alice.read(cid, bearer(alice.token))).status).toBe(200)
  expect((await alice.read(cid, basic('admin', ADMIN_TOKEN))).status).toBe(200)
  const mallory = await Uploader.join(pds, 'mallory')
  expect((await alice.read(cid, bearer(mallory.token))).status).toBe(400)
  await alice.refer('a.b.c/1', blob)
  expect(await alice.sees(cid)).toEqual(SERVED)
  await alice.refer('a.b.c/1')
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
})

test('another account’s blob is not served under a DID that does not have it', async () => {
  const eve = await Uploader.join(pds, 'eve')
  expect(await eve.sees(avatar.ref.$link)).toEqual(BLOB_NOT_FOUND)
})

test('a taken-down blob is served to nobody, and comes back when the takedown is lifted', async () => {
  const cid = await published(randomBytes(60), 'a.b.c/down')
  const set = (ref: string | null) => pds.ctx.db.transaction((tx) => setBlobTakedown(tx, { did: alice.did, cid, ref }))
  await set('mod-1')
  expect(await alice.sees(cid)).toEqual(BLOB_NOT_FOUND)
  expect((await alice.read(cid, bearer(alice.token))).status).toBe(400)
  await set(null)
  expect(await alice.sees(cid)).toEqual(SERVED)
})

test('an account that is gone, taken down or deactivated shows its blobs to itself at most', async () => {
  const fay = await Uploader.join(pds, 'fay')
  const blob = await fay.upload(randomBytes(70))
  await fay.refer('a.b.c/1', blob)
  const cid = blob.ref.$link
  const state = (deactivated: number | null, takedown: string | null) =>
    pds.damage('account', { did: fay.did }, { deactivated_at: deactivated, takedown_ref: takedown })
  await state(1, null)
  expect(await fay.sees(cid)).toEqual({ status: 400, error: 'RepoDeactivated' })
  expect((await fay.read(cid, bearer(fay.token))).status).toBe(200)
  await state(1, 'mod')
  expect(await fay.sees(cid)).toEqual({ status: 400, error: 'RepoTakendown' })
  expect((await fay.read(cid, basic('admin', ADMIN_TOKEN))).status).toBe(200)
  const nobody = await fay.read(cid, {}, 'did:plc:zzzzzzzzzzzzzzzzzzzzzzzz')
  expect(await nobody.json()).toMatchObject({ error: 'RepoNotFound' })
})

/** The smaller one is sent from memory, once it has been read. From a bucket, the larger one breaks off at its end. */
test.each([1000, 300_000])(
  'wrong bytes of %d on the disk are never served, nor is a file that is gone',
  async (size) => {
    const bytes = randomBytes(size)
    const cid = await published(bytes, `a.b.c/rot${size}`)
    expect(await alice.sees(cid)).toEqual(SERVED)
    expect(await alice.sees(cid)).toEqual(SERVED)
    const rotten = bytes.slice()
    rotten[500]! ^= 1
    await stored.write(cid, rotten)
    if (pds.bucket === null || size === 1000) expect(await alice.sees(cid)).toEqual(stored.LOST)
    else expect(await thrownBy(alice.read(cid).then((response) => response.bytes()))).toThrow()
    await stored.write(cid, bytes)
    expect(await alice.sees(cid)).toEqual(SERVED)
    stored.delete(cid)
    expect(await alice.sees(cid)).toEqual(stored.LOST)
    await alice.upload(bytes)
    expect(await alice.sees(cid)).toEqual(SERVED)
  },
)

test('lists name what records point at, in pages', async () => {
  const gus = await Uploader.join(pds, 'gus')
  const blobs = await Promise.all(['1', '2', '3'].map((text) => gus.upload(`gus ${text}`)))
  const revs: string[] = []
  for (const [i, blob] of blobs.entries()) revs.push(await gus.refer(`a.b.c/${i}`, blob))
  await gus.upload('never referenced')
  const cids = blobs.map((blob) => blob.ref.$link).toSorted()
  const list = async (more: string) =>
    (await request(`${pds.url}/xrpc/com.atproto.sync.listBlobs?did=${gus.did}${more}`)).body
  expect((await list('')).cids).toEqual(cids)
  const page = await list('&limit=2')
  expect(page).toEqual({ cids: cids.slice(0, 2), cursor: cids[1] })
  expect((await list(`&limit=2&cursor=${page.cursor}`)).cids).toEqual(cids.slice(2))
  expect((await list(`&since=${revs[2]}`)).cids).toEqual([])
  expect((await list(`&since=${revs[0]}`)).cids.length).toBe(2)
})

test('an account that moved in is told which blobs are missing, until it has brought them', async () => {
  const hal = await Uploader.join(pds, 'hal')
  const late = Buffer.from('brought later')
  const cid = cidOfBlob(late).toString()
  await pds.ctx.db.transaction((tx) =>
    replaceBlobReferences(tx, {
      did: hal.did,
      rev: '3k22222222222' as Tid,
      now: 1,
      batches: [[{ record: 'a.b.c/1', cid }]],
    }),
  )
  const missing = async () =>
    (await request(`${pds.url}/xrpc/com.atproto.repo.listMissingBlobs`, { headers: bearer(hal.token) })).body.blobs
  expect(await missing()).toEqual([{ cid, recordUri: `at://${hal.did}/a.b.c/1` }])
  expect(await hal.sees(cid)).toEqual(BLOB_NOT_FOUND)
  await hal.upload(late)
  expect(await missing()).toEqual([])
  expect(await hal.sees(cid)).toEqual(SERVED)
})

test('a cache that asks again after a minute learns of a takedown', async () => {
  const cid = await published(randomBytes(302), 'a.b.c/taken')
  const etag = (await alice.read(cid)).headers.get('etag')!
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: alice.did, cid }
  const taken = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject, takedown: { applied: true } },
    headers: bearer(ADMIN_TOKEN),
  })
  expect(taken.status).toBe(200)
  const { status, headers } = await alice.read(cid, { 'if-none-match': etag })
  expect([status, headers.get('cache-control')]).toEqual([400, 'private'])
})

test('no cache keeps an error in place of a blob', async () => {
  const cid = await published(randomBytes(300), 'a.b.c/uncached')
  const caching = async (headers: Record<string, string> = {}) => {
    const { status, headers: told } = await alice.read(cid, headers)
    return [status, told.get('cache-control')]
  }
  expect(await caching()).toEqual([200, FOR_CACHES])
  expect(await caching({ range: 'bytes=300-' })).toEqual([416, 'no-store'])
  stored.delete(cid)
  expect(await caching()).toEqual([stored.LOST.status, 'no-store'])
})

test('whoever asks for a lost blob again and again fills no log', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const cid = await published(randomBytes(301), 'a.b.c/asked')
  stored.delete(cid)
  for (let i = 0; i < 30; i++) expect((await alice.read(cid)).status).toBe(stored.LOST.status)
  const lines = () => pds.log.filter((line) => line.cid === cid)
  expect(lines()).toHaveLength(10)
  pds.clock.advance({ secs: 60 })
  await alice.read(cid)
  expect(lines().at(-1)).toMatchObject({ message: 'blob file is missing or damaged', omitted: 20 })
})
