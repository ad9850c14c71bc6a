/**
 * A bucket of an S3-compatible store.
 *
 * What is stored is what was meant: an upload is signed over the SHA-256 of its content, and the store refuses other
 * bytes. The vendor's own library is not used: to read one page of keys it holds the event loop for tens of
 * milliseconds, and requests would wait behind it.
 */
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { systemResolver } from './resolver.ts'
import type { Secret } from '../../base/secret.ts'

/** Until an answer begins. */
const ANSWER_TIMEOUT_MILLIS = 10_000
/** One object, from the first byte of the request to the last one of the answer. */
const OBJECT_TIMEOUT_MILLIS = 300_000
/** Keys of one answer: stores charge by the request. */
const LIST_PAGE = 1000
/** Keys parsed in one go; requests wait as long as that takes. */
const LIST_PIECE = 50
const MAX_LIST_BYTES = 4 * 1024 ** 2
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
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

/** The store said no: its status and the code of its answer. */
export class BucketRefusal extends Error {
  constructor(
    readonly status: number,
    code: string,
  ) {
    super(`the bucket answered ${status} ${code}`)
  }
}

interface BucketRequest {
  method: 'GET' | 'PUT' | 'DELETE'
  key: string
  query?: Record<string, string>
  body?: { path: string; sha256: string }
}

export class Bucket {
  readonly #options: BucketOptions
  /** Address of the bucket, with a slash at its end. */
  readonly #base: string
  /** Signing keys, one for each day. */
  readonly #keys = new Map<string, ArrayBuffer>()
  /** By itself `fetch` would look the name up on the pool that flushes the log. */
  readonly #resolver = systemResolver({ asksSystem: true })

  constructor(options: BucketOptions) {
    this.#options = options
    const { origin, protocol, host } = new URL(options.endpoint)
    this.#base = options.forcePathStyle ? `${origin}/${options.bucket}/` : `${protocol}//${options.bucket}.${host}/`
  }

  /** All objects under the prefix, in ascending order of their keys, in pieces that leave the turn to others. Throws when the store sorts otherwise. */
  async *list(prefix: string): AsyncGenerator<StoredObject[]> {
    let token: string | null = null
    let last = ''
    do {
      const query: Record<string, string> = { 'list-type': '2', prefix, 'max-keys': String(LIST_PAGE), ...(token === null ? {} : { 'continuation-token': token }) }
      const response = await this.#send({ method: 'GET', key: '', query })
      const xml = await boundedText(response)
      token = nextTokenOf(xml)
      for (const piece of objectsOf(xml)) {
        for (const { key } of piece) {
          if (key <= last) throw new Error('the bucket does not list its keys in ascending order')
          last = key
        }
        yield piece
        await setImmediate()
      }
    } while (token !== null)
  }

  /** `sha256` is the digest of the file's content in hexadecimal. */
  async put(key: string, { path, sha256 }: { path: string; sha256: string }): Promise<void> {
    await this.#send({ method: 'PUT', key, body: { path, sha256 } })
  }

  /** Null when there is no such object. Breaking off the iteration ends the transfer. */
  async get(key: string): Promise<AsyncIterable<Uint8Array> | null> {
    try {
      return (await this.#send({ method: 'GET', key })).body
    } catch (error) {
      if (error instanceof BucketRefusal && error.status === 404) return null
      throw error
    }
  }

  /** Deleting what is not there succeeds. */
  async delete(key: string): Promise<void> {
    await this.#send({ method: 'DELETE', key })
  }

  /** Again when the wire or the store fails; every request may be repeated. */
  async #send(request: BucketRequest): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(request).catch((error: unknown) => ({ error }))
      if (outcome instanceof Response) return outcome
      const { error } = outcome
      const isFinal = error instanceof BucketRefusal && error.status < 500 && error.status !== 429
      if (isFinal || attempt === MAX_ATTEMPTS) throw error
      await sleep(RETRY_MILLIS * 4 ** (attempt - 1))
    }
  }

  async #attempt({ method, key, query = {}, body }: BucketRequest): Promise<Response> {
    const { accessKeyId, secretAccessKey, region } = this.#options
    const url = new URL(`${this.#base}${key.split('/').map(encodeURIComponent).join('/')}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const signer = new AwsV4Signer({
      method,
      url: url.href,
      headers: { 'X-Amz-Content-Sha256': body?.sha256 ?? EMPTY_SHA256 },
      accessKeyId,
      secretAccessKey: secretAccessKey.reveal(),
      service: 's3',
      region,
      cache: this.#keys,
    })
    const { headers } = await signer.sign()
    const [address] = await this.#resolver.addresses(url.hostname.replace(/^\[(.*)\]$/, '$1'))
    if (address === undefined) throw new Error(`${url.hostname} has no address`)
    const { host, hostname, protocol } = url
    headers.set('host', host)
    url.hostname = address.includes(':') ? `[${address}]` : address
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new Error('the bucket does not answer')), body ? OBJECT_TIMEOUT_MILLIS : ANSWER_TIMEOUT_MILLIS)
    try {
      const response = await fetch(url, {
        method,
        headers,
        body: body ? Bun.file(body.path) : undefined,
        redirect: 'error',
        ...(protocol === 'https:' && { tls: { serverName: hostname } }),
        // Only what is read to its end later needs a limit for the whole. A timeout outlives its request: thousands of them are a burden.
        signal: method === 'GET' ? AbortSignal.any([late.signal, AbortSignal.timeout(OBJECT_TIMEOUT_MILLIS)]) : late.signal,
      })
      if (!response.ok) throw new BucketRefusal(response.status, /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(await boundedText(response))?.[1] ?? '')
      return response
    } finally {
      clearTimeout(timer)
    }
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_LIST_BYTES) throw new Error('the answer of the bucket is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of an answer to ListObjectsV2, a flat document in which no element holds another of its own name. Null on the last page. */
function nextTokenOf(xml: string): string | null {
  const isTruncated = /<IsTruncated>\s*(true|false)\s*<\/IsTruncated>/.exec(xml)?.[1]
  if (isTruncated === undefined) throw new Error('the answer of the bucket is no list')
  const nextToken = textOf(xml, 'NextContinuationToken')
  if (isTruncated === 'true' && nextToken === null) throw new Error('the bucket broke off its list')
  return isTruncated === 'true' ? nextToken : null
}

/** Of the same answer. Parsed as far as it is asked for. */
function* objectsOf(xml: string): Generator<StoredObject[]> {
  let piece: StoredObject[] = []
  for (const [, fields = ''] of xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
    const key = textOf(fields, 'Key')
    const size = textOf(fields, 'Size')
    if (key === null || size === null || !/^\d{1,15}$/.test(size)) throw new Error('the bucket lists an object without key or size')
    if (piece.push({ key, size: Number(size) }) < LIST_PIECE) continue
    yield piece
    piece = []
  }
  if (piece.length > 0) yield piece
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function textOf(xml: string, element: string): string | null {
  const start = xml.indexOf(`<${element}>`)
  const end = xml.indexOf(`</${element}>`, start)
  if (start < 0 || end < 0) return null
  return xml.slice(start + element.length + 2, end).replace(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|([a-z]{2,4}));/g, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities[name as string] ?? whole
    return String.fromCodePoint(hex !== undefined ? Number.parseInt(hex as string, 16) : Number(decimal))
  })
}
