/**
 * Bytes between a writer that must not wait and a reader that may be slow: in memory while they are few, in a file
 * without a name while they are more.
 *
 * Invariant: the reader gets every byte once and in order. What is in memory was pushed before what is in the file, for
 * memory takes nothing while the file holds something unread; and each piece has its place in the stream, which has to be
 * the next one when it is taken. Where it is not, the stream fails: half an archive is told from a whole one, a torn one is not.
 */
import { closeSync, readSync } from 'node:fs'
import { openNameless, writeAt } from './nameless-file.ts'

/** Held in memory, of each queue; what comes on top of it goes to the file. */
const MEMORY_BYTES = 4 * 1024 * 1024
/** Read from the file at once. */
const READ_BYTES = 64 * 1024
/**
 * A reader that takes no queued bytes for this long is given up. Between two reads a client empties what the
 * system has buffered for its connection, which is megabytes: minutes, for one that is slow.
 */
const STALL_MILLIS = 600_000
/** Idle limit when another queue needs the space. */
const IDLE_MILLIS = 60_000

/** What several queues may hold together, in bytes: readers that do not read must fill neither the memory nor the disk. */
export class SpillRoom {
  #held = 0
  #filed = 0
  readonly #queues = new Set<SpillQueue>()

  constructor(
    readonly max: { memoryBytes: number; fileBytes: number },
    readonly idleMillis: number = IDLE_MILLIS,
  ) {}

  /** From now on its reader may be given up for others. */
  enter(queue: SpillQueue): void {
    this.#queues.add(queue)
  }

  leave(queue: SpillQueue): void {
    this.#queues.delete(queue)
  }

  /** False when so much more has to go to a file. */
  hold(bytes: number): boolean {
    if (this.#held + bytes > this.max.memoryBytes) return false
    this.#held += bytes
    return true
  }

  drop(bytes: number): void {
    this.#held -= bytes
  }

  /** Throws when files of others, whose readers read, take so much already. */
  file(bytes: number, by: SpillQueue): void {
    for (const queue of this.#queues) {
      if (this.#filed + bytes <= this.max.fileBytes) break
      if (queue !== by) queue.giveUpIdle(this.idleMillis)
    }
    if (this.#filed + bytes > this.max.fileBytes) throw new Error(`more than ${this.max.fileBytes} bytes wait for slow readers`)
    this.#filed += bytes
  }

  empty(bytes: number): void {
    this.#filed -= bytes
  }
}

interface Piece {
  /** Its first byte, counted from the start of the stream. */
  start: number
  length: number
  bytes: Uint8Array
}

export class SpillQueue {
  readonly #held: Piece[] = []
  #heldBytes = 0
  #file: number | null = null
  /** What the file takes of the room; it does not shrink before it is closed. */
  #fileBytes = 0
  #watch: ReturnType<typeof setInterval> | null = null
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #lastReadAt = 0
  /** Of the file, what was written and what of that was read. */
  #written = 0
  #read = 0
  /** Of the stream, what was pushed and what of that was taken; and where its part in the file begins. */
  #pushed = 0
  #taken = 0
  #fileStart = 0
  #hasEnded = false
  #error: unknown = null
  #wake: (() => void) | null = null
  #isCancelled = false

  /** The file goes into `dir`. */
  constructor(
    readonly dir: string,
    readonly room: SpillRoom,
    readonly stallMillis: number = STALL_MILLIS,
  ) {}

  /** The reader has gone: nothing that is pushed is of use. */
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Takes the chunk as it is: the caller does not change it afterwards. Throws when there is no room for it. */
  push(chunk: Uint8Array): void {
    if (this.#isCancelled) return
    const isInOrder = this.#read === this.#written
    if (isInOrder && this.#heldBytes + chunk.length <= MEMORY_BYTES && this.room.hold(chunk.length)) {
      this.#held.push({ start: this.#pushed, length: chunk.length, bytes: chunk })
      this.#heldBytes += chunk.length
    } else {
      const growth = Math.max(0, this.#written + chunk.length - this.#fileBytes)
      this.room.file(growth, this)
      this.#fileBytes += growth
      this.#file ??= openNameless(this.dir)
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

  /** The reader gets what was pushed, and then the error. */
  fail(error: unknown): void {
    this.#error = error
    this.end()
  }

  /** For one reader. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.#watchReader(controller),
        pull: async (controller) => {
          this.#lastReadAt = performance.now()
          for (;;) {
            const chunk = this.#next()
            if (chunk !== null) return controller.enqueue(chunk)
            if (this.#hasEnded) break
            await new Promise<void>((resolve) => (this.#wake = resolve))
          }
          this.#close()
          if (this.#error === null) controller.close()
          else controller.error(this.#error)
        },
        cancel: () => this.#giveUp(),
      },
      { highWaterMark: 0 },
    )
  }

  #watchReader(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#lastReadAt = performance.now()
    this.#controller = controller
    this.room.enter(this)
    this.#watch = setInterval(() => this.giveUpIdle(this.stallMillis), this.stallMillis / 2)
    this.#watch.unref()
  }

  /** Give up the reader if it has not read queued bytes for this long. */
  giveUpIdle(millis: number): void {
    const isAwaited = this.#held.length > 0 || this.#read < this.#written
    if (!isAwaited || performance.now() - this.#lastReadAt < millis) return
    this.#controller!.error(new Error('nobody reads'))
    this.#giveUp()
  }

  #giveUp(): void {
    this.#isCancelled = true
    this.#close()
    this.#wake?.()
  }

  /** Throws, and gives the reader up, where the invariant does not hold. */
  #next(): Uint8Array | null {
    const piece = this.#pieceHeld() ?? this.#pieceOfFile()
    if (piece !== null && piece.start === this.#taken && piece.length === piece.bytes.length) {
      this.#taken += piece.length
      return piece.bytes
    }
    if (piece === null && (this.#taken === this.#pushed || this.#isCancelled)) return null
    this.#giveUp()
    throw new Error(`a queue of ${this.#pushed} bytes has lost those behind ${this.#taken}`)
  }

  #pieceHeld(): Piece | null {
    const piece = this.#held.shift()
    if (piece === undefined) return null
    this.#heldBytes -= piece.length
    this.room.drop(piece.length)
    return piece
  }

  /** Null when all of it was read. */
  #pieceOfFile(): Piece | null {
    const length = Math.min(READ_BYTES, this.#written - this.#read)
    if (this.#file === null || length === 0) return null
    const chunk = new Uint8Array(length)
    const count = readSync(this.#file, chunk, 0, length, this.#read)
    const piece = { start: this.#fileStart + this.#read, length, bytes: chunk.subarray(0, count) }
    this.#read += length
    // All of it was read: the file begins anew.
    if (this.#read === this.#written) this.#read = this.#written = 0
    return piece
  }

  #close(): void {
    this.room.leave(this)
    this.#held.length = 0
    this.room.drop(this.#heldBytes)
    this.#heldBytes = 0
    this.#hasEnded = true
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
    if (this.#watch !== null) clearInterval(this.#watch)
    this.room.empty(this.#fileBytes)
    this.#fileBytes = 0
    this.#read = this.#written = 0
  }
}
