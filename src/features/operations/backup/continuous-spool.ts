/**
 * Segments that wait for the destination, and the state with which the next start continues the chain.
 *
 * With `async`, each segment is written to a file in the data directory first. With `sync`, where commits wait for the
 * destination anyway, most segments are only in memory (`hold`): the next start makes them again from the database's
 * log, after those that the destination has. A state is written only after all segments that it counts on are in files
 * or at the destination.
 *
 * Nothing here is flushed. A loss of power may damage the spool; `open` notices that, and a new chain begins.
 */
import { renameSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { LogPosition } from '../../../platform/database/log-follower.ts'
import { digestOf, headerOf, numberAfter, type SegmentHeader } from './continuous-format.ts'

export interface ChainState {
  /** The destination of the chain: another destination gets another chain. */
  destination: string
  chain: string
  /** The key of the chain, in base64. As secret as the rest of the data directory. */
  key: string
  /** Number of the last segment; 0 if there is none. */
  number: number
  /** Number of the segment that follows. */
  next: number
  digest: string
  at: Millis
  /** Epoch of the lease under which it was made; never lower than before. Absent in earlier versions. */
  epoch?: number
  /** The promise in the last segment. */
  promise?: 'async' | 'sync'
  position: LogPosition
  /** When the newest base was complete; null if none is. */
  baseAt: Millis | null
  /** The same by the clock at that moment, which may have been set since. Absent in earlier versions. */
  baseMadeAt?: Millis
  /** How many segments were made since the newest base. */
  sinceBase: number
  /** The mark of the database's file when it was closed with everything in it; null while the file is in use. */
  closed: string | null
  /** Only in the file: when the oldest commit in the spool was made. */
  waitingSince?: Millis
}

/** In the data directory. */
export const CONTINUOUS_FOLDER = 'continuous'
const STATE_FILE = 'state.json'
const SUFFIX = '.segment'
/** Most bytes of waiting segments in memory, whether only there or to save reading them again. */
const KEPT_BYTES = 16 * 1024 ** 2
/** How often the state is written while segments are only in memory. The next start finds what was sent since. */
const SAVE_MILLIS = 250
/** No header is longer. */
const HEADER_BYTES = 8192

/** Converts an instant before now to the monotonic clock. If the clock was set back since the instant: now. */
export const monotonicOf = (clock: Clock, at: Millis): number => clock.monotonic() - Math.max(0, clock.now() - at)

/** Returns a mark of the file that differs after every change. */
export function fileMark(path: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join(' ')
}

export interface Spooled {
  readonly number: number
  readonly bytes: number
  /** The monotonic time since which it waits. */
  readonly since: number
  /** Null if the segment is only in a file. */
  content: Uint8Array | null
  /** Whether the content stays in memory. */
  readonly isKept: boolean
  /** The state of the chain through this segment; null if the state on the disk includes it. */
  readonly through: ChainState | null
  /** Whether it is in a file, or is being written to one. */
  isInFile: boolean
  /** Resolves when the segment is in a file, with a state that names it; at once while it is only in memory. */
  written: Promise<void>
  /** `there`: the destination has it, but perhaps not all before it. */
  state: 'waiting' | 'under way' | 'there'
}

export class Spool {
  readonly waiting: Spooled[] = []
  bytes = 0
  readonly #statePath: string
  /** The last state that was written. */
  #saved: ChainState | null = null
  /** When the state was last written for segments in memory, by the monotonic clock. */
  #savedAt = -Infinity
  /** What the last state said about the newest base. */
  #base: Pick<ChainState, 'baseAt' | 'baseMadeAt'> = { baseAt: null }
  /** Writes happen one after another. */
  #writing: Promise<void> = Promise.resolve()
  /** Deletions happen in order, so that a kill leaves the last segments of the chain. */
  #deleting: Promise<void> = Promise.resolve()

  constructor(
    readonly folder: string,
    readonly clock: Clock,
  ) {
    this.#statePath = join(folder, STATE_FILE)
  }

  /** Returns the chain to continue, or null if there is none: the spool is empty then. */
  async open(destination: string): Promise<ChainState | null> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const state = await this.#state()
    if (state !== null && state.destination === destination && (await this.#load(state))) return state
    await this.clear()
    return null
  }

  async #state(): Promise<ChainState | null> {
    try {
      const state = JSON.parse(await readFile(this.#statePath, 'utf8')) as ChainState
      return { ...state, next: state.next ?? state.number + 1, sinceBase: state.sinceBase ?? 0 }
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Load the files. Returns false unless they are the last segments of the chain. */
  async #load({ number: last, digest, waitingSince }: ChainState): Promise<boolean> {
    const since = waitingSince === undefined ? this.clock.monotonic() : monotonicOf(this.clock, waitingSince)
    const numbers = (await readdir(this.folder))
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => Number(name.slice(0, -SUFFIX.length)))
      .sort((a, b) => a - b)
    // Written, but not the state: their pages are read from the log again.
    for (const number of numbers.filter((each) => each > last)) await rm(this.#path(number))
    let next = null
    for (const number of numbers.filter((each) => each <= last)) {
      const { size, header } = await this.#headerOf(number)
      if (header?.number !== number || (next !== null && number !== next)) return false
      next = numberAfter(header)
      const written = Promise.resolve()
      this.waiting.push({
        number,
        bytes: size,
        since,
        content: null,
        isKept: false,
        through: null,
        isInFile: true,
        written,
        state: 'waiting',
      })
      this.bytes += size
    }
    const newest = this.waiting.at(-1)
    return newest === undefined || (newest.number === last && digestOf(await this.read(newest)) === digest)
  }

  async #headerOf(number: number): Promise<{ size: number; header: SegmentHeader | null }> {
    const file = await open(this.#path(number), 'r')
    try {
      const { size } = await file.stat()
      const start = new Uint8Array(Math.min(size, HEADER_BYTES))
      await file.read(start, 0, start.byteLength, 0)
      return { size, header: headerOf(start) }
    } finally {
      await file.close()
    }
  }

  /**
   * Add the last segment of the chain, which waits from now on. Resolves when it is in a file. If it cannot be written,
   * `keeps` says whether it waits in memory.
   */
  add(state: ChainState, content: Uint8Array, since: number): Promise<void> {
    this.#enter(state, content, since)
    return this.flush()
  }

  /** Add a segment that the next start does not need. Returns null if it is only in memory. */
  hold(state: ChainState, content: Uint8Array, since: number): Promise<void> | null {
    return this.#enter(state, content, since).isKept ? null : this.flush()
  }

  #enter(state: ChainState, content: Uint8Array, since: number): Spooled {
    const { byteLength: bytes } = content
    const entry: Spooled = {
      number: state.number,
      bytes,
      since,
      content,
      isKept: this.bytes + bytes <= KEPT_BYTES,
      through: { ...state },
      isInFile: false,
      written: Promise.resolve(),
      state: 'waiting',
    }
    this.waiting.push(entry)
    this.bytes += bytes
    this.#base = state
    return entry
  }

  /** Write all segments that are only in memory to files, the oldest first, and then the state. */
  flush(): Promise<void> {
    const written: Promise<void> = this.#writing.then(() => {
      const held = this.waiting.filter(({ isInFile }) => !isInFile)
      for (const each of held) Object.assign(each, { isInFile: true, written })
      return this.#writeAll(held)
    })
    // A segment that is being sent waits for this too.
    for (const each of this.waiting) if (!each.isInFile) each.written = written
    this.#writing = written.catch(() => undefined)
    return written
  }

  async #writeAll(held: Spooled[]): Promise<void> {
    try {
      for (const { number, content } of held) await this.#write(this.#path(number), content!)
      if (held.length > 0) await this.#writeState(held.at(-1)!.through!)
    } catch (error) {
      for (const each of held) each.isInFile = false
      // Beside a later state, they would pass for the last segments of the chain.
      for (const { number } of held) await this.#delete(number)
      throw error
    }
    for (const each of held) if (!each.isKept) each.content = null
  }

  async #writeState(state: ChainState): Promise<void> {
    const { baseAt, baseMadeAt } = this.#base
    const isOlder = this.#saved?.chain === state.chain && state.number < this.#saved.number
    const newest = isOlder ? this.#saved! : state
    await this.#write(this.#statePath, this.#textOf({ ...newest, baseAt, baseMadeAt }))
    this.#saved = newest
  }

  #textOf(state: ChainState): string {
    const [oldest] = this.waiting
    const { clock } = this
    const waitingSince = oldest && clock.now() - Math.ceil(clock.monotonic() - oldest.since)
    return JSON.stringify({ ...state, waitingSince })
  }

  /** Call it after a failed write. Returns whether the segment waits in memory; otherwise the spool forgets it. */
  keeps(number: number): boolean {
    const index = this.waiting.findIndex((each) => each.number === number)
    if (index < 0 || this.waiting[index]!.isKept) return true
    const [{ bytes }] = this.waiting.splice(index, 1) as [Spooled]
    this.bytes -= bytes
    return false
  }

  /**
   * Keep the first segments, and forget the rest, because others take their place. The files of the rest are
   * overwritten, or deleted at the next start.
   */
  keep(count: number): void {
    for (const { bytes } of this.waiting.splice(count)) this.bytes -= bytes
  }

  /** Forget all segments: the destination has everything through this state. */
  async skip(state: ChainState): Promise<void> {
    while (this.waiting.length > 0) await this.shift(-Infinity)
    await this.save(state)
  }

  async read({ number, content, written }: Spooled): Promise<Uint8Array> {
    if (content !== null) return content
    await written
    return readFile(this.#path(number))
  }

  /** Remove the oldest segment, which the destination has. Returns null if nothing is left to do. `now`: monotonic. */
  shift(now: number): Promise<void> | null {
    const { number, bytes, isInFile, written, through } = this.waiting.shift()!
    this.bytes -= bytes
    if (!isInFile) return now - this.#savedAt < SAVE_MILLIS ? null : this.#noteSent(through!, now)
    const deleted = Promise.allSettled([this.#deleting, written]).then(() => this.#delete(number))
    this.#deleting = deleted.catch(() => undefined)
    return deleted
  }

  #noteSent(state: ChainState, now: number): Promise<void> {
    this.#savedAt = now
    const written = this.#writing.then(() => this.#writeState(state))
    this.#writing = written.catch(() => undefined)
    return written
  }

  async #delete(number: number): Promise<void> {
    await unlink(this.#path(number)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
  }

  save(state: ChainState): Promise<void> {
    this.#base = state
    const saved = { ...state }
    const written = this.flush().then(() => this.#writeState(saved))
    this.#writing = written.catch(() => undefined)
    return written
  }

  /** As `save`, while the process ends. */
  saveNow(state: ChainState): void {
    writeFileSync(`${this.#statePath}.part`, this.#textOf(state), { mode: 0o600 })
    renameSync(`${this.#statePath}.part`, this.#statePath)
  }

  async clear(): Promise<void> {
    await Promise.all([this.#writing, this.#deleting])
    // Delete the state first: without the segments that it counts on, the next start would still continue it.
    await rm(this.#statePath, { force: true })
    for (const name of await readdir(this.folder)) await rm(join(this.folder, name), { force: true })
    this.waiting.length = 0
    this.bytes = 0
    this.#saved = null
  }

  async #write(path: string, content: Uint8Array | string): Promise<void> {
    await writeFile(`${path}.part`, content, { mode: 0o600 })
    await rename(`${path}.part`, path)
  }

  #path(number: number): string {
    return join(this.folder, `${number}${SUFFIX}`)
  }
}
