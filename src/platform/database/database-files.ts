/**
 * Reads the files of a SQLite database directly, while SQLite uses them.
 *
 * To POSIX, a lock belongs to a process and a file. If the process closes any of its descriptors of the file, all of
 * its locks on the file end, including those of SQLite. The next process that opens the database, as `holdfast backup`
 * does beside a running server, would then take it for an unused one: it would rebuild the index of the log while the
 * server uses it, or delete the log. So these descriptors stay open until all connections are closed.
 *
 * https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
 */
import { closeSync, fstatSync, openSync, read } from 'node:fs'
import { promisify } from 'node:util'

const readPart = promisify(read)

export class DatabaseFiles {
  readonly #descriptors = new Map<string, number>()
  #isClosed = false
  /** Reads that are under way. */
  readonly #reads = new Set<Promise<unknown>>()

  constructor(readonly path: string) {}

  /** Descriptor of the database file. */
  get database(): number {
    return this.#descriptorOf(this.path)
  }

  /** Descriptor of the log's index, on which SQLite keeps its locks. */
  get index(): number {
    return this.#descriptorOf(`${this.path}-shm`)
  }

  /** Size of the file of the database. */
  get bytes(): number {
    return fstatSync(this.database).size
  }

  /** Reads the database file from `at`, on another thread. Returns how many bytes were read. */
  async read(buffer: Uint8Array, at: number): Promise<number> {
    // A descriptor may still be known, but is about to be closed.
    if (this.#isClosed) throw closed(this.path)
    const reading = this.#read(buffer, at)
    this.#reads.add(reading)
    try {
      return await reading
    } finally {
      this.#reads.delete(reading)
    }
  }

  async #read(buffer: Uint8Array, at: number): Promise<number> {
    let done = 0
    while (done < buffer.byteLength) {
      const { bytesRead } = await readPart(this.database, buffer, done, buffer.byteLength - done, at + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return done
  }

  /** Call when all connections of this process are closed. Reads that come later fail. */
  async close(): Promise<void> {
    this.#isClosed = true
    // Once a descriptor is closed, its number may belong to another file.
    await Promise.allSettled(this.#reads)
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor)
    this.#descriptors.clear()
  }

  #descriptorOf(path: string): number {
    const known = this.#descriptors.get(path)
    if (known !== undefined) return known
    if (this.#isClosed) throw closed(path)
    const descriptor = openSync(path, 'r')
    this.#descriptors.set(path, descriptor)
    return descriptor
  }
}

const closed = (path: string): Error => new Error(`${path} is closed`)
