import type { FileHandle } from 'node:fs/promises'

/** Most bytes in the system's cache before they are flushed to the disk. */
const FLUSH_BYTES = 4 * 1024 ** 2

/**
 * Writes a file one chunk behind its caller, who can hash the next chunk in the meantime. Flushes along the way, which
 * leaves little for the flush at the end. A chunk must not change until the next one was accepted.
 */
export class WriteBehind {
  #writing: Promise<void> = Promise.resolve()
  #flushing: Promise<void> | null = null
  #unflushedBytes = 0
  #fault: unknown = null

  constructor(readonly file: FileHandle) {}

  /** Resolves when the chunk was accepted. Throws the error of an earlier chunk. */
  async write(chunk: Uint8Array): Promise<void> {
    await this.#writing
    if (this.#fault !== null) throw this.#fault
    this.#writing = this.#noting(writeAll(this.file, chunk))
    this.#unflushedBytes += chunk.byteLength
    if (this.#unflushedBytes < FLUSH_BYTES || this.#flushing !== null) return
    this.#unflushedBytes = 0
    this.#flushing = this.#noting(this.file.datasync()).finally(() => (this.#flushing = null))
  }

  /** Resolves when the whole file is on the disk. */
  async finish(): Promise<void> {
    await this.#drain()
    if (this.#fault !== null) throw this.#fault
    await this.file.sync()
  }

  /** Close the file after the last write, whether or not it succeeded. */
  async close(): Promise<void> {
    await this.#drain()
    await this.file.close()
  }

  async #drain(): Promise<void> {
    await this.#writing
    await this.#flushing
  }

  /** Keeps the error for the next call, because the system reports it only once. */
  #noting(work: Promise<void>): Promise<void> {
    return work.catch((error: unknown) => {
      this.#fault ??= error
    })
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.byteLength;) at += (await file.write(bytes, at)).bytesWritten
}
