/**
 * A queue of bytes between a writer that must not wait and a reader that may be slow. A short queue is kept in memory;
 * a longer one spills into an unnamed file.
 *
 * Invariant: the reader gets every byte once and in order. Bytes in memory were pushed before those in the file,
 * because memory accepts nothing while the file holds unread bytes. Each piece also has an offset in the stream, which
 * must be the next one when the piece is taken. If it is not, the stream fails: a client can detect a truncated
 * archive, but not one with a gap.
 */
import { closeSync, readSync } from 'node:fs'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import { RoomForCommits } from './free-space.ts'
import { openNameless, writeAt } from './nameless-file.ts'

/** Memory per queue; further bytes go to the file. */
const MEMORY_BYTES = 4 * 1024 * 1024
/** Bytes per read of the file. */
const READ_BYTES = 64 * 1024
/**
 * Idle limit: a reader that takes no queued bytes for this long is disconnected. Between two reads, a client empties
 * the system's buffer of its connection, which holds megabytes. A slow client needs minutes for that.
 */
const STALL_MILLIS = 10 * MINUTE_MILLIS
/** Idle limit when another queue needs the space. */
const IDLE_MILLIS = MINUTE_MILLIS

/**
 * The part of the free memory that a queue may take. The more queues there are, the less each of them gets, and some is
 * always left for another one.
 */
const PART_OF_FREE = 1 / 4

/**
 * The space that several queues share, in bytes: readers that do not read must fill neither the memory nor the disk.
 */
export class SpillRoom {
  #held = 0
  #filed = 0
  readonly #queues = new Set<SpillQueue>()
  /** By the folder of the files. */
  readonly #disks = new Map<string, RoomForCommits>()

  constructor(
    readonly max: { memoryBytes: number; fileBytes: number },
    readonly idleMillis: number = IDLE_MILLIS,
  ) {}

  /** Register a queue. From now on its reader may be disconnected if others need the space. */
  enter(queue: SpillQueue): void {
    this.#queues.add(queue)
  }

  leave(queue: SpillQueue): void {
    this.#queues.delete(queue)
  }

  /**
   * Reserves memory for a queue that holds `held` bytes already. Returns false if there is not enough, so that the
   * bytes have to go to a file.
   */
  hold(bytes: number, held: number): boolean {
    if (held + bytes > (this.max.memoryBytes - this.#held) * PART_OF_FREE) return false
    this.#held += bytes
    return true
  }

  drop(bytes: number): void {
    this.#held -= bytes
  }

  /**
   * Reserve file space. If necessary, disconnects idle readers of other queues, and then those whose owner has more of
   * the space than the owner of this one. Throws if that is not enough, or the disk has only its reserve left.
   */
  file(bytes: number, by: SpillQueue): void {
    const disk = this.#disks.getOrInsertComputed(by.dir, () => new RoomForCommits(by.dir))
    disk.isLeft(bytes)
    const isFull = () => this.#filed + bytes > this.max.fileBytes || !disk.isLeft()
    for (const queue of this.#queues) {
      if (!isFull()) break
      if (queue !== by) queue.giveUpIdle(this.idleMillis)
    }
    while (isFull()) {
      const other = this.#oldestOfLargest(by.owner)
      if (other === null)
        throw new Error(
          disk.isLeft()
            ? `the queues of slow readers have filled their ${this.max.fileBytes} bytes of file space`
            : 'the queues of slow readers have filled the disk but for its reserve',
        )
      other.giveUp('others need the space')
    }
    this.#filed += bytes
  }

  /** Returns the oldest queue of the owner with most file space; null if no other has more than `owner`. */
  #oldestOfLargest(owner: string): SpillQueue | null {
    const oldest = new Map<string, SpillQueue>()
    const sums = new Map<string, number>([[owner, 0]])
    for (const queue of this.#queues) {
      if (queue.fileBytes === 0) continue
      if (!oldest.has(queue.owner)) oldest.set(queue.owner, queue)
      sums.set(queue.owner, (sums.get(queue.owner) ?? 0) + queue.fileBytes)
    }
    const [largest] = [...sums].reduce((most, entry) => (entry[1] > most[1] ? entry : most))
    return largest === owner ? null : oldest.get(largest)!
  }

  empty(bytes: number): void {
    this.#filed -= bytes
  }
}

interface Piece {
  /** Offset of its first byte in the stream. */
  start: number
  length: number
  bytes: Uint8Array
}

export interface SpillOptions {
  /** Folder in which the file of the queue is created. */
  dir: string
  room: SpillRoom
  /** For whom the bytes are. Owners share the room evenly. */
  owner?: string
  /** A reader that takes nothing for this long is disconnected. */
  stallMillis?: number
  /**
   * Whether the reader no longer needs a piece when it asks for the next one. The memory of the piece is then freed at
   * once, instead of when it is collected as garbage.
   */
  takesPieces?: boolean
  /** Called whenever the reader asks for more. */
  onRead?: () => void
  /** Called once, when the reader has everything or is gone. */
  onEnd?: () => void
}

export class SpillQueue {
  readonly owner: string
  readonly #options: SpillOptions
  readonly #held: Piece[] = []
  #heldBytes = 0
  #file: number | null = null
  /** File space reserved in the room. The file does not shrink before it is closed. */
  #fileBytes = 0
  #watch: ReturnType<typeof setInterval> | null = null
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #lastReadAt = 0
  /** Bytes written to the file, and how many of them were read. */
  #written = 0
  #read = 0
  /** Bytes pushed into the stream, how many of them were taken, and the offset at which its part in the file begins. */
  #pushed = 0
  #taken = 0
  #fileStart = 0
  /** The piece that the reader got last, if its memory is to be given back. */
  #given: Uint8Array | null = null
  #hasEnded = false
  #error: unknown = null
  #wake: (() => void) | null = null
  #isCancelled = false
  #isClosed = false

  constructor(options: SpillOptions) {
    this.#options = options
    this.owner = options.owner ?? ''
  }

  get dir(): string {
    return this.#options.dir
  }

  /** File space that this queue has reserved. */
  get fileBytes(): number {
    return this.#fileBytes
  }

  /** Whether the reader is gone, so that pushed bytes are discarded. */
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Add a chunk, which belongs to the queue from now on. Throws if the room has no space for it. */
  push(chunk: Uint8Array): void {
    if (this.#isCancelled) return
    const { dir, room } = this.#options
    const isInOrder = this.#read === this.#written
    if (isInOrder && this.#heldBytes + chunk.length <= MEMORY_BYTES && room.hold(chunk.length, this.#heldBytes)) {
      this.#held.push({ start: this.#pushed, length: chunk.length, bytes: chunk })
      this.#heldBytes += chunk.length
    } else {
      const growth = Math.max(0, this.#written + chunk.length - this.#fileBytes)
      room.file(growth, this)
      this.#fileBytes += growth
      this.#file ??= openNameless(dir)
      if (this.#written === 0) this.#fileStart = this.#pushed
      writeAt(this.#file, chunk, this.#written)
      this.#written += chunk.length
    }
    this.#pushed += chunk.length
    this.#wake?.()
  }

  end(): void {
    this.#hasEnded = true
    this.#wake?.()
  }

  /** The reader gets the bytes pushed so far, and then the error. */
  fail(error: unknown): void {
    this.#error = error
    this.end()
  }

  /** Returns the stream of the bytes, for one reader. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.#watchReader(controller),
        pull: async (controller) => {
          this.#lastReadAt = performance.now()
          this.#options.onRead?.()
          if (this.#given !== null) giveBack(this.#given)
          this.#given = null
          for (;;) {
            const chunk = this.#next()
            if (chunk !== null) {
              if (this.#options.takesPieces) this.#given = chunk
              return controller.enqueue(chunk)
            }
            if (this.#hasEnded) break
            await new Promise<void>((resolve) => (this.#wake = resolve))
          }
          this.#close()
          if (this.#error === null) controller.close()
          else controller.error(this.#error)
        },
        cancel: () => this.#cancel(),
      },
      { highWaterMark: 0 },
    )
  }

  #watchReader(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#lastReadAt = performance.now()
    this.#controller = controller
    const { room, stallMillis = STALL_MILLIS } = this.#options
    room.enter(this)
    this.#watch = setInterval(() => this.giveUpIdle(stallMillis), stallMillis / 2)
    this.#watch.unref()
  }

  /** Disconnect the reader if it has taken no queued bytes for this long. */
  giveUpIdle(millis: number): void {
    const isAwaited = this.#held.length > 0 || this.#read < this.#written
    if (!isAwaited || performance.now() - this.#lastReadAt < millis) return
    this.giveUp('the reader is idle')
  }

  /** Disconnect the reader. Does nothing if it has everything, or is gone. */
  giveUp(reason: string): void {
    if (this.#isClosed) return
    this.#controller?.error(new Error(reason))
    this.#cancel()
  }

  #cancel(): void {
    this.#isCancelled = true
    this.#close()
    this.#wake?.()
  }

  /**
   * Returns the next piece, or null if none is queued. Throws, and disconnects the reader, if the invariant is
   * violated.
   */
  #next(): Uint8Array | null {
    const piece = this.#pieceHeld() ?? this.#pieceOfFile()
    if (piece !== null && piece.start === this.#taken && piece.length === piece.bytes.length) {
      this.#taken += piece.length
      return piece.bytes
    }
    if (piece === null && (this.#taken === this.#pushed || this.#isCancelled)) return null
    this.#cancel()
    throw new Error(`the queue has lost bytes at offset ${this.#taken} of ${this.#pushed}`)
  }

  #pieceHeld(): Piece | null {
    const piece = this.#held.shift()
    if (piece === undefined) return null
    this.#heldBytes -= piece.length
    this.#options.room.drop(piece.length)
    return piece
  }

  /** Returns the next piece of the file, or null if all of it was read. */
  #pieceOfFile(): Piece | null {
    const length = Math.min(READ_BYTES, this.#written - this.#read)
    if (this.#file === null || length === 0) return null
    const chunk = new Uint8Array(length)
    const count = readSync(this.#file, chunk, 0, length, this.#read)
    const piece = { start: this.#fileStart + this.#read, length, bytes: chunk.subarray(0, count) }
    this.#read += length
    // All of it was read: the next write starts at the beginning of the file.
    if (this.#read === this.#written) this.#read = this.#written = 0
    return piece
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const { room, onEnd } = this.#options
    room.leave(this)
    this.#held.length = 0
    room.drop(this.#heldBytes)
    this.#heldBytes = 0
    this.#hasEnded = true
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
    if (this.#watch !== null) clearInterval(this.#watch)
    room.empty(this.#fileBytes)
    this.#fileBytes = 0
    this.#read = this.#written = 0
    onEnd?.()
  }
}

/** Frees the memory of bytes that are no longer needed, unless other bytes share it. */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
