/**
 * Keeping SQLite's write-ahead log durable and short without stopping the event loop.
 *
 * SQLite itself would wait for the disk inside COMMIT, and now and then copy the log into the database there, which on
 * a slow card takes tens of milliseconds each. So commits only write the log (`synchronous = NORMAL`), and whoever
 * waits for one is answered after the log was flushed here, on the runtime's thread pool: durable exactly as with FULL.
 * Copying is the work of another thread.
 */
import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'

const flush = promisify(fdatasync)

export class WriteAheadLog {
  #descriptor: number | null = null
  #fault: unknown = null

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
