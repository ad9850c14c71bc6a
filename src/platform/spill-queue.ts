/**
 * Bytes between a writer that must not wait and a reader that may be slow: in memory while they are few, in a file
 * without a name while they are more.
 */
import { closeSync, readSync } from 'node:fs'
import { openNameless, writeAt } from './nameless-file.ts'

/** Held in memory; what comes on top of it goes to the file. */
const MEMORY_BYTES = 4 * 1024 * 1024
/** Read from the file at once. */
const READ_BYTES = 64 * 1024

export class SpillQueue {
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  #file: number | null = null
  /** Of the file, what was written and what of that was read. */
  #written = 0
  #read = 0
  #hasEnded = false
  #error: unknown = null
  #wake: (() => void) | null = null
  #isCancelled = false

  /** The file goes into `dir`. */
  constructor(readonly dir: string) {}

  /** The reader has gone: nothing that is pushed is of use. */
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Takes the chunk as it is: the caller does not change it afterwards. */
  push(chunk: Uint8Array): void {
    if (this.#isCancelled) return
    const isInOrder = this.#read === this.#written
    if (isInOrder && this.#heldBytes + chunk.length <= MEMORY_BYTES) {
      this.#held.push(chunk)
      this.#heldBytes += chunk.length
    } else {
      this.#file ??= openNameless(this.dir)
      writeAt(this.#file, chunk, this.#written)
      this.#written += chunk.length
    }
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
        pull: async (controller) => {
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
        cancel: () => {
          this.#isCancelled = true
          this.#close()
          this.#wake?.()
        },
      },
      { highWaterMark: 0 },
    )
  }

  #next(): Uint8Array | null {
    const held = this.#held.shift()
    if (held !== undefined) {
      this.#heldBytes -= held.length
      return held
    }
    if (this.#file === null || this.#read === this.#written) return null
    const chunk = new Uint8Array(Math.min(READ_BYTES, this.#written - this.#read))
    const count = readSync(this.#file, chunk, 0, chunk.length, this.#read)
    this.#read += count
    // All of it was read: the file begins anew.
    if (this.#read === this.#written) this.#read = this.#written = 0
    return chunk.subarray(0, count)
  }

  #close(): void {
    this.#held.length = 0
    this.#hasEnded = true
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
    this.#read = this.#written = 0
  }
}
