/**
 * How requests reach a bucket: signed by AWS Signature Version 4, and sent as all requests of this server are, to an
 * address that our resolver found and without following redirects. The libraries are loaded with the first request, so
 * servers without a bucket never load them.
 */
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import type { sign } from 'aws4'
import { codingsIn, decoded, isKnownCoding, MAX_CODINGS } from '../../base/content-codings.ts'
import { answerOf, textOf, type Answer } from './bucket-answers.ts'
import { BucketRefusal } from './bucket-faults.ts'
import { systemResolver } from './resolver.ts'
import type { Secret } from '../../base/secret.ts'

export interface BucketOptions {
  bucket: string
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: Secret<string>
  forcePathStyle: boolean
}

/**
 * The content of an upload: a file as `Bun.file` gives it, or another blob. `sha256` and `md5` are its digests in
 * hexadecimal; `md5` is for content that is stored on a condition.
 */
export interface Content {
  body: Blob
  sha256: string
  md5?: string
}

export interface StoreRequest {
  method: 'DELETE' | 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** Without one, the request is about the bucket itself. */
  key?: string
  query?: Record<string, string | number | undefined>
  headers?: Record<string, string>
  content?: Content
}

export const contentOf = (text: string): Content => ({
  body: new Blob([text]),
  sha256: new Bun.CryptoHasher('sha256').update(text).digest('hex'),
})

const NOTHING = contentOf('').sha256

/** As in a signature: some stores verify the path as it was sent. RFC 3986, 2.3. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)

/** A bucket name that may come before that of the endpoint, so that a certificate with a wildcard covers both. */
const hostLabel = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/

export class Store {
  /** The bucket's own URL, ending with a slash. */
  readonly #base: URL
  /** `fetch` itself would look the name up on the thread pool that flushes the log. */
  readonly #resolver = systemResolver({ asksSystem: true })

  private constructor(
    readonly options: BucketOptions,
    readonly signer: typeof sign,
  ) {
    this.#base = baseOf(options)
  }

  static async open(options: BucketOptions): Promise<Store> {
    return new Store(options, (await import('aws4')).sign)
  }

  /** Returns a response that reports success. Throws `BucketRefusal` if the store refuses. */
  async send(request: StoreRequest, signal: AbortSignal): Promise<Response> {
    const url = this.#urlOf(request)
    const headers = this.#signed(url, request)
    const { method, content } = request
    const response = await fetch(await this.#at(url), {
      method,
      headers: {
        ...headers,
        'accept-encoding': 'identity',
        ...(content && { 'content-type': 'application/octet-stream' }),
      },
      body: content?.body,
      redirect: 'error',
      // The runtime would end an upload after five minutes, even while it moves. Each request has a timeout of ours.
      timeout: false,
      decompress: false,
      ...(url.protocol === 'https:' && { tls: { serverName: url.hostname } }),
      signal,
    })
    const plain = withoutCodings(response)
    if (!plain.ok) throw new BucketRefusal(plain.status, await errorCodeOf(plain))
    return plain
  }

  /**
   * Returns the XML that the store answers with; null if the answer is empty. A copy or completion may begin as a
   * success and fail later: the error is then in the body.
   */
  async ask(request: StoreRequest, signal: AbortSignal): Promise<Answer | null> {
    const answer = await answerOf(await this.send(request, signal))
    if (answer?.name === 'Error') throw new BucketRefusal(503, answer.text('Code') ?? '')
    return answer
  }

  /** Returns the headers of a response whose body does not matter. */
  async headers(request: StoreRequest, signal: AbortSignal): Promise<Headers> {
    const response = await this.send(request, signal)
    await textOf(response)
    return response.headers
  }

  #urlOf({ key = '', query = {} }: StoreRequest): URL {
    const url = new URL(this.#base)
    url.pathname += key.split('/').map(encoded).join('/')
    // A space is `%20` in a signature, where `searchParams` would send a plus.
    url.search = Object.entries(query)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${encoded(String(value))}`)
      .join('&')
    return url
  }

  #signed(url: URL, { method, headers = {}, content }: StoreRequest): Record<string, string> {
    const { accessKeyId, region, secretAccessKey } = this.options
    const request = {
      service: 's3',
      region,
      method,
      path: url.pathname + url.search,
      headers: { ...headers, host: url.host, 'x-amz-content-sha256': content?.sha256 ?? NOTHING },
    }
    const signed = this.signer(request, { accessKeyId, secretAccessKey: secretAccessKey.reveal() })
    return signed.headers as Record<string, string>
  }

  /** The URL with an address in place of the name. */
  async #at(url: URL): Promise<string> {
    const [address] = await this.#resolver.addresses(url.hostname.replace(/^\[(.*)\]$/, '$1'))
    if (address === undefined) throw new Error(`${url.hostname} has no address`)
    const there = new URL(url)
    there.hostname = isIP(address) === 6 ? `[${address}]` : address
    return there.href
  }
}

/** Puts the bucket's name before the endpoint's, or into the path if it has to be there, or if the settings say so. */
function baseOf({ endpoint, bucket, forcePathStyle }: BucketOptions): URL {
  const url = new URL(endpoint)
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  const isName = isIP(url.hostname.replace(/^\[(.*)\]$/, '$1')) === 0
  if (!forcePathStyle && isName && hostLabel.test(bucket)) url.hostname = `${bucket}.${url.hostname}`
  else url.pathname += `${encoded(bucket)}/`
  return url
}

/** How an object was uploaded. Some stores return this coding although they decoded the object then. */
const UPLOAD_CODING = 'aws-chunked'

/**
 * Decodes what a proxy has compressed unasked, piece by piece. The runtime would decode everything that has arrived at
 * once, and a kilobyte may decompress to gigabytes.
 */
function withoutCodings(response: Response): Response {
  const { body, headers } = response
  const codings = codingsIn(headers.get('content-encoding')).filter((coding) => coding !== UPLOAD_CODING)
  if (codings.length === 0 || body === null) return response
  if (codings.length > MAX_CODINGS || !codings.every(isKnownCoding)) {
    void body.cancel()
    throw new Error('the response of the bucket has an unknown content-encoding')
  }
  return new Response(Readable.toWeb(Readable.from(decoded(body, codings))) as ReadableStream<Uint8Array>, response)
}

/** Returns the error code of the store; empty if it gives none, as in responses to `HEAD`. */
async function errorCodeOf(response: Response): Promise<string> {
  try {
    return (await answerOf(response))?.text('Code') ?? ''
  } catch {
    return '' // the response is not that of a store
  }
}
