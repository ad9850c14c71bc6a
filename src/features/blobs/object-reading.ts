/**
 * Reads blobs from a bucket, piece by piece: a piece is fetched whole, quickly, and then passed on as fast as the client
 * reads. A slow client therefore holds a piece in memory, but no connection to the bucket. The more clients read, the
 * smaller the pieces are, so that all together take little memory.
 */
import type { Bucket, Piece } from '../../platform/network/bucket.ts'
import { cidOfBlobDigest } from '../../protocol/cid.ts'
import type { ByteRange } from './byte-range.ts'

/** Memory for the pieces of all readers. */
const PIECES_BYTES = 64 * 1024 ** 2
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
  /** Streams that have been read from and have not ended. */
  #readers = 0

  constructor(
    readonly bucket: Bucket,
    /** Called with faults after the response has begun. */
    readonly onFault: (cid: string, error: unknown) => void,
  ) {}

  /** Bytes that a reader fetches at once. */
  pieceBytes(): number {
    return Math.min(MAX_PIECE_BYTES, Math.max(MIN_PIECE_BYTES, Math.floor(PIECES_BYTES / (this.#readers + 1))))
  }

  /**
   * Returns the rest of an object as a stream, `start` being its first piece. If all of the object is read, its last
   * bytes are sent only if its digest is right. A part cannot be verified alone.
   */
  stream(
    { key, cid, size }: ReadableObject,
    { first, last }: ByteRange,
    start: Piece,
    gone: AbortSignal | undefined,
  ): ReadableStream<Uint8Array> {
    const hasher = first === 0 && last === size - 1 ? new Bun.CryptoHasher('sha256') : null
    const cancelled = new AbortController()
    const signal = gone === undefined ? cancelled.signal : AbortSignal.any([gone, cancelled.signal])
    let next: Piece | null = start
    let at = first
    let isCounted = false
    const end = () => {
      if (isCounted) this.#readers--
      isCounted = false
    }
    const read = async (): Promise<Uint8Array> => {
      const piece = next ?? (await this.bucket.read(key, { first: at, last: Math.min(last, at + this.pieceBytes() - 1), signal }))
      next = null
      if (piece?.size !== size) throw new DamagedOnTheWay(cid)
      at += piece.bytes.byteLength
      hasher?.update(piece.bytes)
      if (at > last && hasher !== null && cidOfBlobDigest(hasher.digest()).toString() !== cid) throw new DamagedOnTheWay(cid)
      return piece.bytes
    }
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          if (!isCounted) this.#readers++
          isCounted = true
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
