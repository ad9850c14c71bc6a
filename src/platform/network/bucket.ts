/**
 * A bucket of an S3-compatible store.
 *
 * An upload is signed over the SHA-256 of its content, so the store refuses any other bytes. The vendor's library signs
 * requests and parses responses. It is loaded with the first request, so servers without a bucket never load it. The
 * transport is our own.
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ListObjectsV2Output, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { systemResolver } from './resolver.ts'
import type { Secret } from '../../base/secret.ts'

/** Timeout until a response begins. */
const ANSWER_TIMEOUT_MILLIS = 10_000
/** Timeout of one object, from the first byte of the request to the last byte of the response. */
const OBJECT_TIMEOUT_MILLIS = 300_000
/** Keys per response: the library parses this many in two milliseconds without a pause, and a thousand in fifteen. */
const LIST_PAGE = 100
/** Longest response other than an object. */
const MAX_ANSWER_BYTES = 1024 ** 2
const MAX_ATTEMPTS = 3
const RETRY_MILLIS = 100

export interface BucketOptions {
  bucket: string
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: Secret<string>
  forcePathStyle: boolean
}

export interface StoredObject {
  key: string
  size: number
}

/** The store refused a request: the HTTP status and error code of its response. */
export class BucketRefusal extends Error {
  constructor(
    readonly status: number,
    code: string,
  ) {
    super(`the bucket returned ${status} ${code}`)
  }
}

type Library = typeof import('@aws-sdk/client-s3')

interface Store {
  library: Library
  client: S3Client
}

const silent = { trace: () => {}, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export class Bucket {
  readonly #options: BucketOptions
  #store: Promise<Store> | null = null

  constructor(options: BucketOptions) {
    this.#options = options
  }

  /**
   * Yields all objects under the prefix in ascending order of their keys, in pages small enough not to hold the event
   * loop. Throws if the store lists them in another order, and `BucketRefusal` if it refuses.
   */
  async *list(prefix: string): AsyncGenerator<StoredObject[]> {
    let token: string | undefined
    let last = ''
    do {
      const page = await this.#ask(({ client, library }, signal) =>
        client.send(
          new library.ListObjectsV2Command({ Bucket: this.#options.bucket, Prefix: prefix, MaxKeys: LIST_PAGE, ContinuationToken: token }),
          { abortSignal: signal },
        ),
      )
      token = nextTokenOf(page)
      const objects = objectsOf(page)
      for (const { key } of objects) {
        if (key <= last) throw new Error('the bucket does not list its keys in ascending order')
        last = key
      }
      if (objects.length > 0) yield objects
    } while (token !== undefined)
  }

  /** Store a file. `sha256` is the digest of its content in hexadecimal. Throws `BucketRefusal` if the store refuses. */
  async put(key: string, { path, sha256 }: { path: string; sha256: string }): Promise<void> {
    const content = Bun.file(path)
    await this.#ask(({ client, library }, signal) => {
      const command = new library.PutObjectCommand({ Bucket: this.#options.bucket, Key: key, Body: content, ContentLength: content.size })
      // Without this header the library would read the file a second time.
      command.middlewareStack.add((next) => (args) => next(withHeader(args, 'x-amz-content-sha256', sha256)), { step: 'build' })
      return client.send(command, { abortSignal: signal })
    }, OBJECT_TIMEOUT_MILLIS)
  }

  /**
   * Returns the content of an object, or null if there is no such object. Ending the iteration early ends the transfer.
   * Throws `BucketRefusal` if the store refuses.
   */
  async get(key: string): Promise<AsyncIterable<Uint8Array> | null> {
    try {
      const { Body } = await this.#ask(({ client, library }, signal) => {
        const whole = AbortSignal.any([signal, AbortSignal.timeout(OBJECT_TIMEOUT_MILLIS)])
        return client.send(new library.GetObjectCommand({ Bucket: this.#options.bucket, Key: key }), { abortSignal: whole })
      })
      return Body as unknown as AsyncIterable<Uint8Array>
    } catch (error) {
      if (error instanceof BucketRefusal && error.status === 404) return null
      throw error
    }
  }

  /** Delete an object. Succeeds if it does not exist. Throws `BucketRefusal` if the store refuses. */
  async delete(key: string): Promise<void> {
    await this.#ask(({ client, library }, signal) =>
      client.send(new library.DeleteObjectCommand({ Bucket: this.#options.bucket, Key: key }), { abortSignal: signal }),
    )
  }

  /** Send a request, and retry it if the transport or the store fails: every request may be repeated. */
  async #ask<Answer>(
    request: (store: Store, signal: AbortSignal) => Promise<Answer>,
    timeoutMillis: number = ANSWER_TIMEOUT_MILLIS,
  ): Promise<Answer> {
    const store = await (this.#store ??= this.#open())
    for (let attempt = 1; ; attempt++) {
      const late = new AbortController()
      const timer = setTimeout(() => late.abort(new Error('the bucket does not respond')), timeoutMillis)
      try {
        return await request(store, late.signal)
      } catch (error) {
        const refusal = refusalOf(error)
        const isFinal = refusal !== null && refusal.status < 500 && refusal.status !== 429
        if (isFinal || attempt === MAX_ATTEMPTS) throw refusal ?? error
      } finally {
        clearTimeout(timer)
      }
      await sleep(RETRY_MILLIS * 4 ** (attempt - 1))
    }
  }

  /** Sets every option that the library would otherwise look for in environment variables and files. */
  async #open(): Promise<Store> {
    const library = await import('@aws-sdk/client-s3')
    const { endpoint, region, forcePathStyle, accessKeyId, secretAccessKey } = this.#options
    const client = new library.S3Client({
      endpoint,
      region,
      forcePathStyle,
      credentials: { accessKeyId, secretAccessKey: secretAccessKey.reveal() },
      defaultsMode: 'standard',
      // `#ask` retries instead, with a body that starts from its beginning.
      maxAttempts: 1,
      retryMode: 'standard',
      // Otherwise the library logs to the console in addition to throwing.
      logger: silent,
      // Uploads are signed over their digest. Not every store supports further checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false,
      requestHandler: new Wire(),
      useDualstackEndpoint: false,
      useFipsEndpoint: false,
      useArnRegion: false,
      disableMultiregionAccessPoints: true,
      disableS3ExpressSessionAuth: true,
    })
    return { library, client }
  }
}

function withHeader<Args extends { request: unknown }>(args: Args, name: string, value: string): Args {
  const { headers } = args.request as { headers: Record<string, string> }
  headers[name] = value
  return args
}

/** A request as the library passes it. */
interface WireRequest {
  method: string
  protocol: string
  hostname: string
  port?: number
  path: string
  query?: Record<string, string | null>
  headers: Record<string, string>
  body?: unknown
}

/** The transport of the library. As with all requests of this server, our resolver looks names up and no redirect is followed. */
class Wire {
  readonly metadata = { handlerProtocol: 'http/1.1' }
  /** `fetch` itself would look the name up on the thread pool that flushes the log. */
  readonly #resolver = systemResolver({ asksSystem: true })

  async handle(
    { method, protocol, hostname, port, path, query = {}, headers, body }: WireRequest,
    { abortSignal }: { abortSignal?: unknown } = {},
  ) {
    const [address] = await this.#resolver.addresses(hostname.replace(/^\[(.*)\]$/, '$1'))
    if (address === undefined) throw new Error(`${hostname} has no address`)
    const host = `${address.includes(':') ? `[${address}]` : address}${port === undefined ? '' : `:${port}`}`
    const search = Object.entries(query).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value ?? '')}`)
    const response = await fetch(`${protocol}//${host}${path}?${search.join('&')}`, {
      method,
      headers,
      body: body as Blob | undefined,
      redirect: 'error',
      ...(protocol === 'https:' && { tls: { serverName: hostname } }),
      signal: abortSignal as AbortSignal | undefined,
    })
    const isObject = response.ok && method === 'GET' && !('list-type' in query)
    return {
      response: {
        statusCode: response.status,
        headers: Object.fromEntries(response.headers),
        // The library reads other responses as a whole, so they are bounded. The caller reads an object.
        body: isObject ? response.body : Readable.from(bounded(response.body ?? [])),
      },
    }
  }

  updateHttpClientConfig(): void {}
  httpHandlerConfigs(): object {
    return {}
  }
}

async function* bounded(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > MAX_ANSWER_BYTES) throw new Error('the response of the bucket is too long')
    yield chunk
  }
}

/** Returns null if the store sent no response, or none that can be parsed. */
function refusalOf(error: unknown): BucketRefusal | null {
  const { $metadata, name } = error as Partial<S3ServiceException>
  const status = $metadata?.httpStatusCode ?? 0
  return status < 300 ? null : new BucketRefusal(status, name ?? '')
}

/** Returns undefined on the last page. Throws if the response is not a complete list. */
function nextTokenOf({ IsTruncated, NextContinuationToken }: ListObjectsV2Output): string | undefined {
  if (IsTruncated === undefined) throw new Error('the response of the bucket is not a list of objects')
  if (IsTruncated && NextContinuationToken === undefined) throw new Error('the bucket sent an incomplete list of objects')
  return IsTruncated ? NextContinuationToken : undefined
}

const objectsOf = ({ Contents = [] }: ListObjectsV2Output): StoredObject[] =>
  Contents.map(({ Key, Size }) => {
    if (Key === undefined || Size === undefined || !Number.isSafeInteger(Size) || Size < 0)
      throw new Error('the bucket lists an object without key or size')
    return { key: Key, size: Size }
  })
