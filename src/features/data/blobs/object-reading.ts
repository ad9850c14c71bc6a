/**
 * Reads blobs from a bucket, piece by piece: a piece is fetched whole, quickly, and then passed on as fast as the
 * client reads. A slow client therefore holds a piece in memory, but no connection to the bucket. The more
 * memory the pieces take, the smaller are the next ones.
 */
import type { Bucket, Piece } from '../../../platform/network/bucket.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import type { ByteRange } from './byte-range.ts'

/** Memory for the pieces of all readers, and the part of what is left of it that one piece may take. */
const PIECES_BYTES = 64 * 1024 ** 2
const PART_OF_LEFT = 1 / 8
export const MAX_PIECE_BYTES = 1024 ** 2
const MIN_PIECE_BYTES = 64 * 1024

export interface ReadableObject {
  key: string
  cid: string
  size: number
}

/** Content that differs from its CID was found while it was being sent. The last bytes were withheld. */
class DamagedOnTheWay extends Error {
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
    /** Called when all of an object was read and is right, with its tag. */
    readonly onVerified: (cid: string, tag: string) => void,
  ) {}

  /** Bytes that a reader fetches at once. */
  pieceBytes(): number {
    return Math.min(MAX_PIECE_BYTES, Math.max(MIN_PIECE_BYTES, Math.floor((PIECES_BYTES - this.#held) * PART_OF_LEFT)))
  }

  /**
   * Returns the rest of an object as a stream, `start` being its first piece. If all of the object is read, its last
   * bytes are sent only if its digest is right. A part cannot be verified alone: it must be of an object that was.
   */
  stream(
    { key, cid, size }: ReadableObject,
    { first, last }: ByteRange,
    start: Piece,
    { gone, onEnd }: { gone: AbortSignal | undefined; onEnd: (() => void) | undefined },
  ): ReadableStream<Uint8Array> {
    const hasher = first === 0 && last === size - 1 ? new Bun.CryptoHasher('sha256') : null
    const cancelled = new AbortController()
    const signal = gone === undefined ? cancelled.signal : AbortSignal.any([gone, cancelled.signal])
    // The first piece itself must not be kept for as long as the client reads.
    const { tag } = start
    let next: Piece | null = start
    let at = first
    let held = 0
    const hold = (bytes: number) => {
      this.#held += bytes - held
      held = bytes
    }
    let hasEnded = false
    const end = () => {
      if (hasEnded) return
      hasEnded = true
      hold(0)
      onEnd?.()
    }
    hold(start.bytes.byteLength)
    const read = async (): Promise<Uint8Array> => {
      const piece =
        next ?? (await this.bucket.read(key, { first: at, last: Math.min(last, at + this.pieceBytes() - 1), signal }))
      next = null
      if (piece?.size !== size || piece.tag !== tag) throw new DamagedOnTheWay(cid)
      at += piece.bytes.byteLength
      hold(piece.bytes.byteLength)
      hasher?.update(piece.bytes)
      if (at <= last || hasher === null) return piece.bytes
      if (cidOfBlobDigest(hasher.digest()).toString() !== cid) throw new DamagedOnTheWay(cid)
      this.onVerified(cid, tag)
      return piece.bytes
    }
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) =>
          signal.addEventListener('abort', () => {
            if (hasEnded) return
            end()
            controller.error(signal.reason)
          }),
        pull: async (controller) => {
          try {
            controller.enqueue(await read())
            if (at <= last) return
            end()
            controller.close()
          } catch (error) {
            end()
            if (!signal.aborted) this.onFault(cid, error)
            controller.error(error)
          }
        },
        cancel: (reason) => {
          end()
          cancelled.abort(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }
}
