/**
 * How the vendor's library reaches a bucket: it signs requests and parses responses, and this transport sends them.
 * The library is loaded with the first request, so servers without a bucket never load it.
 */
import { Readable } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { systemResolver } from './resolver.ts'
import type { Secret } from '../../base/secret.ts'

/** Longest response other than an object. */
const MAX_ANSWER_BYTES = 1024 ** 2

export interface BucketOptions {
  bucket: string
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: Secret<string>
  forcePathStyle: boolean
}

export type S3Library = typeof import('./bucket-library.ts')

export interface S3Store {
  library: S3Library
  client: S3Client
}

const silent = { trace: () => {}, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Sets every option that the library would otherwise look for in environment variables and files. */
export async function openStore({
  endpoint,
  region,
  forcePathStyle,
  accessKeyId,
  secretAccessKey,
}: BucketOptions): Promise<S3Store> {
  const library = await import('./bucket-library.ts')
  const client = new library.S3Client({
    endpoint,
    region,
    forcePathStyle,
    credentials: { accessKeyId, secretAccessKey: secretAccessKey.reveal() },
    defaultsMode: 'standard',
    // `Bucket` retries instead, with a body that starts from its beginning.
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

/**
 * The transport of the library. As with all requests of this server, our resolver looks names up and no redirect is
 * followed.
 */
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
    const search = Object.entries(query).map(
      ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value ?? '')}`,
    )
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
