/**
 * Bytes that are written quickly and read slowly: in memory while they are few, then in a file that has no name, so
 * that nothing is left behind however the process ends.
 */
import { closeSync, readSync } from 'node:fs'
import { openNameless, writeWhole } from './nameless-file.ts'

/** Held in memory; what is larger goes to the file. */
const MEMORY_BYTES = 2 * 1024 * 1024
/** Read from the file at once. */
const READ_BYTES = 256 * 1024

export class Spool {
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  #file: number | null = null
  #size = 0

  /** The file goes into `dir`. */
  constructor(readonly dir: string) {}

  get size(): number {
    return this.#size
  }

  /** Takes the chunk as it is: the caller does not change it afterwards. */
  write(chunk: Uint8Array): void {
    this.#size += chunk.length
    if (this.#file === null && this.#heldBytes + chunk.length <= MEMORY_BYTES) {
      this.#held.push(chunk)
      this.#heldBytes += chunk.length
      return
    }
    this.#file ??= this.#spill()
    writeWhole(this.#file, chunk)
  }

  /** Hand out everything, once, and then let go of it. */
  stream(): ReadableStream<Uint8Array> {
    let position = 0
    const next = (): Uint8Array | null => {
      if (this.#file === null) return this.#held.shift() ?? null
      const chunk = new Uint8Array(Math.min(READ_BYTES, this.#size - position))
      const count = readSync(this.#file, chunk, 0, chunk.length, position)
      position += count
      return count === 0 ? null : chunk.subarray(0, count)
    }
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const chunk = next()
          if (chunk !== null) return controller.enqueue(chunk)
          this.close()
          controller.close()
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    )
  }

  close(): void {
    this.#held.length = 0
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  #spill(): number {
    const file = openNameless(this.dir)
    for (const chunk of this.#held.splice(0)) writeWhole(file, chunk)
    return file
  }
}
