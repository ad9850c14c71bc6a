/** A temporary, unnamed file to which bytes are appended, and whose parts are read back later. */
import { closeSync, readSync } from 'node:fs'
import { openNameless, writeAt } from './nameless-file.ts'

/** Bytes appended in memory before they are written, and bytes per read. */
const BUFFER_BYTES = 64 * 1024

export class Spool {
  #file: number | null = null
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES)
  #buffered = 0
  #written = 0

  /** The file is created in `dir` once there is more than a buffer holds. */
  constructor(readonly dir: string) {}

  get size(): number {
    return this.#written + this.#buffered
  }

  append(bytes: Uint8Array): void {
    if (this.#buffered + bytes.length > BUFFER_BYTES) this.#flush()
    if (bytes.length > BUFFER_BYTES) this.#write(bytes)
    else {
      this.#buffer.set(bytes, this.#buffered)
      this.#buffered += bytes.length
    }
  }

  /** Yields the bytes from `start` up to `end`. Nothing may be appended meanwhile. */
  *read(start = 0, end = this.size): Generator<Uint8Array> {
    for (let at = start; at < end && at < this.#written;) {
      const chunk = new Uint8Array(Math.min(BUFFER_BYTES, end - at, this.#written - at))
      const count = readSync(this.#file!, chunk, 0, chunk.length, at)
      if (count === 0) throw new Error('a temporary file has lost bytes')
      at += count
      yield chunk.subarray(0, count)
    }
    if (end > this.#written) yield this.#buffer.subarray(Math.max(0, start - this.#written), end - this.#written)
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  #flush(): void {
    if (this.#buffered > 0) this.#write(this.#buffer.subarray(0, this.#buffered))
    this.#buffered = 0
  }

  #write(bytes: Uint8Array): void {
    this.#file ??= openNameless(this.dir)
    writeAt(this.#file, bytes, this.#written)
    this.#written += bytes.length
  }
}
