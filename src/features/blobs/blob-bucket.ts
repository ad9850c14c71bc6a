/**
 * The bucket of blobs: one object per CID, under a prefix that only the servers of one database use.
 *
 * The key of a blob is `<prefix><shard>/<cid>`. The shard is made of the first characters of the CID that differ between
 * blobs, so keys are spread over the bucket and are still in the order of their CIDs. Unfinished uploads are under
 * `<prefix>incoming/`.
 *
 * Faults of the bucket become `BucketUnavailable`, which a request answers with 503; the server goes on without it.
 */
import { mkdir } from 'node:fs/promises'
import type { Pace } from '../../base/pace.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { BucketRefusal, BucketUnavailable } from '../../platform/network/bucket-faults.ts'
import type { Bucket, StoredObject } from '../../platform/network/bucket.ts'
import { abortUpload, unfinishedUploads } from '../../platform/network/bucket-uploads.ts'
import type { Log } from '../../platform/running/log.ts'
import { cidOfBlobDigest } from '../../protocol/cid.ts'
import { clearFiles } from './blob-folder.ts'
import type { BlobBody, BlobContent, BlobStorage, IncomingBlob, OpenOptions, StoredBlob } from './blob-storage.ts'
import { IncomingObject } from './incoming-object.ts'
import { MAX_PIECE_BYTES, ObjectReading } from './object-reading.ts'

const INCOMING = 'incoming/'
/** A blob up to this size is verified before its first byte is sent. */
const WHOLE_BYTES = 256 * 1024
const RETRY_AFTER_SECS = 10
/** A removal ends by then, however often it is retried. */
const REMOVAL_TIMEOUT_MILLIS = 60_000
/** Parts of an unfinished upload cost little, and a slow client may take hours. */
const STALE_OBJECT_MILLIS = 86_400_000
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

  constructor(readonly options: BlobBucketOptions) {
    const { bucket, log } = options
    this.#reading = new ObjectReading(bucket, (cid, error) => log.error('a blob broke off while it was being sent', { cid, error }))
  }

  get place(): string {
    return `the bucket ${this.options.url}`
  }

  keyOf(cid: string): string {
    return `${this.options.keyPrefix}${cid.slice(7, 9)}/${cid}`
  }

  /** Returns the CID of the blob that an object holds; null if it is something else. */
  nameOf(key: string): string | null {
    const cid = blobKey.exec(key.slice(this.options.keyPrefix.length))?.[1]
    return cid !== undefined && this.keyOf(cid) === key ? cid : null
  }

  /** Writes, lists and deletes: a fault of the configuration shows now. A bucket that is only out of reach does not keep the server from starting. */
  async prepare(): Promise<void> {
    const { spoolDir, log } = this.options
    await mkdir(spoolDir, { recursive: true })
    // What lies there was left by the process before, and the scrub may always run at another node.
    await clearFiles(spoolDir, Infinity)
    try {
      await this.probe()
    } catch (error) {
      const { cause } = error as BucketUnavailable
      if (cause instanceof BucketRefusal && !cause.isPassing)
        throw new OperatorError(`${this.place} refuses this server: ${cause.message}; check the keys of [blobs] that begin with s3_`)
      log.error('the bucket of blobs cannot be reached: starting without it', { url: this.options.url, error: cause ?? error })
    }
  }

  /** Try everything that uploads need. Throws what the first request that fails throws. */
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

  /** Several servers may work on the same CID, so nothing here keeps them apart: `blob-removal.ts` does. */
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

  async open({ cid, size }: StoredBlob, { range, gone }: OpenOptions = {}): Promise<BlobBody | null> {
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
    return start?.size === size ? this.#reading.stream({ key, cid, size }, { first, last }, start, signal) : null
  }

  async #read(key: string, range: { first: number; last: number; signal?: AbortSignal | undefined }) {
    try {
      return await this.#reached(() => this.options.bucket.read(key, range), range.signal)
    } catch (error) {
      // The object is shorter than the range begins. RFC 9110 section 15.5.17.
      if (error instanceof BucketUnavailable && error.cause instanceof BucketRefusal && error.cause.status === 416) return null
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
    const hasher = new Bun.CryptoHasher('sha256')
    for (let first = 0; first < size; first += MAX_PIECE_BYTES) {
      const piece = await this.#read(this.keyOf(cid), { first, last: Math.min(size, first + MAX_PIECE_BYTES) - 1 })
      // The store contradicts itself.
      if (piece?.size !== size) return { cid: 'unreadable', size: piece?.size ?? 0 }
      hasher.update(piece.bytes)
      await pace?.(piece.bytes.byteLength)
    }
    return { cid: cidOfBlobDigest(hasher.digest()).toString(), size }
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
      throw unavailable(error)
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

  /** Throws `BucketUnavailable` if the bucket does not do what it is asked to, and the signal's reason if the client has gone. */
  async #reached<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await work()
    } catch (error) {
      signal?.throwIfAborted()
      const fault = unavailable(error)
      if (fault !== error) this.options.log.warn('a request to the bucket of blobs failed', { error })
      throw fault
    }
  }
}

const unavailable = (error: unknown): BucketUnavailable =>
  error instanceof BucketUnavailable ? error : new BucketUnavailable(RETRY_AFTER_SECS, error)

const cidOf = (bytes: Uint8Array): string => cidOfBlobDigest(new Bun.CryptoHasher('sha256').update(bytes).digest()).toString()
