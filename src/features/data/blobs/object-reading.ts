/**
 * Reads blobs from a bucket in pieces. Each piece is fetched whole, and then sent at the speed of the client. A slow
 * client therefore holds a piece in memory, but no connection to the bucket. The more memory all pieces take, the
 * smaller are the next ones.
 */
import type { Bucket, Piece } from '../../../platform/network/bucket.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import type { ByteRange } from './byte-range.ts'

/** Memory for the pieces of all readers, and the share of the free part of it that one piece may take. */
const PIECES_BYTES = 64 * 1024 ** 2
const PART_OF_LEFT = 1 / 8
export const MAX_PIECE_BYTES = 1024 ** 2
const MIN_PIECE_BYTES = 64 * 1024

export interface ReadableObject {
  key: string
  cid: string
  size: number
}

/** The content turned out not to match its CID while it was being sent. The last bytes were withheld. */
export class DamagedOnTheWay extends Error {
  constructor(cid: string) {
    super(`the object of blob ${cid} has other content`)
  }
}

export class ObjectReading {
  /** Bytes of the newest piece of each stream that has not ended. */
  #held = 0

  constructor(
    readonly bucket: Bucket,
    /** Called with faults after the response has begun. */
    readonly onFault: (cid: string, error: unknown) => void,
    /** Called with the tag of an object when all of it was read and matches its CID. */
    readonly onVerified: (cid: string, tag: string) => void,
  ) {}

  /** Bytes that a reader fetches at once. */
  pieceBytes(): number {
    return Math.min(MAX_PIECE_BYTES, Math.max(MIN_PIECE_BYTES, Math.floor((PIECES_BYTES - this.#held) * PART_OF_LEFT)))
  }

  /** Add bytes that a stream holds in memory; negative when it releases them. */
  hold(bytes: number): void {
    this.#held += bytes
  }

  /**
   * Returns an object, or a range of it, as a stream; `start` is the first piece. If the whole object is read, its last
   * bytes are sent only if the digest matches the CID. A range cannot be verified, so its object must have been
   * verified before.
   */
  stream(
    object: ReadableObject,
    range: ByteRange,
    start: Piece,
    { gone, onEnd }: { gone: AbortSignal | undefined; onEnd: (() => void) | undefined },
  ): ReadableStream<Uint8Array> {
    const cancelled = new AbortController()
    const signal = gone === undefined ? cancelled.signal : AbortSignal.any([gone, cancelled.signal])
    const pieces = new Pieces(this, object, range, start, { signal, onEnd })
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) =>
          signal.addEventListener('abort', () => {
            if (pieces.hasEnded) return
            pieces.end()
            controller.error(signal.reason)
          }),
        pull: async (controller) => {
          try {
            controller.enqueue(await pieces.read())
            if (!pieces.areRead) return
            pieces.end()
            controller.close()
          } catch (error) {
            pieces.end()
            if (!signal.aborted) this.onFault(object.cid, error)
            controller.error(error)
          }
        },
        cancel: (reason) => {
          pieces.end()
          cancelled.abort(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }
}

/** The pieces of one stream, in order, and the memory that they hold. */
class Pieces {
  readonly #reading: ObjectReading
  readonly #object: ReadableObject
  readonly #last: number
  readonly #tag: string
  readonly #signal: AbortSignal
  readonly #onEnd: (() => void) | undefined
  /** Null for a range, which cannot be verified. */
  readonly #hasher: Bun.CryptoHasher | null
  /** The first piece, until it is read. It must not stay in memory for as long as the client reads. */
  #start: Piece | null
  #at: number
  /** Bytes of the newest piece. */
  #held = 0
  #hasEnded = false

  constructor(
    reading: ObjectReading,
    object: ReadableObject,
    { first, last }: ByteRange,
    start: Piece,
    { signal, onEnd }: { signal: AbortSignal; onEnd: (() => void) | undefined },
  ) {
    this.#reading = reading
    this.#object = object
    this.#last = last
    this.#tag = start.tag
    this.#signal = signal
    this.#onEnd = onEnd
    this.#hasher = first === 0 && last === object.size - 1 ? new Bun.CryptoHasher('sha256') : null
    this.#start = start
    this.#at = first
    this.#hold(start.bytes.byteLength)
  }

  get areRead(): boolean {
    return this.#at > this.#last
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Throws `DamagedOnTheWay` if the object was replaced, or if its digest does not match the CID. */
  async read(): Promise<Uint8Array> {
    const { cid, size } = this.#object
    const piece = this.#start ?? (await this.#fetch())
    this.#start = null
    if (piece?.size !== size || piece.tag !== this.#tag) throw new DamagedOnTheWay(cid)
    this.#at += piece.bytes.byteLength
    this.#hold(piece.bytes.byteLength)
    this.#hasher?.update(piece.bytes)
    if (this.areRead && this.#hasher !== null) this.#verify(this.#hasher)
    return piece.bytes
  }

  #fetch(): Promise<Piece | null> {
    const last = Math.min(this.#last, this.#at + this.#reading.pieceBytes() - 1)
    return this.#reading.bucket.read(this.#object.key, { first: this.#at, last, signal: this.#signal })
  }

  #verify(hasher: Bun.CryptoHasher): void {
    const { cid } = this.#object
    if (cidOfBlobDigest(hasher.digest()).toString() !== cid) throw new DamagedOnTheWay(cid)
    this.#reading.onVerified(cid, this.#tag)
  }

  #hold(bytes: number): void {
    this.#reading.hold(bytes - this.#held)
    this.#held = bytes
  }

  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#hold(0)
    this.#onEnd?.()
  }
}
