/**
 * Keeping SQLite's write-ahead log durable and short without stopping the event loop.
 *
 * SQLite itself would wait for the disk inside COMMIT, and now and then copy the log into the database there, which on
 * a slow card takes tens of milliseconds each. So commits only write the log (`synchronous = NORMAL`), and whoever
 * waits for one is answered after the log was flushed here, on the runtime's thread pool: durable exactly as with FULL.
 * Copying is the work of another thread.
 */
import { closeSync, fdatasync, fstatSync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

const flush = promisify(fdatasync)

/** What the log grows by: a dozen commits of a record. */
const STEP_BYTES = 512 * 1024
const zeros = new Uint8Array(STEP_BYTES)

export class WriteAheadLog {
  #descriptor: number | null = null
  #fault: unknown = null
  /** Where the file ended when it was made longer. */
  #endBytes = 0

  constructor(readonly databasePath: string) {}

  /** Resolves when everything that was written to the log is on the disk. */
  async sync(): Promise<void> {
    // A disk that lost a write may claim the next time that all is well.
    if (this.#fault !== null) throw this.#fault
    try {
      await flush((this.#descriptor ??= openSync(`${this.databasePath}-wal`, 'r+')))
    } catch (error) {
      this.#fault = error
      throw error
    }
  }

  /**
   * Make room behind the first `bytes` of the log, while nobody writes. A flush of a file that has become longer also
   * waits for the journal of the file system, with what others have put there: twice as long as for bytes that were
   * there before. To SQLite zeros are the end of the log.
   */
  makeRoom(bytes: number): void {
    if (this.#descriptor === null || bytes + STEP_BYTES / 2 <= this.#endBytes) return
    try {
      const { size } = fstatSync(this.#descriptor)
      this.#endBytes = size + writeSync(this.#descriptor, zeros, 0, STEP_BYTES, size)
    } catch {
      // A disk that is full: whoever writes next finds out, and is answered so.
    }
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor)
  }
}

/** Copies the log into the database, in a thread of its own that starts when it is first needed. */
export class Checkpointer {
  #worker: Worker | null = null
  #running: Promise<boolean> | null = null

  constructor(readonly databasePath: string) {}

  /** One pass, or the one that runs already. False when the thread could not do it. */
  pass(): Promise<boolean> {
    return (this.#running ??= this.#ask(this.databasePath).finally(() => (this.#running = null)))
  }

  #ask(message: string | null): Promise<boolean> {
    const worker = (this.#worker ??= this.#start())
    const { promise, resolve } = Promise.withResolvers<boolean>()
    worker.onmessage = () => resolve(true)
    worker.onerror = () => {
      // It answers nothing any more; the next pass has a new one.
      this.#worker = null
      resolve(false)
    }
    worker.postMessage(message)
    return promise
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checkpoint-worker.ts', import.meta.url).href)
    worker.unref()
    return worker
  }

  /** The thread lets go of the database first: ended in the middle of that, it would hold locks on the log. */
  async close(): Promise<void> {
    await this.#running
    this.#worker?.ref()
    if (this.#worker !== null) await this.#ask(null)
    this.#worker?.terminate()
  }
}
