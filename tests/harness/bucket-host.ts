/**
 * A real S3 server on a free port with one bucket, and a wire to it that can fail.
 *
 * It also refuses uploads whose bytes are not those that were signed for, as the large stores do.
 */
import crypto, { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import S3rver from 's3rver'
import { Bucket } from '../../src/platform/network/bucket.ts'
import { Secret } from '../../src/base/secret.ts'

const BUCKET = 'copies'
const CONTENT_SUFFIX = '._S3rver_object'

/** `half…`: the connection ends in the middle of a body. */
export type Fault = 'down' | 'list' | 'half-upload' | 'half-download' | null

export interface BucketHost extends AsyncDisposable {
  /** For the section `blobMirror` of a configuration. */
  readonly mirror: {
    bucket: string
    endpoint: string
    accessKeyId: string
    secretAccessKey: Secret<string>
    forcePathStyle: boolean
  }
  /** Keys in the bucket, ascending. */
  keys(): string[]
  read(key: string): Uint8Array
  /** Behind the back of the server under test. */
  write(key: string, bytes: Uint8Array): Promise<void>
  fault: Fault
  /** Requests that arrived, as `PUT /copies/blobs/…`. */
  readonly requests: string[]
}

export async function startBucket(): Promise<BucketHost> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bucket-'))
  mkdirSync(join(dir, BUCKET))
  const handler = ascending(new S3rver({ directory: dir, silent: true, configureBuckets: [{ name: BUCKET, configs: [] }] })).callback()
  const state: { fault: Fault; requests: string[] } = { fault: null, requests: [] }
  const fileOf = (key: string) => join(dir, BUCKET, `${key}${CONTENT_SUFFIX}`)

  const keyOf = (url = '/') => decodeURIComponent(new URL(url, 'http://localhost').pathname).slice(BUCKET.length + 2)
  const put = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
    if (request.headers['x-amz-content-sha256'] !== createHash('sha256').update(body).digest('hex')) {
      response.writeHead(400, { 'content-type': 'application/xml' }).end('<Error><Code>XAmzContentSHA256Mismatch</Code></Error>')
      return
    }
    // It answers before its file is written to the end.
    const end = response.end.bind(response) as (...rest: unknown[]) => void
    response.end = ((...rest: unknown[]) =>
      void written(keyOf(request.url), body.length).then(() => end(...rest))) as unknown as typeof response.end
    const { headers, method, url, socket, httpVersion, rawHeaders } = request
    const replay = new PassThrough()
    replay.end(body)
    handler(Object.assign(replay, { headers, method, url, socket, httpVersion, rawHeaders }) as unknown as IncomingMessage, response)
  }
  const written = async (key: string, size: number) => {
    while ((statSync(fileOf(key), { throwIfNoEntry: false })?.size ?? -1) < size) await new Promise(setImmediate)
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    state.requests.push(`${request.method} ${decodeURIComponent(url.pathname)}`)
    if (state.fault === 'down') request.socket.destroy()
    else if (state.fault === 'list' && url.searchParams.has('list-type')) response.writeHead(500).end()
    else if (state.fault === 'half-upload' && request.method === 'PUT') request.once('data', () => request.socket.destroy())
    else if (state.fault === 'half-download' && request.method === 'GET' && !url.searchParams.has('list-type'))
      breakOff(response, readFileSync(fileOf(keyOf(request.url))))
    else if (request.method === 'PUT') void put(request, response)
    else handler(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const mirror = {
    bucket: BUCKET,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accessKeyId: 'S3RVER',
    secretAccessKey: new Secret('S3RVER'),
    forcePathStyle: true,
  }
  const own = new Bucket({ ...mirror, region: 'auto' })

  return {
    mirror,
    keys: () =>
      readdirSync(join(dir, BUCKET), { recursive: true })
        .map(String)
        .filter((name) => name.endsWith(CONTENT_SUFFIX))
        .map((name) => name.slice(0, -CONTENT_SUFFIX.length))
        .toSorted(),
    read: (key) => new Uint8Array(readFileSync(fileOf(key))),
    async write(key, bytes) {
      const path = join(dir, 'incoming')
      writeFileSync(path, bytes)
      await own.put(key, { path, sha256: createHash('sha256').update(bytes).digest('hex') })
    },
    get fault() {
      return state.fault
    },
    set fault(fault) {
      state.fault = fault
    },
    requests: state.requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

interface Listing {
  objects: { key: string }[]
  isTruncated: boolean
}

/** S3 lists keys in ascending order. This server takes them as the runtime reads folders, and not every runtime sorts. */
function ascending(server: S3rver): S3rver {
  const { store } = server as unknown as { store: { listObjects(bucket: string, options: { maxKeys: number }): Promise<Listing> } }
  const list = store.listObjects.bind(store)
  store.listObjects = async (bucket, options) => {
    const all = await list(bucket, { ...options, maxKeys: Infinity })
    const objects = all.objects.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    return { ...all, objects: objects.slice(0, options.maxKeys), isTruncated: objects.length > options.maxKeys }
  }
  return server
}

/** This server encrypts the tokens of its pages with DES, which the runtime does not have: it gets another cipher for it. */
function replaceDes(): void {
  const { createCipheriv, createDecipheriv } = crypto
  const twice = (bytes: Buffer) => Buffer.concat([bytes, bytes])
  const replaced =
    (create: (...rest: [name: string, key: Buffer, iv: Buffer, ...options: never[]]) => unknown) =>
    (...[name, key, iv, ...options]: [string, Buffer, Buffer, ...never[]]) =>
      name === 'des' ? create('aes-128-cbc', twice(key), twice(iv)) : create(name, key, iv, ...options)
  Object.assign(crypto, { createCipheriv: replaced(createCipheriv as never), createDecipheriv: replaced(createDecipheriv as never) })
}
replaceDes()

function breakOff(response: ServerResponse, bytes: Uint8Array): void {
  response.writeHead(200, { 'content-length': bytes.length })
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.socket?.destroy())
}
