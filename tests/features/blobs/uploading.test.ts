/** Uploads, seen by those who make them. */
import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { sql, type Sql } from '../../../src/platform/database/database.ts'
import { signingKeyOf } from '../../../src/features/identity/account-keys/account-keys.ts'
import { setBlobTakedown } from '../../../src/features/data/blobs/blobs.ts'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { formatServiceToken } from '../../../src/protocol/service-token.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { Stored } from '../../support/stored-blobs.ts'
import { png, randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { until } from '../../support/until.ts'

const MAX_BLOB = 300_000
const MAX_STORAGE = 1_000_000

const { pds } = useWorld({ config: { blobs: { maxBlobSize: MAX_BLOB, maxStoragePerAccount: MAX_STORAGE } } })
const stored = new Stored(pds)
const alice = setUp(() => Uploader.join(pds, 'alice'))

const incoming = () => stored.incoming()
const files = () => stored.names()
const cidOf = (bytes: Uint8Array) => cidOfBlob(bytes).toString()

test('an upload is answered with its CID, the type of its bytes and its size', async () => {
  expect(await alice.upload(png, 'text/plain')).toEqual({
    $type: 'blob',
    ref: { $link: cidOf(png) },
    mimeType: 'image/png',
    size: png.byteLength,
  })
  expect(await alice.upload('plain words', 'text/plain; charset=utf-8')).toMatchObject({
    mimeType: 'text/plain',
    size: 11,
  })
  expect(files()).toContain(cidOf(png))
})

test('an upload whose header names no media type is refused: no record could refer to it', async () => {
  for (const type of ['x', 'image', 'a b'])
    expect({ type, ...(await alice.post('words', { 'content-type': type })) }).toMatchObject({
      type,
      status: 400,
      body: { error: 'InvalidRequest', message: 'Request encoding (Content-Type) required but not provided' },
    })
})

test('large, chunked and compressed uploads are counted and hashed as they were before', async () => {
  const bytes = randomBytes(250_000)
  const chunks = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 10_000) controller.enqueue(bytes.slice(at, at + 10_000))
      controller.close()
    },
  })
  expect((await alice.post(chunks)).body.blob).toMatchObject({ ref: { $link: cidOf(bytes) }, size: 250_000 })
  const text = Buffer.from('again and again '.repeat(5000))
  const zipped = await alice.post(gzipSync(text), { 'content-encoding': 'gzip', 'content-type': 'text/plain' })
  expect(zipped.body.blob).toMatchObject({ ref: { $link: cidOf(text) }, mimeType: 'text/plain', size: text.length })
})

test('nothing is a blob too', async () => {
  expect((await alice.post('', { 'content-length': '0' })).body.blob).toMatchObject({
    size: 0,
    mimeType: 'application/octet-stream',
  })
})

test('a blob above the limit is refused, whether announced, counted or unpacked', async () => {
  const before = files().length
  const tooLarge = { status: 413, body: { error: 'PayloadTooLarge', message: 'request entity too large' } }
  expect(await alice.post(randomBytes(MAX_BLOB + 1))).toMatchObject(tooLarge)
  const endless = new ReadableStream({
    pull(controller) {
      controller.enqueue(randomBytes(50_000))
    },
  })
  expect(await alice.post(endless)).toMatchObject(tooLarge)
  expect(await alice.post(gzipSync(Buffer.alloc(MAX_BLOB + 1)), { 'content-encoding': 'gzip' })).toMatchObject(tooLarge)
  expect(files().length).toBe(before)
})

test('storage of an account is bounded, and what it owns already costs it nothing', async () => {
  const bob = await Uploader.join(pds, 'bob')
  const mine = randomBytes(MAX_BLOB)
  for (const bytes of [mine, randomBytes(MAX_BLOB), randomBytes(MAX_BLOB)]) await bob.upload(bytes)
  const over = randomBytes(MAX_STORAGE - 3 * MAX_BLOB + 1)
  expect(await bob.post(over)).toMatchObject({ status: 413, body: { error: 'PayloadTooLarge' } })
  expect(files()).not.toContain(cidOf(over))
  expect(await bob.upload(mine)).toMatchObject({ size: MAX_BLOB })
  expect(await bob.upload(over.subarray(1))).toMatchObject({ size: over.length - 1 })
})

test('uploads at the same time do not exceed the storage together', async () => {
  const carol = await Uploader.join(pds, 'carol')
  const answers = await Promise.all(Array.from({ length: 5 }, () => carol.post(randomBytes(MAX_BLOB))))
  expect(answers.map((answer) => answer.status).toSorted()).toEqual([200, 200, 200, 413, 413])
})

test('the same bytes are one file for all who upload them, also at once', async () => {
  const bytes = randomBytes(5000)
  const dave = await Uploader.join(pds, 'dave')
  const cids = await Promise.all([alice, dave, alice, dave].map(async (one) => (await one.upload(bytes)).ref.$link))
  expect(new Set(cids)).toEqual(new Set([cidOf(bytes)]))
  expect(files().filter((name) => name === cids[0])).toHaveLength(1)
  expect(incoming()).toEqual([])
})

test('an upload that breaks off leaves nothing', async () => {
  const before = files().length
  const { port } = new URL(pds.url)
  const head = (length: string) =>
    `POST /xrpc/com.atproto.repo.uploadBlob HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${alice.token}\r\nContent-Type: image/png\r\n${length}\r\n\r\n`
  for (const length of ['Content-Length: 200000', 'Transfer-Encoding: chunked']) {
    const socket = await Bun.connect({ hostname: 'localhost', port: Number(port), socket: { data: () => undefined } })
    const chunked = length.startsWith('Transfer')
    socket.write(head(length))
    socket.write(chunked ? '186a0\r\n' : '')
    socket.write('x'.repeat(100_000) + (chunked ? '\r\n' : ''))
    await until(() => incoming().length > 0)
    socket.end()
    await until(() => incoming().length === 0)
  }
  expect(files().length).toBe(before)
})

test('a blob that was taken down is not taken in again', async () => {
  const bytes = randomBytes(100)
  const blob = await alice.upload(bytes)
  const set = (ref: string | null) =>
    pds.ctx.db.transaction((tx) => setBlobTakedown(tx, { did: alice.did, cid: blob.ref.$link, ref }))
  expect(await set('mod-1')).toBe(true)
  expect(await alice.post(bytes)).toMatchObject({
    status: 400,
    body: { message: 'Blob has been takendown, cannot re-upload' },
  })
  expect(await set(null)).toBe(true)
  expect(await alice.upload(bytes)).toEqual(blob)
})

test('a service uploads for the account that gave it a token for just that', async () => {
  const { ctx } = pds
  const key = (await signingKeyOf(ctx, ctx.db, alice.did))!
  const now = Math.floor(pds.clock.now() / 1000)
  const tokenFor = (lxm: string) =>
    formatServiceToken(key, {
      iss: alice.did,
      aud: ctx.config.serverDid,
      lxm,
      iat: now,
      exp: now + 60,
      jti: crypto.randomUUID(),
    })
  const bytes = randomBytes(500)
  expect(await alice.post(bytes, bearer(tokenFor('com.atproto.repo.uploadBlob')))).toMatchObject({
    status: 200,
    body: { blob: { size: 500 } },
  })
  expect((await alice.read(cidOf(bytes), bearer(alice.token))).status).toBe(200)
  expect(await alice.post(bytes, bearer(tokenFor('com.atproto.repo.createRecord')))).toMatchObject({
    status: 401,
    body: { error: 'BadJwtLexiconMethod' },
  })
})

test('uploading needs an account, a type and no more than its share of a day', async () => {
  const url = `${pds.url}/xrpc/com.atproto.repo.uploadBlob`
  expect(await request(url, { method: 'POST', body: 'x' })).toMatchObject({
    status: 401,
    body: { error: 'AuthMissing' },
  })
  expect(await request(url, { method: 'POST', body: 'x', headers: bearer('garbage') })).toMatchObject({
    status: 400,
    body: { error: 'InvalidToken' },
  })
  const untyped = new Request(url, { method: 'POST', body: new Uint8Array([1]), headers: bearer(alice.token) })
  expect((await fetch(untyped)).status).toBe(400)
  const { headers } = await alice.post('x')
  expect(headers.get('ratelimit-policy')).toBe('1000;w=86400')
})

test('an upload whose row cannot be written leaves no file, unless somebody else has it', async () => {
  const bytes = randomBytes(700)
  const shared = randomBytes(701)
  const ivy = await Uploader.join(pds, 'ivy')
  await ivy.upload(shared)
  const { db } = pds.ctx
  const [refuse, allow] = {
    sqlite: [
      sql`CREATE TRIGGER broken BEFORE INSERT ON blob WHEN NEW.size IN (700, 701) BEGIN SELECT RAISE(ABORT, 'no'); END`,
      sql`DROP TRIGGER broken`,
    ],
    postgres: [
      sql`ALTER TABLE blob ADD CONSTRAINT broken CHECK (size NOT IN (700, 701)) NOT VALID`,
      sql`ALTER TABLE blob DROP CONSTRAINT broken`,
    ],
  }[db.dialect.name] as [Sql, Sql]
  await db.run(refuse)
  expect(await alice.post(bytes)).toMatchObject({ status: 500 })
  expect(await alice.post(shared)).toMatchObject({ status: 500 })
  await stored.removalsEnd()
  expect(files()).not.toContain(cidOf(bytes))
  expect((await ivy.read(cidOf(shared), bearer(ivy.token))).status).toBe(200)
  await db.run(allow)
  expect(await alice.upload(bytes)).toMatchObject({ size: 700 })
})

test('what an account is sending is bounded, however many uploads it has begun', async () => {
  using _ = atOneNode(pds, 'each node counts for itself')
  const { port } = new URL(pds.url)
  const kate = await Uploader.join(pds, 'kate')
  const head = `POST /xrpc/com.atproto.repo.uploadBlob HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${kate.token}\r\nContent-Type: image/png\r\nContent-Length: ${MAX_BLOB}\r\n\r\n`
  const sockets = await Promise.all(
    Array.from({ length: 20 }, () =>
      Bun.connect({ hostname: 'localhost', port: Number(port), socket: { data: () => undefined } }),
    ),
  )
  for (const socket of sockets) {
    socket.write(head)
    socket.write(new Uint8Array(MAX_BLOB - 1))
  }
  await until(() => stored.incomingBytes() === 20 * (MAX_BLOB - 1))
  expect((await kate.post(randomBytes(10))).status).toBe(200)
  const refused = await kate.post(randomBytes(MAX_BLOB))
  expect(refused).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
  expect(refused.headers.get('retry-after')).toBe('10')
  expect((await alice.post(randomBytes(1000))).status).toBe(200)
  for (const socket of sockets) socket.end()
  await until(() => incoming().length === 0)
  expect((await kate.post(randomBytes(MAX_BLOB))).status).toBe(200)
})
