/**
 * A bucket of an S3-compatible store.
 *
 * An upload is signed over the SHA-256 of its content, so the store refuses any other bytes. Every request has a
 * timeout, and is retried if the transport or the store fails: all of them may be repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import type { ListObjectsV2Output } from '@aws-sdk/client-s3'
import { BucketRefusal, bucketRefusalOf, BucketUnavailable } from './bucket-faults.ts'
import { openStore, type BucketOptions, type S3Store } from './bucket-wire.ts'

/** Timeout until a response begins. */
const ANSWER_TIMEOUT_MILLIS = 10_000
/** Longest timeout of one object, from the first byte of the request to the last byte of the response. */
export const OBJECT_TIMEOUT_MILLIS = 5 * MINUTE_MILLIS
/** A slower upload counts as stalled. */
const MIN_BYTES_PER_SEC = 128 * 1024
/** Timeout of a read into memory, which is at most a megabyte. */
const PIECE_TIMEOUT_MILLIS = 15_000
/** Keys per response: the library parses this many in two milliseconds without a pause, and a thousand in fifteen. */
const LIST_PAGE = 100
const MAX_ATTEMPTS = 3
const RETRY_MILLIS = 100
/** There is such an object, or another request is making it. */
const occupied: ReadonlySet<number> = new Set([409, 412])
/** How a store refuses headers that it does not know. */
const NOT_IMPLEMENTED = 501
/** Times that an object is stored which is not there afterwards. */
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
  /** Another one if the object has been replaced; empty if the store gives none. */
  tag: string
}

/** The content of an upload: a file as `Bun.file` gives it, or another blob. `sha256` is its digest in hexadecimal. */
export interface Content {
  body: Blob
  sha256: string
}

/**
 * Admits the requests to a bucket, attempt by attempt. Throws `BucketUnavailable` instead of making one that is
 * hopeless.
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
  readonly #options: BucketOptions
  readonly #admission: Admission
  #store: Promise<S3Store> | null = null

  constructor(options: BucketOptions, admission: Admission = freely) {
    this.name = options.bucket
    this.#options = options
    this.#admission = admission
  }

  /**
   * Yields all objects under the prefix in ascending order of their keys, in pages small enough not to hold the event
   * loop. Throws if the store lists them in another order, and `BucketRefusal` if it refuses.
   */
  async *list(prefix: string): AsyncGenerator<StoredObject[]> {
    let token: string | undefined
    let last = ''
    do {
      const page = await this.ask(({ client, library }, abortSignal) =>
        client.send(
          new library.ListObjectsV2Command({
            Bucket: this.name,
            Prefix: prefix,
            MaxKeys: LIST_PAGE,
            ContinuationToken: token,
          }),
          { abortSignal },
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

  /** Store an object. Returns its tag. Throws `BucketRefusal` if the store refuses. */
  put(key: string, content: Content): Promise<string> {
    return this.#surely(key, content.body.size, () => this.#put(key, content))
  }

  /**
   * Store an object unless there is one with this key already. Which of the two is so, a later read tells: the response
   * to a request that was repeated does not. Stores that know no such condition replace the object.
   */
  async putNew(key: string, content: Content): Promise<void> {
    try {
      await this.#put(key, content, { IfNoneMatch: '*' })
    } catch (error) {
      if (!(error instanceof BucketRefusal)) throw error
      if (error.status === NOT_IMPLEMENTED) await this.put(key, content)
      else if (!occupied.has(error.status)) throw error
    }
  }

  async #put(
    key: string,
    { body, sha256 }: Content,
    condition: { IfNoneMatch?: '*' } = {},
  ): Promise<string | undefined> {
    const { ETag } = await this.ask(
      ({ client, library }, abortSignal) => {
        const command = new library.PutObjectCommand({
          Bucket: this.name,
          Key: key,
          Body: body,
          ContentLength: body.size,
          ...condition,
        })
        command.middlewareStack.add(signedOver(sha256), { step: 'build' })
        return client.send(command, { abortSignal })
      },
      { timeoutMillis: uploadTimeoutMillis(body) },
    )
    return ETag
  }

  /**
   * Copy an object of this size within the bucket. Returns the tag of the copy. Throws `BucketRefusal` if the store
   * refuses.
   */
  copy(from: string, to: string, size: number): Promise<string> {
    const source = `${this.name}/${from}`.split('/').map(encodeURIComponent).join('/')
    return this.#surely(to, size, async () => {
      const { CopyObjectResult } = await this.ask(
        ({ client, library }, abortSignal) =>
          client.send(new library.CopyObjectCommand({ Bucket: this.name, Key: to, CopySource: source }), {
            abortSignal,
          }),
        { timeoutMillis: OBJECT_TIMEOUT_MILLIS },
      )
      return CopyObjectResult?.ETag
    })
  }

  /**
   * Store an object, and see whether it is there: what answered may be a proxy, which stores nothing. `store` returns
   * the tag of the object, by which it is told from one that was there before. Each store makes tags in its own way, so
   * they are only compared with each other. Stored again if need be, because another server may have removed it.
   */
  async #surely(key: string, size: number, store: () => Promise<string | undefined>): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const tag = await store()
      const found = await this.#look(key)
      if (tag !== undefined && found?.size === size && found.tag === tagOf(tag)) return found.tag
      if (attempt === MAX_STORE_ATTEMPTS)
        throw new Error(`the bucket reported storing ${size} bytes, but has ${found?.size ?? 'nothing'} or others`)
    }
  }

  /**
   * Returns the content of an object, or null if there is no such object. Ending the iteration early ends the transfer.
   * Throws `BucketRefusal` if the store refuses.
   */
  async get(key: string): Promise<AsyncIterable<Uint8Array> | null> {
    try {
      const { Body } = await this.ask(({ client, library }, signal) => {
        const whole = AbortSignal.any([signal, AbortSignal.timeout(OBJECT_TIMEOUT_MILLIS)])
        return client.send(new library.GetObjectCommand({ Bucket: this.name, Key: key }), { abortSignal: whole })
      })
      return Body as unknown as AsyncIterable<Uint8Array>
    } catch (error) {
      return nullIfAbsent(error)
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
        async ({ client, library }, abortSignal) => {
          const command = new library.GetObjectCommand({ Bucket: this.name, Key: key, Range: `bytes=${first}-${last}` })
          const { Body, ContentRange, ETag = '' } = await client.send(command, { abortSignal })
          const bytes = await bytesOf(Body as unknown as AsyncIterable<Uint8Array>, ContentRange, first, last)
          return { ...bytes, tag: tagOf(ETag) }
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
      const { ContentLength = 0, ETag = '' } = await this.ask(({ client, library }, abortSignal) =>
        client.send(new library.HeadObjectCommand({ Bucket: this.name, Key: key }), { abortSignal }),
      )
      return { size: ContentLength, tag: tagOf(ETag) }
    } catch (error) {
      return nullIfAbsent(error)
    }
  }

  /** Delete an object. Succeeds if it does not exist. Throws `BucketRefusal` if the store refuses. */
  async delete(key: string, signal?: AbortSignal): Promise<void> {
    await this.ask(
      ({ client, library }, abortSignal) =>
        client.send(new library.DeleteObjectCommand({ Bucket: this.name, Key: key }), { abortSignal }),
      { signal },
    )
  }

  /** Send a request, and retry it if the transport or the store fails. `timeoutMillis` bounds one attempt. */
  async ask<Answer>(
    request: (store: S3Store, signal: AbortSignal) => Promise<Answer>,
    { timeoutMillis = ANSWER_TIMEOUT_MILLIS, signal }: AskOptions = {},
  ): Promise<Answer> {
    const store = await (this.#store ??= openStore(this.#options))
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      try {
        return await this.#admission.attempt(
          () => inTime(timeoutMillis, signal, (abortSignal) => request(store, abortSignal)),
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

/** The smaller an upload, the sooner its sender learns that the bucket stalls. */
export const uploadTimeoutMillis = ({ size }: Blob): number =>
  Math.min(OBJECT_TIMEOUT_MILLIS, ANSWER_TIMEOUT_MILLIS + (size / MIN_BYTES_PER_SEC) * 1000)

/** Throws `BucketRefusal` if the store refuses. */
async function inTime<T>(
  millis: number,
  signal: AbortSignal | undefined,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error('the bucket does not respond')), millis)
  try {
    return await request(signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]))
  } catch (error) {
    throw bucketRefusalOf(error) ?? (late.signal.aborted ? late.signal.reason : error)
  } finally {
    clearTimeout(timer)
  }
}

/** Middleware that states the digest of the body. Without it the library would read the file a second time. */
export const signedOver =
  (sha256: string) =>
  <Args extends { request: unknown }, Result>(next: (args: Args) => Promise<Result>) =>
  (args: Args): Promise<Result> => {
    const { headers } = args.request as { headers: Record<string, string> }
    headers['x-amz-content-sha256'] = sha256
    return next(args)
  }

/** A proxy that compresses makes tags weak. RFC 9110 section 8.8.3. */
const tagOf = (header: string): string => header.replace(/^W\/|"/g, '')

function nullIfAbsent(error: unknown): null {
  if (error instanceof BucketRefusal && error.status === 404 && error.code !== 'NoSuchBucket') return null
  throw error
}

/** Throws if the response is not the part that was asked for. */
async function bytesOf(
  body: AsyncIterable<Uint8Array>,
  range: string | undefined,
  first: number,
  last: number,
): Promise<Omit<Piece, 'tag'>> {
  const [, from, to, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range ?? '') ?? []
  if (Number(from) !== first || Number(to) > last)
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

/** Returns undefined on the last page. Throws if the response is not a complete list. */
function nextTokenOf({ IsTruncated, NextContinuationToken }: ListObjectsV2Output): string | undefined {
  if (IsTruncated === undefined) throw new Error('the response of the bucket is not a list of objects')
  if (IsTruncated && NextContinuationToken === undefined)
    throw new Error('the bucket sent an incomplete list of objects')
  return IsTruncated ? NextContinuationToken : undefined
}

const objectsOf = ({ Contents = [] }: ListObjectsV2Output): StoredObject[] =>
  Contents.map(({ Key, Size, LastModified }) => {
    if (Key === undefined || Size === undefined || !Number.isSafeInteger(Size) || Size < 0)
      throw new Error('the bucket lists an object without key or size')
    return { key: Key, size: Size, modifiedAt: LastModified?.getTime() ?? 0 }
  })
