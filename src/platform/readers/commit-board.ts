/**
 * What the main thread tells reader threads about commits, in memory that they share.
 *
 * A commit is noted before SQLite makes it visible, and again once it is on the disk. A reader may begin to read a
 * state only if both notes agree before and afterwards: that state is on the disk. While they differ, the reader keeps
 * the state that it has.
 */

/**
 * Places of the numbers: the newest commit, the newest one on the disk, how many statements readers have run, and then
 * the state of each reader.
 */
const COMMITTED = 0
const FLUSHED = 1
const STATEMENTS = 2
const STATES = 3
/** State of a reader that reads nothing. */
const GONE = -1
/** How long writers wait for readers to leave a log that is to restart. */
const LEAVE_MILLIS = 50

export class CommitBoard {
  readonly #notes: Int32Array<SharedArrayBuffer>

  /** `shared` is the memory of the board of another thread. */
  constructor(
    readers: number,
    readonly shared: SharedArrayBuffer = new SharedArrayBuffer((STATES + readers) * Int32Array.BYTES_PER_ELEMENT),
  ) {
    this.#notes = new Int32Array(shared)
  }

  /** The newest state that is on the disk. Numbers wrap around, and are only compared for equality. */
  get flushed(): number {
    return Atomics.load(this.#notes, FLUSHED)
  }

  get #committed(): number {
    return Atomics.load(this.#notes, COMMITTED)
  }

  /** Call it before COMMIT. Returns the state that the commit makes. */
  begin(): number {
    Atomics.add(this.#notes, COMMITTED, 1)
    return this.#committed
  }

  /** The commit of this state, and all before it, are on the disk, or were not made. By default, the newest commit. */
  settle(state = this.#committed): void {
    Atomics.store(this.#notes, FLUSHED, state)
    Atomics.notify(this.#notes, FLUSHED)
  }

  /** Begins to `read`. Returns the state that is read; null while a commit is on its way to the disk. */
  steady(read: () => void): number | null {
    const committed = this.#committed
    if (committed !== this.flushed) return null
    read()
    return this.#committed === committed ? committed : null
  }

  /** Resolves to true once another state than this one is on the disk, or to false after `millis`. */
  async after(state: number, millis = Infinity): Promise<boolean> {
    const waiting = Atomics.waitAsync(this.#notes, FLUSHED, state, millis)
    return !waiting.async || (await waiting.value) !== 'timed-out'
  }

  /** How many statements readers have run. Wraps around. */
  get statements(): number {
    return Atomics.load(this.#notes, STATEMENTS)
  }

  countStatement(): void {
    Atomics.add(this.#notes, STATEMENTS, 1)
  }

  /** Reader `index` reads this state from now on. */
  noteReading(index: number, state: number): void {
    Atomics.store(this.#notes, STATES + index, state)
  }

  /** Reader `index` reads nothing any more. */
  leave(index: number): void {
    Atomics.store(this.#notes, STATES + index, GONE)
  }

  /**
   * Makes readers start over. A reader that still uses a log that was copied into the database keeps it from
   * restarting. Call it while no commit is on its way.
   */
  renewReaders(): void {
    this.begin()
    this.settle()
  }

  /** Resolves when all readers have started over, or have taken too long. */
  async renewed(): Promise<void> {
    const deadline = performance.now() + LEAVE_MILLIS
    while (!this.#areCurrent && performance.now() < deadline) await Bun.sleep(1)
  }

  get #areCurrent(): boolean {
    const { flushed } = this
    return this.#notes.subarray(STATES).every((state) => state === flushed || state === GONE)
  }
}
