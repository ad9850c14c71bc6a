/**
 * Keeps SQLite's write-ahead log durable and short without blocking the event loop.
 *
 * Left alone, SQLite would wait for the disk inside COMMIT, and would run a checkpoint there from time to time; on a
 * slow card, each takes tens of milliseconds. Instead, COMMIT only writes the log (`synchronous = NORMAL`). This module
 * then flushes the log, on the runtime's thread pool, before the promise of the transaction resolves: this is as
 * durable as FULL. A worker thread runs the checkpoints.
 */
import { closeSync, fdatasync, fstatSync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { storageFaultOf } from '../files/storage-faults.ts'
import { DatabaseUnavailable, OutcomeUnknown } from './database.ts'

const flush = promisify(fdatasync)

/** The log could not be flushed. Only the next start shows whether the last writes to it are on the disk. */
export class FlushFailed extends OutcomeUnknown {
  /** The error for changes that begin later. */
  readonly refusal: DatabaseUnavailable

  constructor(cause: unknown) {
    const fault = storageFaultOf(cause) ?? 'the log of the database cannot be flushed'
    super(`${fault}; the change may still take effect`, { cause })
    this.refusal = new DatabaseUnavailable(`${fault}: the server needs a restart`, { cause })
  }
}

/** The log file is extended by this much at a time: room for a dozen single-record commits. */
const STEP_BYTES = 512 * 1024
const zeros = new Uint8Array(STEP_BYTES)

export class WriteAheadLog {
  #descriptor: number | null = null
  #fault: Error | null = null
  /** Size of the file after it was last extended. */
  #endBytes = 0

  constructor(readonly databasePath: string) {}

  /**
   * Resolves when everything written to the log is on the disk. Throws `FlushFailed`, and the same error in every later
   * call.
   */
  async sync(): Promise<void> {
    // A disk that has lost a write may report success the next time.
    if (this.#fault !== null) throw this.#fault
    try {
      await flush((this.#descriptor ??= openSync(`${this.databasePath}-wal`, 'r+')))
    } catch (error) {
      throw (this.#fault = new FlushFailed(error))
    }
  }

  /**
   * Extends the file beyond the first `bytes` of the log. Call it while there are no writes. Flushing a file that has
   * grown also waits for the file system's journal, including other processes' entries, which takes twice as long as
   * flushing bytes that were allocated before. To SQLite, zeros mark the end of the log.
   */
  makeRoom(bytes: number): void {
    if (this.#descriptor === null || bytes + STEP_BYTES / 2 <= this.#endBytes) return
    try {
      const { size } = fstatSync(this.#descriptor)
      this.#endBytes = size + writeSync(this.#descriptor, zeros, 0, STEP_BYTES, size)
    } catch {
      // The disk is full. The next write reports it to its caller.
    }
  }

  /** Makes later calls of `sync` fail: the number of the descriptor may belong to another file by then. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor)
    this.#descriptor = null
    this.#fault ??= new Error('the log is closed')
  }
}

/** Runs checkpoints in a thread that starts when it is first needed. */
export class Checkpointer {
  #worker: Worker | null = null
  #running: Promise<boolean> | null = null

  constructor(readonly databasePath: string) {}

  get isRunning(): boolean {
    return this.#running !== null
  }

  /** Runs a checkpoint, or joins the one in progress. Returns false if the thread failed. */
  pass(): Promise<boolean> {
    return (this.#running ??= this.#ask(this.databasePath).finally(() => (this.#running = null)))
  }

  #ask(message: string | null): Promise<boolean> {
    const worker = (this.#worker ??= this.#start())
    const { promise, resolve } = Promise.withResolvers<boolean>()
    worker.onmessage = () => resolve(true)
    worker.onerror = () => {
      // The thread is lost; the next pass starts a new one.
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

  /**
   * Lets the thread close its connection first: killed in the middle of a checkpoint, it would leave locks on the log.
   */
  async close(): Promise<void> {
    await this.#running
    this.#worker?.ref()
    if (this.#worker !== null) await this.#ask(null)
    this.#worker?.terminate()
  }
}
