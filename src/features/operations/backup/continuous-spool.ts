/**
 * Segments that wait for the destination, and what the next start needs to continue the chain.
 *
 * With `async`, each is written to a file in the data directory first. With `sync`, whose commits wait for the
 * destination anyway, most are in memory alone (`hold`): the next start makes others of the log of the database, after
 * those that the destination has. A state is written only after all segments that it counts on, which are in files or
 * at the destination.
 *
 * Nothing here is flushed: after a loss of power it may be damaged, which `open` notices; a new chain begins then.
 */
import { renameSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { LogPosition } from '../../../platform/database/log-follower.ts'
import { digestOf, headerOf, numberAfter, type SegmentHeader } from './continuous-format.ts'

export interface ChainState {
  /** Where the chain is: another destination gets another chain. */
  destination: string
  chain: string
  /** In base64. As secret as the rest of the data directory. */
  key: string
  /** Of the last segment: 0 if there is none. */
  number: number
  /** Of the one that follows. */
  next: number
  digest: string
  at: Millis
  /**
   * Epoch of the lease under which the last segment was made. After a restart, segments keep it until the lease has
   * been read again.
   */
  epoch?: number
  /** The promise in the last segment. */
  promise?: 'async' | 'sync'
  position: LogPosition
  /** When the newest base was complete; null if none is. */
  baseAt: Millis | null
  /** The same by the clock of that moment, which may have been set since. Earlier versions have none. */
  baseMadeAt?: Millis
  /** How many segments were made since. */
  sinceBase: number
  /** The database's file, as it was closed with everything in it; null while it is used. */
  closed: string | null
  /** In a file: when the oldest commit was made that waits in the spool. */
  waitingSince?: Millis
}

/** In the data directory. */
export const CONTINUOUS_FOLDER = 'continuous'
const STATE_FILE = 'state.json'
const SUFFIX = '.segment'
/** Bytes of waiting segments that are in memory, alone or so that they need not be read again. */
const KEPT_BYTES = 16 * 1024 ** 2
/** How often the state is written while segments are in memory alone. The next start reads what was sent since. */
const SAVE_MILLIS = 250
/** A header is shorter. */
const HEADER_BYTES = 8192

/** An instant before this process began, or in it, by its monotonic clock. If the clock was set back since: now. */
export const monotonicOf = (clock: Clock, at: Millis): number => clock.monotonic() - Math.max(0, clock.now() - at)

/** Another one after every change of the file. */
export function fileMark(path: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join(' ')
}

export interface Spooled {
  readonly number: number
  readonly bytes: number
  /** Since when it waits, by the monotonic clock. */
  readonly since: number
  /** Null if it is in a file alone. */
  content: Uint8Array | null
  /** Whether the content stays in memory. */
  readonly isKept: boolean
  /** The chain through this segment; null if the state on the disk has it. */
  readonly through: ChainState | null
  /** Whether it is in a file, or is being written to one. */
  isInFile: boolean
  /** Resolves when it is in the file, with a state that names it; at once while it is in memory alone. */
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
  /** What was last said about the newest base. */
  #base: Pick<ChainState, 'baseAt' | 'baseMadeAt'> = { baseAt: null }
  /** Writes one after another. */
  #writing: Promise<void> = Promise.resolve()
  /** The same of deletions, so that what a kill leaves are the last ones of the chain. */
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

  /** Returns false unless the files are the last segments of the chain. */
  async #load({ number: last, digest, waitingSince }: ChainState): Promise<boolean> {
    const since = waitingSince === undefined ? this.clock.monotonic() : monotonicOf(this.clock, waitingSince)
    const numbers = (await readdir(this.folder))
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => Number(name.slice(0, -SUFFIX.length)))
      .sort((a, b) => a - b)
    // Written before the state: its pages are read again.
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
   * Add the last segment of the chain, which waits from now on. Resolves when it is in the spool. If it cannot be
   * written, `keeps` tells whether it waits all the same.
   */
  add(state: ChainState, content: Uint8Array, since: number): Promise<void> {
    this.#enter(state, content, since)
    return this.flush()
  }

  /** Add a segment that the next start does not need. Returns null if it is in memory alone. */
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

  /** Write all that are in memory alone to files, the oldest first, and then the state. */
  flush(): Promise<void> {
    const written: Promise<void> = this.#writing.then(() => {
      const held = this.waiting.filter(({ isInFile }) => !isInFile)
      for (const each of held) Object.assign(each, { isInFile: true, written })
      return this.#writeAll(held)
    })
    // A segment that is sent meanwhile waits for this too.
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

  /** It could not be written. Returns whether it still waits, in memory alone; otherwise it is forgotten. */
  keeps(number: number): boolean {
    const index = this.waiting.findIndex((each) => each.number === number)
    if (index < 0 || this.waiting[index]!.isKept) return true
    const [{ bytes }] = this.waiting.splice(index, 1) as [Spooled]
    this.bytes -= bytes
    return false
  }

  /** Others follow the first ones. The files of the rest are replaced by theirs, or dropped at the next start. */
  keep(count: number): void {
    for (const { bytes } of this.waiting.splice(count)) this.bytes -= bytes
  }

  /** The destination has all through this state. */
  async skip(state: ChainState): Promise<void> {
    while (this.waiting.length > 0) await this.shift(-Infinity)
    await this.save(state)
  }

  async read({ number, content, written }: Spooled): Promise<Uint8Array> {
    if (content !== null) return content
    await written
    return readFile(this.#path(number))
  }

  /** The destination has the oldest one. Returns null if that leaves nothing to do. `now`: by the monotonic clock. */
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

  /** The same, while the process ends. */
  saveNow(state: ChainState): void {
    writeFileSync(`${this.#statePath}.part`, this.#textOf(state), { mode: 0o600 })
    renameSync(`${this.#statePath}.part`, this.#statePath)
  }

  async clear(): Promise<void> {
    await Promise.all([this.#writing, this.#deleting])
    // A state without the segments that it counts on would be continued.
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
