/**
 * A bucket of an S3-compatible store.
 *
 * An upload is signed over the SHA-256 of its content, so the store refuses any other bytes. Every request has a
 * timeout, and is retried if the transport or the store fails: all of them may be repeated.
 */
import { madeOnce } from '../../base/made-once.ts'
import { wholeOf } from '../../base/whole-of.ts'
import { Stalled, steady, uploadPace } from '../../base/unstalled.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { Answer } from './bucket-answers.ts'
import { BucketRefusal, BucketUnavailable } from './bucket-faults.ts'
import { Store, type BucketOptions, type Content } from './bucket-wire.ts'

/** Timeout until a response begins. */
const ANSWER_TIMEOUT_MILLIS = 10_000
/** Timeout until the store has copied an object, or joined its parts. */
export const JOIN_TIMEOUT_MILLIS = 5 * MINUTE_MILLIS
/**
 * A slower upload counts as stalled. The first limit is for its first `FIRST_BYTES`, the second for the rest. The
 * runtime does not tell how much of an upload the store has received.
 */
const MIN_FIRST_BYTES_PER_SEC = 128 * 1024
const MIN_BYTES_PER_SEC = 32 * 1024
const FIRST_BYTES = 1024 ** 2
/** Timeout of a read into memory, which is at most a megabyte. */
const PIECE_TIMEOUT_MILLIS = 15_000
/** Timeout of a request about a small object that is replaced again and again. */
const REPLACE_TIMEOUT_MILLIS = 2000
/** Most bytes of such an object. */
const MAX_REPLACED_BYTES = 64 * 1024
/** Keys per response: few enough to be parsed without a pause of the event loop. */
const LIST_PAGE = 100
/**
 * Most consecutive pages without a key, from a store that says that there are more. A store that keeps versions may
 * send some hundred of them while it passes over deleted objects.
 */
const MAX_EMPTY_PAGES = 1000
const MAX_ATTEMPTS = 3
const RETRY_MILLIS = 100
/** There is such an object already, or another request is making it. */
const occupied: ReadonlySet<number> = new Set([409, 412])
/** How a store refuses headers that it does not know. */
const NOT_IMPLEMENTED = 501
const PARTIAL_CONTENT = 206
/** How a store refuses a range that begins where the object ends. */
const RANGE_NOT_SATISFIABLE = 416
/** Attempts to store an object that is not there afterwards. */
const MAX_STORE_ATTEMPTS = 2

export interface StoredObject {
  key: string
  size: number
  /** By the clock of the store; 0 if it does not say. */
  modifiedAt: number
}

/** Bytes of an object. */
export interface Piece {
  bytes: Uint8Array
  /** Of the whole object. */
  size: number
  /** Changes when the object is replaced; empty if the store gives none. */
  tag: string
}

/**
 * Admits the requests to a bucket, attempt by attempt. Throws `BucketUnavailable` instead of making a hopeless request.
 */
export interface Admission {
  attempt<T>(request: () => Promise<T>, signal: AbortSignal | undefined): Promise<T>
}

export interface AskOptions {
  timeoutMillis?: number
  /** Ends the request. */
  signal?: AbortSignal | undefined
}

const freely: Admission = { attempt: (request) => request() }

export class Bucket {
  readonly name: string
  readonly #admission: Admission
  readonly #store: () => Promise<Store>

  constructor(
    options: BucketOptions,
    admission: Admission = freely,
    /** The pace that downloads have to keep. */
    readonly pace = uploadPace,
  ) {
    this.name = options.bucket
    this.#store = madeOnce(() => Store.open(options))
    this.#admission = admission
  }

  /**
   * Yields all objects under the prefix in ascending order of their keys, in pages small enough not to hold the event
   * loop. Throws if the store lists them in another order or never comes to an end, and `BucketRefusal` if it refuses.
   */
  async *list(prefix: string): AsyncGenerator<StoredObject[]> {
    let token: string | undefined
    let last = ''
    let empty = 0
    do {
      const query = { 'list-type': 2, 'max-keys': LIST_PAGE, prefix, 'continuation-token': token }
      const page = await this.ask((store, signal) => store.ask({ method: 'GET', query }, signal))
      token = nextTokenOf(page)
      const objects = objectsOf(page)
      for (const { key } of objects) {
        if (key <= last) throw new Error('the bucket does not list its keys in ascending order')
        last = key
      }
      empty = objects.length > 0 ? 0 : empty + 1
      if (empty > MAX_EMPTY_PAGES) throw new Error('the bucket does not come to the end of its list')
      if (objects.length > 0) yield objects
    } while (token !== undefined)
  }

  /** Store an object. Returns its tag. Throws `BucketRefusal` if the store refuses. */
  put(key: string, content: Content): Promise<string> {
    return this.#surely(key, content.body.size, () => this.#put(key, content))
  }

  /**
   * Stores an object that is small enough to be read into memory, unless there is one with this key already. Returns
   * true if the object is certainly there: the store has answered with the digest of the content, which a proxy that
   * stores nothing cannot know. Otherwise, a read has to tell: there may be another object, an earlier try may have
   * stored this one, or the store makes its tags in another way. Stores without such a condition replace the object.
   */
  async putNew(key: string, content: Content): Promise<boolean> {
    try {
      const tag = await this.#put(key, content, { 'if-none-match': '*' })
      return tag !== null && tagOf(tag).toLowerCase() === (await md5Of(content))
    } catch (error) {
      if (!(error instanceof BucketRefusal)) throw error
      if (error.status === NOT_IMPLEMENTED) await this.put(key, content)
      else if (!occupied.has(error.status)) throw error
      return false
    }
  }

  /**
   * Replaces an object that still has this tag, or creates it if `tag` is null. Returns the new tag. Returns null if
   * the object has another tag by now, or if the response does not prove what was stored: read the object to find out.
   * Stores without such a condition replace the object. Throws `BucketRefusal` if the store refuses.
   */
  async replace(key: string, content: Content, tag: string | null): Promise<string | null> {
    try {
      const condition: Record<string, string> = tag === null ? { 'if-none-match': '*' } : { 'if-match': `"${tag}"` }
      const stored = await this.#put(key, content, condition, REPLACE_TIMEOUT_MILLIS)
      const isProof = stored !== null && tagOf(stored) === (await md5Of(content))
      return isProof ? tagOf(stored) : null
    } catch (error) {
      if (error instanceof BucketRefusal && error.status === NOT_IMPLEMENTED) return this.put(key, content)
      // 404: the object existed, and does not any more.
      if (error instanceof BucketRefusal && (occupied.has(error.status) || error.status === 404)) return null
      throw error
    }
  }

  /**
   * Returns a small object with its tag, or null if there is none. Throws if it is not small, and `BucketRefusal` if
   * the store refuses.
   */
  async tagged(key: string): Promise<{ content: Uint8Array; tag: string } | null> {
    try {
      return await this.ask(
        async (store, signal) => {
          const { body, headers } = await store.send({ method: 'GET', key }, signal)
          return { content: await smallBytesOf(key, body ?? noBytes()), tag: tagOf(headers.get('etag') ?? '') }
        },
        { timeoutMillis: REPLACE_TIMEOUT_MILLIS },
      )
    } catch (error) {
      return nullIfAbsent(error)
    }
  }

  async #put(
    key: string,
    content: Content,
    headers: Record<string, string> = {},
    timeoutMillis = uploadTimeoutMillis(content.body),
  ): Promise<string | null> {
    const stored = await this.ask((store, signal) => store.headers({ method: 'PUT', key, headers, content }, signal), {
      timeoutMillis,
    })
    return stored.get('etag')
  }

  /**
   * Copy an object of this size within the bucket. Returns the tag of the copy. Throws `BucketRefusal` if the store
   * refuses.
   */
  copy(from: string, to: string, size: number): Promise<string> {
    const headers = { 'x-amz-copy-source': `${this.name}/${from}`.split('/').map(encodeURIComponent).join('/') }
    return this.#surely(to, size, async () => {
      const result = await this.ask((store, signal) => store.ask({ method: 'PUT', key: to, headers }, signal), {
        timeoutMillis: JOIN_TIMEOUT_MILLIS,
      })
      return result?.text('ETag') ?? null
    })
  }

  /**
   * Stores an object, and checks that it is there: a proxy may have answered, which stores nothing. `store` returns the
   * tag of the object, which distinguishes it from an earlier one. Every store makes tags in its own way, so tags are
   * only compared with each other. Stores the object again if need be, because another server may have removed it.
   */
  async #surely(key: string, size: number, store: () => Promise<string | null>): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const tag = await store()
      const found = await this.#look(key)
      if (tag !== null && found?.size === size && found.tag === tagOf(tag)) return found.tag
      if (attempt === MAX_STORE_ATTEMPTS)
        throw new Error(
          `the bucket reported storing ${size} bytes, but has ${found === null ? 'nothing' : `${found.size} bytes, or different ones`}`,
        )
    }
  }

  /**
   * Returns the content of an object, beginning with the byte `from`; null if there is no such object. Ending the
   * iteration early ends the transfer, as `stopping` does. Throws `BucketRefusal` if the store refuses.
   */
  async get(
    key: string,
    { from = 0, stopping }: { from?: number; stopping?: AbortSignal | undefined } = {},
  ): Promise<AsyncIterable<Uint8Array> | null> {
    const headers: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` }
    try {
      const late = new AbortController()
      const { status, body } = await this.ask(
        (store, signal) => {
          const ends = [signal, late.signal, ...(stopping ? [stopping] : [])]
          return store.send({ method: 'GET', key, headers }, AbortSignal.any(ends))
        },
        { signal: stopping },
      )
      const content = this.#arriving(body ?? noBytes(), late)
      return from === 0 || status === PARTIAL_CONTENT ? content : bytesAfter(content, from)
    } catch (error) {
      if (error instanceof BucketRefusal && error.status === RANGE_NOT_SATISFIABLE) return noBytes()
      return nullIfAbsent(error)
    }
  }

  /** Passes the body of a response to the caller, and ends the transfer once it stalls. */
  async *#arriving(body: AsyncIterable<Uint8Array>, late: AbortController): AsyncGenerator<Uint8Array> {
    try {
      yield* steady(body, this.pace)
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      late.abort()
      throw new Error('the bucket does not respond', { cause: error })
    }
  }

  /**
   * Read the bytes `first` to `last` of an object into memory. Returns them with the size of the whole object; null if
   * there is no such object. Throws if the store sends other bytes than these, and `BucketRefusal` if it refuses.
   */
  async read(
    key: string,
    { first, last, signal }: { first: number; last: number; signal?: AbortSignal | undefined },
  ): Promise<Piece | null> {
    try {
      return await this.ask(
        async (store, abortSignal) => {
          const part = { method: 'GET', key, headers: { range: `bytes=${first}-${last}` } } as const
          const { body, headers } = await store.send(part, abortSignal)
          const bytes = await bytesOf(body ?? noBytes(), headers.get('content-range') ?? '', first, last)
          return { ...bytes, tag: tagOf(headers.get('etag') ?? '') }
        },
        { timeoutMillis: PIECE_TIMEOUT_MILLIS, signal },
      )
    } catch (error) {
      return nullIfAbsent(error)
    }
  }

  /** Returns the size of an object, or null if there is no such object. Throws `BucketRefusal` if the store refuses. */
  async sizeOf(key: string): Promise<number | null> {
    return (await this.#look(key))?.size ?? null
  }

  async #look(key: string): Promise<{ size: number; tag: string } | null> {
    try {
      const headers = await this.ask((store, signal) => store.headers({ method: 'HEAD', key }, signal))
      return { size: Number(headers.get('content-length')), tag: tagOf(headers.get('etag') ?? '') }
    } catch (error) {
      return nullIfAbsent(error)
    }
  }

  /** Delete an object. Succeeds if it does not exist. Throws `BucketRefusal` if the store refuses. */
  async delete(key: string, signal?: AbortSignal): Promise<void> {
    await this.ask((store, abortSignal) => store.headers({ method: 'DELETE', key }, abortSignal), { signal })
  }

  /** Send a request, and retry it if the transport or the store fails. `timeoutMillis` bounds one attempt. */
  async ask<T>(
    request: (store: Store, signal: AbortSignal) => Promise<T>,
    { timeoutMillis = ANSWER_TIMEOUT_MILLIS, signal }: AskOptions = {},
  ): Promise<T> {
    const store = await this.#store()
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      try {
        return await this.#admission.attempt(
          () => answerOf(timeoutMillis, signal, (abortSignal) => request(store, abortSignal)),
          signal,
        )
      } catch (error) {
        signal?.throwIfAborted()
        const isFinal = error instanceof BucketUnavailable || (error instanceof BucketRefusal && !error.isPassing)
        if (isFinal || attempt === MAX_ATTEMPTS) throw error
      }
      // Spread, so that requests that failed together do not return together.
      await sleep(RETRY_MILLIS * 4 ** (attempt - 1) * (0.5 + Math.random()))
    }
  }
}

/** The smaller an upload, the sooner its sender learns that the bucket stalls. A large one may take hours. */
export const uploadTimeoutMillis = ({ size }: Pick<Blob, 'size'>): number =>
  ANSWER_TIMEOUT_MILLIS +
  (Math.min(size, FIRST_BYTES) / MIN_FIRST_BYTES_PER_SEC + Math.max(0, size - FIRST_BYTES) / MIN_BYTES_PER_SEC) * 1000

/** Throws `BucketRefusal` if the store refuses. */
async function answerOf<T>(
  millis: number,
  signal: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error('the bucket does not respond')), millis)
  try {
    return await request(signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]))
  } catch (error) {
    throw late.signal.aborted && !(error instanceof BucketRefusal) ? late.signal.reason : error
  } finally {
    clearTimeout(timer)
  }
}

const md5Of = async ({ body, md5 }: Content): Promise<string> =>
  md5 ?? new Bun.CryptoHasher('md5').update(await body.bytes()).digest('hex')

/** A proxy that compresses makes tags weak. RFC 9110 section 8.8.3. */
const tagOf = (header: string): string => header.replace(/^W\/|"/g, '')

function nullIfAbsent(error: unknown): null {
  if (error instanceof BucketRefusal && error.status === 404 && error.code !== 'NoSuchBucket') return null
  throw error
}

/** Throws if the response is not the part that was asked for. */
async function bytesOf(
  body: AsyncIterable<Uint8Array>,
  range: string,
  first: number,
  last: number,
): Promise<Omit<Piece, 'tag'>> {
  const [, from, to, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? []
  if (Number(from) !== first || Number(to) < first || Number(to) > last)
    throw new Error('the bucket sent a different range of the object than requested')
  const expected = Number(to) - first + 1
  const chunks: Uint8Array[] = []
  let count = 0
  for await (const chunk of body) {
    count += chunk.byteLength
    if (count > expected) break
    chunks.push(chunk)
  }
  if (count !== expected) throw new Error(`the bucket sent ${count} bytes instead of ${expected}`)
  return { size: Number(size), bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) }
}

const smallBytesOf = (key: string, body: AsyncIterable<Uint8Array>): Promise<Uint8Array> =>
  wholeOf(body, MAX_REPLACED_BYTES, () => new Error(`${key} has more than ${MAX_REPLACED_BYTES} bytes`))

async function* noBytes(): AsyncGenerator<Uint8Array> {}

/** Returns a response without its first bytes, for a store that ignores ranges. */
async function* bytesAfter(content: AsyncIterable<Uint8Array>, from: number): AsyncGenerator<Uint8Array> {
  let skipped = 0
  for await (const chunk of content) {
    const rest = chunk.subarray(Math.min(chunk.byteLength, from - skipped))
    skipped += chunk.byteLength - rest.byteLength
    if (rest.byteLength > 0) yield rest
  }
}

/** Returns undefined on the last page. Throws if the response is not a complete list. */
function nextTokenOf(page: Answer | null): string | undefined {
  const isTruncated = page?.text('IsTruncated')
  if (isTruncated === undefined) throw new Error('the response of the bucket is not a list of objects')
  const token = page?.text('NextContinuationToken')
  if (isTruncated === 'true' && token === undefined) throw new Error('the bucket sent an incomplete list of objects')
  return isTruncated === 'true' ? token : undefined
}

const objectsOf = (page: Answer | null): StoredObject[] =>
  (page?.all('Contents') ?? []).map((object) => {
    const key = object.text('Key')
    const size = Number(object.text('Size') ?? NaN)
    if (key === undefined || !Number.isSafeInteger(size) || size < 0)
      throw new Error('the bucket lists an object without key or size')
    return { key, size, modifiedAt: Date.parse(object.text('LastModified') ?? '') || 0 }
  })
