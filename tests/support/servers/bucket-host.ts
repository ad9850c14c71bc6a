/**
 * A real S3 server on a free port with one bucket, and a wire to it that can fail.
 *
 * It also refuses requests that were not signed with its key, uploads whose bytes are not those that were signed for,
 * objects that are there and were to be new, and parts that it does not have, as the large stores do, and knows the two
 * requests about unfinished uploads that the server lacks.
 */
import crypto, { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import S3rver from 's3rver'
import { Bucket } from '../../../src/platform/network/bucket.ts'
import { Secret } from '../../../src/base/secret.ts'
import { until } from '../until.ts'
import { isSigned } from './bucket-signatures.ts'

const BUCKET = 'copies'
const KEY = 'S3RVER'
const CONTENT_SUFFIX = '._S3rver_object'
const UPLOADS = '._S3rver_uploads'
/** Of an object that was stored; the large ones are never replaced. */
const MAX_COMPARED_BYTES = 64 * 1024

/** `half…`: the connection ends in the middle of a body. A number: every response is an error with this status. */
export type Fault = 'down' | 'list' | 'half-upload' | 'half-download' | 'stalled' | number | null

/** Returns true if it responds to the request, or will. */
export type Interceptor = (request: IncomingMessage, response: ServerResponse, key: string) => boolean

export interface BucketHost extends AsyncDisposable {
  /** For the section `blobMirror` of a configuration. */
  readonly mirror: {
    bucket: string
    endpoint: string
    accessKeyId: string
    secretAccessKey: Secret<string>
    forcePathStyle: boolean
  }
  /** For the section `blobs` of a configuration. */
  readonly primary: {
    store: 's3'
    s3Bucket: string
    s3Endpoint: string
    s3AccessKeyId: string
    s3SecretAccessKey: Secret<string>
    s3ForcePathStyle: boolean
  }
  /** Keys in the bucket, ascending. */
  keys(): string[]
  read(key: string): Uint8Array
  /** Behind the back of the server under test. */
  write(key: string, bytes: Uint8Array): Promise<void>
  /** Behind the back of the server under test. */
  delete(key: string): void
  /** Ids of uploads that were begun and not ended. */
  uploads(): string[]
  fault: Fault
  /** Whether it stores objects whatever the conditions. */
  ignoresConditions: boolean
  /** Looks at each request first. */
  intercept: Interceptor | null
  /** Respond to a request that was intercepted. */
  pass(request: IncomingMessage, response: ServerResponse): void
  /** Requests whose response has not ended. */
  readonly underWay: number
  /** Requests that arrived, as `PUT /copies/blobs/…`. */
  readonly requests: string[]
}

export async function startBucket(): Promise<BucketHost> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bucket-'))
  // It removes a folder with its last object, even while another object is being written into it. This one is never
  // empty.
  mkdirSync(join(dir, BUCKET, 'blobs/incoming'), { recursive: true })
  writeFileSync(join(dir, BUCKET, 'blobs/incoming/.keep'), '')
  const handler = ascending(
    new S3rver({ directory: dir, silent: true, configureBuckets: [{ name: BUCKET, configs: [] }] }),
  ).callback()
  const state: {
    fault: Fault
    ignoresConditions: boolean
    intercept: Interceptor | null
    requests: string[]
  } = {
    fault: null,
    ignoresConditions: false,
    intercept: null,
    requests: [],
  }
  const fileOf = (key: string) => join(dir, BUCKET, `${key}${CONTENT_SUFFIX}`)

  const keyOf = (url = '/') => decodeURIComponent(new URL(url, 'http://localhost').pathname).slice(BUCKET.length + 2)
  /** Requests with a condition wait for each other. */
  let conditional = Promise.resolve()
  /** Keys that were written on a condition, and the last request about each: nobody reads one that is half written. */
  const whole = new Map<string, Promise<void>>()
  const inTurn = async (key: string, response: ServerResponse): Promise<void> => {
    const before = whole.get(key)
    const { promise, resolve } = Promise.withResolvers<void>()
    whole.set(key, promise)
    response.once('close', resolve)
    await before
  }
  /** The newest request to change each file. */
  const changing = new Map<string, IncomingMessage>()
  let isClosed = false
  const put = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
    if (request.headers['x-amz-content-sha256'] !== createHash('sha256').update(body).digest('hex')) {
      response
        .writeHead(400, { 'content-type': 'application/xml' })
        .end('<Error><Code>XAmzContentSHA256Mismatch</Code></Error>')
      return
    }
    const { 'if-match': condition, 'if-none-match': noneMatch } = state.ignoresConditions ? {} : request.headers
    if (condition !== undefined || noneMatch !== undefined) {
      const before = conditional
      const { promise, resolve } = Promise.withResolvers<void>()
      conditional = promise
      response.once('close', resolve)
      await before
      await inTurn(keyOf(request.url), response)
    }
    if (condition !== undefined) {
      const path = fileOf(keyOf(request.url))
      const tag = existsSync(path) ? `"${createHash('md5').update(readFileSync(path)).digest('hex')}"` : null
      if (tag !== condition) {
        response
          .writeHead(tag === null ? 404 : 412, { 'content-type': 'application/xml' })
          .end('<Error><Code>PreconditionFailed</Code></Error>')
        return
      }
    }
    if (noneMatch === '*' && existsSync(fileOf(keyOf(request.url)))) {
      response
        .writeHead(412, { 'content-type': 'application/xml' })
        .end('<Error><Code>PreconditionFailed</Code></Error>')
      return
    }
    // It answers before its file is written to the end.
    const end = response.end.bind(response) as (...rest: unknown[]) => void
    const isStored = () => (response.statusCode < 300 ? written(request, body) : Promise.resolve())
    changing.set(pathIn(request), request)
    response.end = ((...rest: unknown[]) => void isStored().then(() => end(...rest))) as unknown as typeof response.end
    handler(replayed(request, body), response)
  }
  const complete = async (request: IncomingMessage, response: ServerResponse, id: string) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
    const parts = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, part]) =>
      join(uploadsDir, id, part!),
    )
    if (parts.every((path) => existsSync(path))) handler(replayed(request, body), response)
    else response.writeHead(400, { 'content-type': 'application/xml' }).end('<Error><Code>InvalidPart</Code></Error>')
  }
  /** The file that a request changes: of an object, or of a part of one. */
  const pathIn = ({ url }: IncomingMessage): string => {
    const { searchParams } = new URL(url ?? '/', 'http://localhost')
    const id = searchParams.get('uploadId')
    return id === null ? fileOf(keyOf(url)) : join(uploadsDir, id, searchParams.get('partNumber') ?? '')
  }
  /** Resolves once the file has the content, or another request has replaced or deleted it. */
  const written = async (request: IncomingMessage, body: Buffer) => {
    if (request.headers['x-amz-copy-source'] !== undefined) return
    const path = pathIn(request)
    const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? -1
    // What the object had before may have the same size.
    const isOther = () => body.length <= MAX_COMPARED_BYTES && !readFileSync(path).equals(body)
    const isOver = () => isClosed || changing.get(path) !== request
    await until(() => isOver() || (size() >= body.length && !isOther()), { maxPauseMillis: 1 })
  }
  const uploadsDir = join(dir, BUCKET, UPLOADS)
  const uploads = () => (existsSync(uploadsDir) ? readdirSync(uploadsDir) : [])
  /** Responds to what the server does not know, or does in another way. */
  const respondsToUploads = (request: IncomingMessage, response: ServerResponse, { searchParams }: URL): boolean => {
    const { method } = request
    const id = searchParams.get('uploadId')
    if (method === 'DELETE' && id !== null) {
      const isThere = uploads().includes(id)
      rmSync(join(uploadsDir, id), { recursive: true, force: true })
      for (const path of changing.keys()) if (path.startsWith(join(uploadsDir, id))) changing.delete(path)
      if (isThere) response.writeHead(204).end()
      else
        response.writeHead(404, { 'content-type': 'application/xml' }).end('<Error><Code>NoSuchUpload</Code></Error>')
      return true
    }
    if (method === 'POST' && id !== null) {
      void complete(request, response, id)
      return true
    }
    if (method !== 'GET' || !searchParams.has('uploads')) return false
    const found = uploads().map((each) => {
      const path = join(uploadsDir, each, 'key')
      return `<Upload><Key>${readFileSync(path, 'utf8')}</Key><UploadId>${each}</UploadId><Initiated>${statSync(path).mtime.toISOString()}</Initiated></Upload>`
    })
    response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(`<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${found.join('')}</ListMultipartUploadsResult>`)
    return true
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    state.requests.push(`${request.method} ${decodeURIComponent(url.pathname)}`)
    underWay++
    response.once('close', () => underWay--)
    if (state.intercept?.(request, response, keyOf(request.url)) !== true) pass(request, response)
  })
  let underWay = 0
  const pass = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (state.fault === 'down') request.socket.destroy()
    else if (state.fault === 'stalled') request.resume()
    else if (typeof state.fault === 'number') response.writeHead(state.fault).end()
    else if (state.fault === 'list' && url.searchParams.has('list-type')) response.writeHead(500).end()
    else if (state.fault === 'half-upload' && request.method === 'PUT')
      request.once('data', () => request.socket.destroy())
    else if (state.fault === 'half-download' && request.method === 'GET' && !url.searchParams.has('list-type'))
      breakOff(response, readFileSync(fileOf(keyOf(request.url))))
    else if (!isSigned({ method: request.method!, target: request.url!, headers: request.headers }, KEY))
      response
        .writeHead(403, { 'content-type': 'application/xml' })
        .end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
    else if (respondsToUploads(request, response, url)) return
    else if (request.method === 'DELETE') {
      changing.delete(pathIn(request))
      handler(request, response)
    } else if (request.method === 'PUT')
      void put(request, response).catch((error) => {
        // The client has gone.
        if (!request.destroyed) throw error
      })
    else if (request.method === 'GET' && whole.has(keyOf(request.url)))
      void inTurn(keyOf(request.url), response).then(() => handler(request, response))
    else handler(request, response)
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const mirror = {
    bucket: BUCKET,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accessKeyId: KEY,
    secretAccessKey: new Secret(KEY),
    forcePathStyle: true,
  }
  const own = new Bucket({ ...mirror, region: 'auto' })

  return {
    mirror,
    primary: {
      store: 's3',
      s3Bucket: mirror.bucket,
      s3Endpoint: mirror.endpoint,
      s3AccessKeyId: mirror.accessKeyId,
      s3SecretAccessKey: mirror.secretAccessKey,
      s3ForcePathStyle: mirror.forcePathStyle,
    },
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
      await own.put(key, { body: Bun.file(path), sha256: createHash('sha256').update(bytes).digest('hex') })
    },
    delete(key) {
      for (const name of [CONTENT_SUFFIX, `${CONTENT_SUFFIX}.md5`, '._S3rver_metadata.json'])
        rmSync(join(dir, BUCKET, `${key}${name}`), { force: true })
      changing.delete(fileOf(key))
    },
    uploads,
    pass,
    get underWay() {
      return underWay
    },
    get ignoresConditions() {
      return state.ignoresConditions
    },
    set ignoresConditions(ignores) {
      state.ignoresConditions = ignores
    },
    get intercept() {
      return state.intercept
    },
    set intercept(intercept) {
      state.intercept = intercept
    },
    get fault() {
      return state.fault
    },
    set fault(fault) {
      state.fault = fault
    },
    requests: state.requests,
    async [Symbol.asyncDispose]() {
      isClosed = true
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

/**
 * S3 lists keys in ascending order. This server takes them as the runtime reads folders, and not every runtime sorts.
 */
function ascending(server: S3rver): S3rver {
  const { store } = server as unknown as {
    store: { listObjects(bucket: string, options: { maxKeys: number }): Promise<Listing> }
  }
  const list = store.listObjects.bind(store)
  store.listObjects = async (bucket, options) => {
    const all = await list(bucket, { ...options, maxKeys: Infinity })
    const objects = all.objects.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    return { ...all, objects: objects.slice(0, options.maxKeys), isTruncated: objects.length > options.maxKeys }
  }
  return server
}

/**
 * This server encrypts the tokens of its pages with DES, which the runtime does not have: it gets another cipher for
 * it.
 */
function replaceDes(): void {
  const { createCipheriv, createDecipheriv } = crypto
  const twice = (bytes: Buffer) => Buffer.concat([bytes, bytes])
  const replaced =
    (create: (...rest: [name: string, key: Buffer, iv: Buffer, ...options: never[]]) => unknown) =>
    (...[name, key, iv, ...options]: [string, Buffer, Buffer, ...never[]]) =>
      name === 'des' ? create('aes-128-cbc', twice(key), twice(iv)) : create(name, key, iv, ...options)
  Object.assign(crypto, {
    createCipheriv: replaced(createCipheriv as never),
    createDecipheriv: replaced(createDecipheriv as never),
  })
}
replaceDes()

/** A request whose body has been read. */
function replayed(
  { headers, method, url, socket, httpVersion, rawHeaders }: IncomingMessage,
  body: Buffer,
): IncomingMessage {
  const replay = new PassThrough()
  replay.end(body)
  return Object.assign(replay, { headers, method, url, socket, httpVersion, rawHeaders }) as unknown as IncomingMessage
}

function breakOff(response: ServerResponse, bytes: Uint8Array): void {
  response.writeHead(200, { 'content-length': bytes.length })
  response.write(bytes.subarray(0, bytes.length >> 1), () => response.socket?.destroy())
}
