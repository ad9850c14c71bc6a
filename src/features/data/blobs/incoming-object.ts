/**
 * A blob on its way into a bucket.
 *
 * Each part is first spooled on the local disk, because the bucket wants to know the size and the digest of what it
 * gets. A blob of one part is stored in one request, directly under its name. A longer blob is uploaded in parts, to a
 * key under `incoming/`. Once its CID is known, the bucket copies it to its name.
 */
import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Bucket } from '../../../platform/network/bucket.ts'
import type { Content } from '../../../platform/network/bucket-wire.ts'
import { UploadInParts } from '../../../platform/network/bucket-uploads.ts'
import type { Log } from '../../../platform/running/log.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import { HEAD_BYTES, type IncomingBlob } from './blob-storage.ts'

/** Size of every part but the last. Some providers require equal sizes, and all require at least 5 MiB. */
const PART_BYTES = 8 * 1024 ** 2

export interface Destination {
  bucket: Bucket
  /** Key for the name of a blob. */
  keyOf(cid: string): string
  /** Prefix of the keys of unfinished uploads. */
  incomingPrefix: string
  spoolDir: string
  log: Log
  /** Called once the object of a blob is stored, with its tag. */
  placed(cid: string, tag: string): void
  /** Runs requests to the bucket, and turns their faults into `BucketUnavailable`. */
  reached<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

/** Part of a blob in a file. */
class Spool {
  readonly #hasher = new Bun.CryptoHasher('sha256')
  size = 0

  private constructor(
    readonly path: string,
    readonly file: FileHandle,
  ) {}

  static async make(dir: string): Promise<Spool> {
    const path = join(dir, `${crypto.randomUUID()}.tmp`)
    return new Spool(path, await open(path, 'wx', 0o600))
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#hasher.update(bytes)
    this.size += bytes.byteLength
    for (let at = 0; at < bytes.byteLength;) at += (await this.file.write(bytes, at)).bytesWritten
  }

  async end(): Promise<Content> {
    await this.file.close()
    return { body: Bun.file(this.path), sha256: this.#hasher.digest('hex') }
  }

  /** Deletes the file, whether or not `end` was called. */
  async delete(): Promise<void> {
    await this.file.close().catch((error: { code?: string }) => {
      if (error.code !== 'EBADF') throw error
    })
    await rm(this.path, { force: true })
  }
}

export class IncomingObject implements IncomingBlob {
  readonly #hasher = new Bun.CryptoHasher('sha256')
  readonly #head: Uint8Array[] = []
  readonly #gone = new AbortController()
  readonly #key: string
  /** The part that is being written. */
  #spool: Spool | null = null
  /** The whole blob, if it has only one part. */
  #content: Content | null = null
  #upload: UploadInParts | null = null
  #isComplete = false
  /** The part that is being sent while the next one is written. */
  #sending: Promise<void> = Promise.resolve()
  cid = ''
  size = 0

  constructor(readonly to: Destination) {
    this.#key = `${to.incomingPrefix}${crypto.randomUUID()}`
  }

  get head(): Uint8Array {
    return Buffer.concat(this.#head)
  }

  /** Call after `end`. */
  async start(maxBytes: number): Promise<Uint8Array> {
    if (this.#upload !== null || this.#spool === null) return this.head.subarray(0, maxBytes)
    return Bun.file(this.#spool.path).slice(0, maxBytes).bytes()
  }

  async add(chunk: Uint8Array): Promise<void> {
    if (this.size < HEAD_BYTES) this.#head.push(chunk.slice(0, HEAD_BYTES - this.size))
    this.size += chunk.byteLength
    this.#hasher.update(chunk)
    for (let at = 0; at < chunk.byteLength;) {
      if (this.#spool?.size === PART_BYTES) await this.#send()
      const spool = (this.#spool ??= await Spool.make(this.to.spoolDir))
      const piece = chunk.subarray(at, at + PART_BYTES - spool.size)
      await spool.write(piece)
      at += piece.byteLength
    }
  }

  /** Resolves when the bucket has everything that it gets before the name is known. */
  async end(): Promise<void> {
    this.cid = cidOfBlobDigest(this.#hasher.digest()).toString()
    if (this.#upload === null) {
      this.#content = await (this.#spool ??= await Spool.make(this.to.spoolDir)).end()
      return
    }
    const upload = this.#upload
    await this.#send()
    await this.#sending
    await this.to.reached(() => upload.complete())
    this.#isComplete = true
  }

  /**
   * Send the part that was written. Waits until the previous part is sent, so there are at most two parts on the disk.
   */
  async #send(): Promise<void> {
    const spool = this.#spool!
    await this.#sending
    const { bucket, reached } = this.to
    const upload = (this.#upload ??= await reached(() => UploadInParts.begin(bucket, this.#key)))
    const content = await spool.end()
    this.#spool = null
    this.#sending = reached(() => upload.add(content, this.#gone.signal), this.#gone.signal).finally(() =>
      spool.delete(),
    )
    // The next waiter gets the error.
    this.#sending.catch(() => undefined)
  }

  async place(): Promise<void> {
    this.to.placed(this.cid, await this.to.reached(() => this.#placeAt(this.to.keyOf(this.cid))))
  }

  /** Returns the tag of the object. */
  #placeAt(key: string): Promise<string> {
    const { bucket } = this.to
    return this.#content === null ? bucket.copy(this.#key, key, this.size) : bucket.put(key, this.#content)
  }

  /** If the bucket cannot delete the upload now, the scrub does later. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#gone.abort(new Error('the upload has ended'))
    await this.#sending.catch(() => undefined)
    await this.#spool?.delete()
    if (this.#upload === null) return
    try {
      if (this.#isComplete) await this.to.bucket.delete(this.#key)
      else await this.#upload.abort()
    } catch (error) {
      this.to.log.warn('could not delete an unfinished upload from the bucket; the scrub will delete it', {
        file: this.#key,
        error,
      })
    }
  }
}
