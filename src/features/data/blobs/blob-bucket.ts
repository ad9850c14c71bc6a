/**
 * The blob bucket: one object per CID, under a prefix that only the servers of one database use.
 *
 * The key of a blob is `<prefix><shard>/<cid>`. The shard is made of the first characters of the CID that differ
 * between blobs, so keys are spread over the bucket and are still in the order of their CIDs. Unfinished uploads are
 * under `<prefix>incoming/`.
 *
 * Faults of the bucket become `BucketUnavailable`, to which a request responds with 503; the server keeps running
 * without the bucket.
 */
import { mkdir } from 'node:fs/promises'
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Pace } from '../../../base/pace.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { Semaphore, SemaphoreFull } from '../../../base/semaphore.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { BucketRefusal, BucketUnavailable } from '../../../platform/network/bucket-faults.ts'
import type { Bucket, StoredObject } from '../../../platform/network/bucket.ts'
import { abortUpload, unfinishedUploads } from '../../../platform/network/bucket-uploads.ts'
import type { Log } from '../../../platform/running/log.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import { clearFiles } from './blob-folder.ts'
import type {
  BlobBody,
  BlobContent,
  BlobStorage,
  IncomingBlob,
  OpenOptions,
  PrepareOptions,
  StoredBlob,
} from './blob-storage.ts'
import { IncomingObject } from './incoming-object.ts'
import { MAX_PIECE_BYTES, ObjectReading } from './object-reading.ts'

const INCOMING = 'incoming/'
/** A blob up to this size is verified before its first byte is sent. */
const WHOLE_BYTES = 256 * 1024
/** How many objects are remembered as verified. */
const MAX_VERIFIED = 100_000
/** Objects that are verified at the same time because a part of them was requested, and requests that wait for that. */
const MAX_VERIFICATIONS = 4
const MAX_WAITING = 64
const RETRY_AFTER_SECS = 10
/** A removal ends by then, however often it is retried. */
const REMOVAL_TIMEOUT_MILLIS = MINUTE_MILLIS
/** Parts of an unfinished upload cost little, and a slow client may take hours. */
const STALE_OBJECT_MILLIS = DAY_MILLIS
const emptySha256 = new Bun.CryptoHasher('sha256').digest('hex')
const blobKey = /^[a-z2-7]{2}\/([a-z2-7]{20,})$/

export interface BlobBucketOptions {
  bucket: Bucket
  /** Endpoint, bucket and prefix, for messages. */
  url: string
  keyPrefix: string
  /** Folder for parts of uploads, on this machine. */
  spoolDir: string
  log: Log
}

export class BlobBucket implements BlobStorage {
  readonly isShared = true
  readonly #reading: ObjectReading
  /** Tags by CID. A tag changes with the object. */
  readonly #verified = new BoundedCache<string>(MAX_VERIFIED)
  readonly #verifying = new SingleFlight<string, string | null>()
  readonly #verifications = new Semaphore(MAX_VERIFICATIONS, MAX_WAITING)

  constructor(readonly options: BlobBucketOptions) {
    const { bucket, log } = options
    this.#reading = new ObjectReading(
      bucket,
      (cid, error) => log.error('blob download aborted: the bucket connection failed', { cid, error }),
      (cid, tag) => this.#verified.set(cid, tag),
    )
  }

  get place(): string {
    return `the bucket ${this.options.url}`
  }

  placeOf(cid: string): string {
    return `the object ${this.keyOf(cid)} of ${this.place}`
  }

  async isThere(): Promise<boolean> {
    return !(await this.isEmpty())
  }

  keyOf(cid: string): string {
    return `${this.options.keyPrefix}${cid.slice(7, 9)}/${cid}`
  }

  /** Returns the CID of the blob that an object holds; null if it is something else. */
  nameOf(key: string): string | null {
    const cid = blobKey.exec(key.slice(this.options.keyPrefix.length))?.[1]
    return cid !== undefined && this.keyOf(cid) === key ? cid : null
  }

  /**
   * Writes, lists and deletes, so that a fault of the configuration shows at the start. A bucket that is merely
   * unreachable does not keep the server from starting.
   */
  async prepare({ mustReach = false }: PrepareOptions = {}): Promise<void> {
    const { spoolDir, log } = this.options
    await mkdir(spoolDir, { recursive: true })
    // Its files are left over from an earlier process, and the scrub that would delete them may run on any node.
    await clearFiles(spoolDir, Infinity)
    try {
      await this.probe()
    } catch (error) {
      if (mustReach) throw error
      const { cause } = error as BucketUnavailable
      if (cause instanceof BucketRefusal && !cause.isPassing)
        throw new OperatorError(
          `${this.place} refuses this server: ${cause.message}; check the keys of [blobs] that begin with s3_`,
        )
      log.error('the blob bucket is unreachable; starting without it', { url: this.options.url, error: cause ?? error })
    }
  }

  /** Try everything that uploads need. Throws the error of the first request that fails. */
  async probe(): Promise<void> {
    const { bucket, keyPrefix } = this.options
    const key = `${keyPrefix}${INCOMING}probe-${crypto.randomUUID()}`
    await this.#reached(async () => {
      await bucket.put(key, { body: new Blob([]), sha256: emptySha256 })
      await this.isEmpty()
      await bucket.delete(key)
    })
  }

  async isEmpty(): Promise<boolean> {
    for await (const page of this.objects()) if (page.length > 0) return false
    return true
  }

  /**
   * Several servers may work on the same CID, so a lock of this process is of no use: `blob-removal.ts` keeps them
   * apart.
   */
  alone<T>(_cid: string, work: () => Promise<T>): Promise<T> {
    return work()
  }

  async receive(chunks: AsyncIterable<Uint8Array>): Promise<IncomingBlob> {
    const { bucket, keyPrefix, spoolDir, log } = this.options
    const incoming = new IncomingObject({
      bucket,
      keyOf: (cid) => this.keyOf(cid),
      incomingPrefix: keyPrefix + INCOMING,
      spoolDir,
      log,
      placed: (cid, tag) => this.#verified.set(cid, tag),
      reached: (work, signal) => this.#reached(work, signal),
    })
    try {
      for await (const chunk of chunks) await incoming.add(chunk)
      await incoming.end()
      return incoming
    } catch (error) {
      await incoming[Symbol.asyncDispose]()
      throw error
    }
  }

  async open({ cid, size }: StoredBlob, { range, gone, onEnd }: OpenOptions = {}): Promise<BlobBody | null> {
    if (size === 0) return (await this.sizeOf(cid)) === 0 ? new Uint8Array(0) : null
    const key = this.keyOf(cid)
    const signal = gone?.()
    const { first, last } = range ?? { first: 0, last: size - 1 }
    if (size <= WHOLE_BYTES) {
      const piece = await this.#read(key, { first: 0, last: size - 1, signal })
      if (piece?.size !== size || cidOf(piece.bytes) !== cid) return null
      return piece.bytes.slice(first, last + 1)
    }
    const start = await this.#read(key, { first, last: Math.min(last, first + this.#reading.pieceBytes() - 1), signal })
    if (start?.size !== size) return null
    const isPart = first > 0 || last < size - 1
    if (isPart && this.#verified.get(cid) !== start.tag && (await this.#verify(cid)) !== start.tag) return null
    return this.#reading.stream({ key, cid, size }, { first, last }, start, { gone: signal, onEnd })
  }

  /** Reads all of an object. Returns its tag; null if it is missing or has other content. */
  async #verify(cid: string): Promise<string | null> {
    try {
      return await this.#verifying.run(cid, () =>
        this.#verifications.run(async () =>
          (await this.digest(cid))?.cid === cid ? (this.#verified.get(cid) ?? '') : null,
        ),
      )
    } catch (error) {
      throw error instanceof SemaphoreFull ? this.#unavailable(error) : error
    }
  }

  async #read(key: string, range: { first: number; last: number; signal?: AbortSignal | undefined }) {
    try {
      return await this.#reached(() => this.options.bucket.read(key, range), range.signal)
    } catch (error) {
      // The object is shorter than the range begins. RFC 9110 section 15.5.17.
      if (error instanceof BucketUnavailable && error.cause instanceof BucketRefusal && error.cause.status === 416)
        return null
      throw error
    }
  }

  remove(cid: string): Promise<void> {
    return this.#reached(() => this.options.bucket.delete(this.keyOf(cid), AbortSignal.timeout(REMOVAL_TIMEOUT_MILLIS)))
  }

  sizeOf(cid: string): Promise<number | null> {
    return this.#reached(() => this.options.bucket.sizeOf(this.keyOf(cid)))
  }

  async digest(cid: string, pace?: Pace): Promise<BlobContent | null> {
    const size = await this.sizeOf(cid)
    if (size === null) return null
    this.#verified.delete(cid)
    const hasher = new Bun.CryptoHasher('sha256')
    let tag = ''
    for (let first = 0; first < size; first += MAX_PIECE_BYTES) {
      const piece = await this.#read(this.keyOf(cid), { first, last: Math.min(size, first + MAX_PIECE_BYTES) - 1 })
      if (first === 0) tag = piece?.tag ?? ''
      // The store contradicts itself, or the object was replaced.
      if (piece?.size !== size || piece.tag !== tag) return { cid: 'unreadable', size: piece?.size ?? 0 }
      hasher.update(piece.bytes)
      await pace?.(piece.bytes.byteLength)
    }
    const found = cidOfBlobDigest(hasher.digest()).toString()
    if (found === cid) this.#verified.set(cid, tag)
    return { cid: found, size }
  }

  async *list(): AsyncGenerator<string[]> {
    for await (const page of this.objects()) yield page.flatMap(({ key }) => this.nameOf(key) ?? [])
  }

  /** Yields the objects of blobs, ascending by CID, in pages. */
  async *objects(): AsyncGenerator<StoredObject[]> {
    const { bucket, keyPrefix } = this.options
    try {
      for await (const page of bucket.list(keyPrefix)) {
        const found = page.filter(({ key }) => !key.startsWith(keyPrefix + INCOMING))
        if (found.length > 0) yield found
      }
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  async clearIncoming(olderThan: number): Promise<number> {
    const { bucket, keyPrefix, spoolDir, log } = this.options
    let cleared = await clearFiles(spoolDir, olderThan)
    const staleBefore = olderThan - STALE_OBJECT_MILLIS
    await this.#reached(async () => {
      for await (const page of unfinishedUploads(bucket, keyPrefix + INCOMING)) {
        for (const upload of page.filter(({ startedAt }) => startedAt < staleBefore)) {
          await abortUpload(bucket, upload)
          cleared++
        }
      }
      for await (const page of bucket.list(keyPrefix + INCOMING)) {
        for (const { key } of page.filter(({ modifiedAt }) => modifiedAt < staleBefore)) {
          await bucket.delete(key)
          cleared++
        }
      }
    })
    if (cleared > 0) log.info('unfinished uploads deleted', { copies: cleared })
    return cleared
  }

  #unavailable(error: unknown): BucketUnavailable {
    return error instanceof BucketUnavailable ? error : new BucketUnavailable(RETRY_AFTER_SECS, this.options.url, error)
  }

  /** Throws `BucketUnavailable` if a request to the bucket fails, and the signal's reason if the client has gone. */
  async #reached<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await work()
    } catch (error) {
      signal?.throwIfAborted()
      const fault = this.#unavailable(error)
      if (fault !== error) this.options.log.warn('request to the blob bucket failed', { error })
      throw fault
    }
  }
}

const cidOf = (bytes: Uint8Array): string =>
  cidOfBlobDigest(new Bun.CryptoHasher('sha256').update(bytes).digest()).toString()
