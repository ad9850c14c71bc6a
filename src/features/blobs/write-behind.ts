import type { FileHandle } from 'node:fs/promises'

/** What may wait in memory of the system before it is sent on to the disk. */
const FLUSH_BYTES = 4 * 1024 ** 2

/**
 * Writes a file one chunk behind its caller, who hashes the next one meanwhile, and flushes it along the way, so that
 * the flush at the end has little left to do. A chunk must stay as it is until the one after it was accepted.
 */
export class WriteBehind {
  #writing: Promise<void> = Promise.resolve()
  #flushing: Promise<void> | null = null
  #unflushedBytes = 0
  #fault: unknown = null

  constructor(readonly file: FileHandle) {}

  /** Resolves when the chunk was accepted. Throws what went wrong with those before. */
  async write(chunk: Uint8Array): Promise<void> {
    await this.#writing
    if (this.#fault !== null) throw this.#fault
    this.#writing = this.#noting(writeAll(this.file, chunk))
    this.#unflushedBytes += chunk.byteLength
    if (this.#unflushedBytes < FLUSH_BYTES || this.#flushing !== null) return
    this.#unflushedBytes = 0
    this.#flushing = this.#noting(this.file.datasync()).finally(() => (this.#flushing = null))
  }

  /** Resolves when all of it is on the disk. */
  async finish(): Promise<void> {
    await this.#drain()
    if (this.#fault !== null) throw this.#fault
    await this.file.sync()
  }

  /** Close the file, whatever became of it, when nobody writes to it any more. */
  async close(): Promise<void> {
    await this.#drain()
    await this.file.close()
  }

  async #drain(): Promise<void> {
    await this.#writing
    await this.#flushing
  }

  /** The system tells of a fault once: it has to be kept for whoever asks next. */
  #noting(work: Promise<void>): Promise<void> {
    return work.catch((error: unknown) => {
      this.#fault ??= error
    })
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) at += (await file.write(bytes, at)).bytesWritten
}
