/** What is sent to a bucket, against a real S3 server, which verifies each signature; and what stores may answer. */
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gunzipSync, gzipSync } from 'node:zlib'
import { expect, spyOn, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { Bucket } from '../../../src/platform/network/bucket.ts'
import { UploadInParts, unfinishedUploads } from '../../../src/platform/network/bucket-uploads.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { isSigned } from '../../support/servers/bucket-signatures.ts'
import { memoryMiB } from '../../support/process-memory.ts'
import { errorOf, thrownBy } from '../../support/thrown.ts'

const contentOf = (text: string) => ({
  body: new Blob([text]),
  sha256: createHash('sha256').update(text).digest('hex'),
})
const textOf = async (bytes: AsyncIterable<Uint8Array> | null) =>
  Buffer.concat(await Array.fromAsync(bytes!)).toString()
/** A bucket whose store answers every request in the same way. */
const answering = (content: string | Uint8Array<ArrayBuffer>, status = 200, headers: Record<string, string> = {}) => {
  const store = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(content, { status, headers }) })
  const keys = { accessKeyId: 'key', secretAccessKey: new Secret('secret') }
  const endpoint = `http://127.0.0.1:${store.port}`
  const bucket = new Bucket({ bucket: 'blobs', endpoint, region: 'auto', ...keys, forcePathStyle: true })
  return { bucket, [Symbol.asyncDispose]: () => store.stop(true) }
}
const list = (bucket: Bucket, prefix = '') => Array.fromAsync(bucket.list(prefix)).then((pages) => pages.flat())

test('keys with characters that URLs, signatures or XML treat differently come back as they were', async () => {
  await using host = await startBucket()
  const bucket = new Bucket({ ...host.mirror, region: 'auto' })
  const keys = ["a b+c/(d)'e*!~.txt", 'a b+c/f&g=h%41"<>', 'a b+c/ü/雪']
  const targets: string[] = []
  host.intercept = ({ url = '' }) => {
    targets.push(url)
    return false
  }
  for (const key of keys) await bucket.put(key, contentOf(key))
  expect((await list(bucket, 'a b+c/')).map(({ key }) => key)).toEqual(keys.toSorted())
  for (const key of keys) {
    expect(await textOf(await bucket.get(key))).toBe(key)
    await bucket.delete(key)
    expect(await bucket.get(key)).toBeNull()
  }
  expect(await list(bucket, "(d)'")).toEqual([])
  // Some stores verify the path as it was sent.
  expect(targets.filter((target) => /[!'()*]/.test(target))).toEqual([])
})

test('a list that says again and again that there is more, and has nothing, is given up', async () => {
  const page = '<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>'
  await using endless = answering(`<ListBucketResult>${page}</ListBucketResult>`)
  expect(await thrownBy(list(endless.bucket))).toThrow('does not come to the end of its list')
})

test('an object is copied under a name that needs encoding', async () => {
  await using host = await startBucket()
  const bucket = new Bucket({ ...host.mirror, region: 'auto' })
  await bucket.put('incoming/a ü', contentOf('text'))
  await bucket.copy('incoming/a ü', 'blobs/a ü', 4)
  expect(await textOf(await bucket.get('blobs/a ü'))).toBe('text')
})

test('an object is read from a byte on, from stores that ignore ranges too', async () => {
  await using host = await startBucket()
  await using simple = answering('content')
  const bucket = new Bucket({ ...host.mirror, region: 'auto' })
  await bucket.put('key', contentOf('content'))
  for (const store of [bucket, simple.bucket]) {
    expect(await textOf(await store.get('key', { from: 3 }))).toBe('tent')
    expect(await textOf(await store.get('key', { from: 7 }))).toBe('')
  }
  expect(await bucket.get('nothing', { from: 3 })).toBeNull()
})

// Source: Amazon S3 API Reference, "Examples: Signature Calculations".
test('the store of these tests verifies signatures as Amazon describes them', () => {
  const EMPTY = createHash('sha256').digest('hex')
  const published = [
    ['/test.txt', { range: 'bytes=0-9' }, 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'],
    ['/?lifecycle', {}, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['/?max-keys=2&prefix=J', {}, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ] as const
  const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
  for (const [target, more, signature] of published) {
    const fields = {
      host: 'examplebucket.s3.amazonaws.com',
      ...more,
      'x-amz-content-sha256': EMPTY,
      'x-amz-date': '20130524T000000Z',
    }
    const authorization = `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=${Object.keys(fields).join(';')}, Signature=${signature}`
    const request = { method: 'GET', target, headers: { ...fields, authorization } }
    expect(isSigned(request, secret)).toBe(true)
    expect(isSigned({ ...request, target: `${target}x` }, secret)).toBe(false)
    expect(isSigned(request, `${secret}x`)).toBe(false)
  }
})

test('an upload in parts is listed until it is completed or aborted', async () => {
  await using host = await startBucket()
  const bucket = new Bucket({ ...host.mirror, region: 'auto' })
  const completed = await UploadInParts.begin(bucket, 'uploads/one + one')
  const aborted = await UploadInParts.begin(bucket, 'uploads/none')
  const ids = async () => (await Array.fromAsync(unfinishedUploads(bucket, 'uploads/'))).flat().map(({ id }) => id)
  expect((await ids()).toSorted()).toEqual([completed.id, aborted.id].toSorted())
  await completed.add(contentOf('whole'))
  await completed.complete()
  await aborted.abort()
  await aborted.abort()
  expect(await textOf(await bucket.get('uploads/one + one'))).toBe('whole')
})

test('other keys are refused by the store', async () => {
  await using host = await startBucket()
  const bucket = new Bucket({ ...host.mirror, region: 'auto', secretAccessKey: new Secret('another') })
  expect(await errorOf(bucket.put('key', contentOf('text')))).toMatchObject({
    status: 403,
    code: 'SignatureDoesNotMatch',
  })
})

test('a request waits for no other thread before it is sent', async () => {
  await using store = answering('')
  const { fetch } = globalThis
  using fetching = spyOn(globalThis, 'fetch')
  let isSameTurn = true
  setImmediate(() => (isSameTurn = false))
  const { promise: sent, resolve } = Promise.withResolvers<boolean>()
  fetching.mockImplementation(((...request: Parameters<typeof fetch>) => {
    resolve(isSameTurn)
    return fetch(...request)
  }) as typeof fetch)
  await store.bucket.putNew('key', contentOf('text'))
  expect(await sent).toBe(true)
})

test('a list without its end, its keys or its sizes is none', async () => {
  for (const xml of [
    '',
    '<ListBucketResult/>',
    '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>',
    '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Size>1</Size></Contents></ListBucketResult>',
    '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>',
    '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>',
    '<ListBucketResult><IsTruncated>false</IsTruncated>',
    '<!DOCTYPE a [<!ENTITY b "c">]><ListBucketResult><IsTruncated>&b;</IsTruncated></ListBucketResult>',
  ]) {
    await using store = answering(xml)
    expect(await thrownBy(list(store.bucket))).toThrow()
  }
})

test('an answer of a mebibyte costs no more for its ends of lines, and a longer one is refused', async () => {
  const withEnds = (count: number) =>
    `<ListBucketResult>${'\r'.repeat(count)}<IsTruncated>false</IsTruncated></ListBucketResult>`
  await using long = answering(withEnds(1024 ** 2 - 100))
  expect(await list(long.bucket)).toEqual([])
  await using longer = answering(withEnds(1024 ** 2))
  expect(await thrownBy(list(longer.bucket))).toThrow('the response of the bucket is too long')
})

test('of some hundred bytes that stand for half a gigabyte, no more is decoded than is wanted', async () => {
  const bomb = brotliCompressSync(new Uint8Array(512 * 1024 ** 2), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
  expect(bomb.length).toBeLessThan(1024)
  Bun.gc(true)
  const before = memoryMiB(process.pid, 'VmRSS')
  for (const status of [200, 403]) {
    await using store = answering(bomb, status, { 'content-encoding': 'br' })
    const faults = Array.from({ length: 2 }, () => errorOf(list(store.bucket)))
    expect((await Promise.all(faults)).map((fault) => fault instanceof Error)).toEqual([true, true])
  }
  expect(memoryMiB(process.pid, 'VmRSS') - before).toBeLessThan(256)
})

test('what a proxy has compressed unasked is read, unless nobody knows how', async () => {
  const xml = gzipSync('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
  await using compressed = answering(new Uint8Array(xml), 200, { 'content-encoding': 'gzip' })
  expect(await list(compressed.bucket)).toEqual([])
  await using uploaded = answering(gunzipSync(xml), 200, { 'content-encoding': 'aws-chunked' })
  expect(await list(uploaded.bucket)).toEqual([])
  await using unknown = answering(new Uint8Array(xml), 200, { 'content-encoding': 'lz4' })
  expect(await thrownBy(list(unknown.bucket))).toThrow('has an unknown content-encoding')
})

test('a part of no bytes is none that was asked for', async () => {
  await using store = answering('', 206, { 'content-range': 'bytes 100-99/1000' })
  expect(await thrownBy(store.bucket.read('key', { first: 100, last: 199 }))).toThrow('a different range')
})
