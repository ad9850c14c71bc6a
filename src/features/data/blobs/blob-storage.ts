/**
 * Where the bytes of blobs are: a folder of this machine (`blob-folder.ts`), or a bucket that several servers may use
 * (`blob-bucket.ts`). Rows say who owns a blob; the storage knows nothing of them.
 */
import type { Pace } from '../../../base/pace.ts'
import type { ByteRange } from './byte-range.ts'

/** Bytes at the start of a blob that type detection sees. */
export const HEAD_BYTES = 64 * 1024

/** A blob in the storage and the mirror: one per CID, shared by its owners. */
export interface StoredBlob {
  cid: string
  size: number
}

/** What is stored under a CID: the actual CID of the bytes that are there, and their number. */
export interface BlobContent {
  cid: string
  size: number
}

export interface OpenOptions {
  /** If undefined, the whole blob. */
  range?: ByteRange | undefined
  /** Returns the signal that aborts when the reader has gone. A function, because making the signal costs something. */
  gone?: () => AbortSignal
  /** Called when the returned stream has ended, or its reader has gone. */
  onEnd?: () => void
}

export interface PrepareOptions {
  /** Throw even if the storage is only unreachable. */
  mustReach?: boolean
}

export interface BlobStorage {
  /** For messages: `the folder /var/lib/holdfast/blobs`. */
  readonly place: string
  /** Whether other servers may store and remove blobs at the same time. If not, `alone` keeps work on a CID apart. */
  readonly isShared: boolean
  /** Call before anything else. Throws `OperatorError` if the storage refuses to work. */
  prepare(options?: PrepareOptions): Promise<void>
  /** Where a blob is or would be, for messages. */
  placeOf(cid: string): string
  isEmpty(): Promise<boolean>
  /** Whether blobs seem to have been stored here before: the folder exists, or the bucket is not empty. */
  isThere(): Promise<boolean>
  /** Run work on a CID. In a storage that is not shared, work on the same CID runs one at a time. */
  alone<T>(cid: string, work: () => Promise<T>): Promise<T>
  /** Store a stream without a name, and hash it on the way. Throws what the stream throws; nothing is left then. */
  receive(chunks: AsyncIterable<Uint8Array>): Promise<IncomingBlob>
  /**
   * Returns bytes of a blob as the body of a response; null if the blob is missing or has other content. A body whose
   * damage shows only on the way fails before its last byte.
   */
  open(blob: StoredBlob, options?: OpenOptions): Promise<BlobBody | null>
  /** Succeeds if there is no such blob. */
  remove(cid: string): Promise<void>
  /** Returns how many bytes are stored under the CID; null if there are none. */
  sizeOf(cid: string): Promise<number | null>
  /** Read and hash what is stored under the CID. Returns null if there is nothing. */
  digest(cid: string, pace?: Pace): Promise<BlobContent | null>
  /** Yields the names of everything that may be a blob, in pages. */
  list(pageSize: number): AsyncGenerator<string[]>
  /** Delete uploads that were begun before `olderThan` and never finished. Returns how many. */
  clearIncoming(olderThan: number): Promise<number>
}

export type BlobBody = Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>

/** A received blob. Disposing of it deletes it unless it was placed. */
export interface IncomingBlob extends AsyncDisposable {
  readonly cid: string
  readonly size: number
  /** The first bytes, at most `HEAD_BYTES`. */
  readonly head: Uint8Array
  /**
   * The first bytes, at most `maxBytes`. If parts of the blob are already in the bucket, at most the bytes of `head`.
   */
  start(maxBytes: number): Promise<Uint8Array>
  /**
   * Give the blob its name. It appears whole and durable, or not at all. May be called again if the blob has been
   * removed since.
   */
  place(): Promise<void>
}
