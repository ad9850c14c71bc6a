/**
 * Reads what commits add to SQLite's write-ahead log, for copies that follow the database.
 *
 * Once a checkpoint has copied the whole log, SQLite may restart the log from its beginning, and frames that were not
 * read by then are lost. SQLite decides that when a write transaction begins, by `nBackfill`, the number of frames that
 * have been copied. So the writer's queue calls `beforeWrites` after BEGIN, which reads the rest of the log if all of
 * it has been copied. At other times the log only grows. It is then read when pages are taken, so a page that changes
 * often is read once.
 *
 * If the process ends before these pages are taken, the next process finds a log that has restarted. The present log
 * overwrites the frames of the former one from the first frame on, so the last frames of the former log are still
 * there, and `resume` reads them.
 *
 * The index of the log, the file `-shm`, says which page each frame holds.
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 * https://www.sqlite.org/walformat.html#the_wal_index_file_format
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import type { DatabaseFiles } from './database-files.ts'
import { PAGE_BYTES, PageList } from './page-list.ts'
import type { Reader } from './sql.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** Size of a frame: a page and its header. */
export const FRAME_BYTES = PAGE_BYTES + FRAME_HEADER_BYTES
const SALTS_AT = 16
const NO_LOG = ''
const SALTS_BYTES = 8
const CHECKSUM_BYTES = 8
/** In a frame's header: its salts, and the checksum of all frames through this one. */
const FRAME_SALTS_AT = 8
const FRAME_CHECKSUM_AT = 16
/** The index consists of blocks, each of which begins with page numbers. In the first block, a header precedes them. */
const BLOCK_BYTES = 32_768
const BLOCK_FRAMES = 4096
const INDEX_HEADER_BYTES = 136
const FIRST_BLOCK_FRAMES = 4062
const BACKFILL_AT = 96
const WORD_BYTES = 4
/** Most frames in one read. Fewer would take more calls, and more do not fit into the cache of a processor. */
const RUN_FRAMES = 64
/** Most memory that is kept for later pages. Clearing new memory each time takes longer than reading the pages. */
const MAX_KEPT_BYTES = 64 * 1024 ** 2
/** Most buffers that are kept: while the pages of one commit are being sealed, those of other commits are read. */
const MAX_KEPT = 3
/** A buffer is kept only if at least this part of it was needed lately. */
const LEAST_USE = 1 / 16
/** The size needed lately fades by this factor at each `giveBack`: a small commit often follows a large one. */
const FADING = 0.9
/** Reading over up to this many frames that are not needed takes less time than another call. */
const MAX_SKIPPED_FRAMES = 3

/** A place in the log. */
export interface LogPosition {
  /** They change whenever the log restarts; empty before there is a log. */
  salts: string
  frames: number
  /** The checksum of the last frame, which covers all frames before it. */
  checksum: string
}

/** Pages that commits have changed, as of the last of these commits. */
export interface Pages {
  /** In the format of `PageList`. */
  pages: Uint8Array<ArrayBuffer>
  /** Size of the database after the commit, in pages. */
  databasePages: number
  /** The place up to which the log has been read for these pages. */
  position: LogPosition
}

/** What commits must pass, besides the flush, before they are acknowledged: `SegmentGate` is one, with `sync`. */
export interface CommitGate {
  /** Why no transaction can be acknowledged, and since when by the monotonic clock; null if they can. */
  readonly refusal: { error: Error; at: number } | null
  /**
   * Called after each COMMIT and before the next one; earlier ones may still wait here. Resolves once this commit and
   * all before it may be acknowledged. Rejects if they never may be, and then rejects all later commits.
   */
  pass(commit: GatedCommit): Promise<void>
}

export interface GatedCommit {
  /** Resolves when the commit is on the disk. */
  flushed: Promise<void>
  /** Reads the state after the commit. Works until the commit has passed. */
  state: Reader
  /**
   * Tells callers that the outcome of this commit is not known yet, and refuses all transactions that have not begun.
   */
  refuse(error: Error): void
}

export class LogFollower {
  readonly #log: number
  readonly #files: DatabaseFiles
  #position: LogPosition = { salts: NO_LOG, frames: 0, checksum: '' }
  /** Committed frames in the log. */
  #frames = 0
  /** The pages that have been read since the last `take`. */
  #pages = new PageList()
  #databasePages = 0
  /** Buffers for later pages. They are used in turn, so that none is kept for nothing. */
  readonly #kept: Uint8Array<ArrayBuffer>[] = []
  /** About the size of the largest pages that were lately given back. */
  #neededBytes = 0
  readonly #run = new Uint8Array(RUN_FRAMES * FRAME_BYTES)
  readonly #word = Buffer.alloc(WORD_BYTES)
  /** Whether frames are missing, because the log restarted when it should not have. */
  isBroken = false
  /** What commits have to pass before they are acknowledged; null if the flush is enough. */
  gate: CommitGate | null = null
  /** Called after a commit that has added to the log. */
  onCommit: () => void = () => {}
  /** Called before the database is closed. Until it resolves, more commits may come. */
  onClosing: () => Promise<void> = async () => {}
  /** Called when the last commit was made, before the log is emptied. Must not reject. */
  onLastCommit: () => Promise<void> = async () => {}
  /** Called when the database is closed. `isWhole`: its file has all commits that were noted, and no others. */
  onClosed: (isWhole: boolean) => void = () => {}

  constructor(files: DatabaseFiles) {
    this.#files = files
    this.#log = openSync(`${files.path}-wal`, 'r')
  }

  /**
   * Call between groups. Reads all frames that are not in the database file yet, so that the file and the pages that
   * are taken next are whole. Also reads what follows the pages that were taken last, for copies that have those.
   */
  rewind(frames: number): void {
    this.#read()
    const start = Math.min(this.#copiedFrames(), frames)
    const checksum = start === 0 ? '' : checksumIn(this.#frameHeader(start))
    this.#begin({ salts: this.#saltsNow(), frames: start, checksum }, frames)
  }

  /**
   * Call between groups. Reads what follows a position that was read before, even if the log has restarted once since
   * then. Returns false if the log no longer has that.
   */
  resume(position: LogPosition, frames: number): boolean {
    const salts = this.#saltsNow()
    if (position.salts === NO_LOG || salts === NO_LOG) return false
    if (position.frames > 0) {
      const header = this.#frameHeader(position.frames)
      if (saltsIn(header) !== position.salts || checksumIn(header) !== position.checksum) return false
    }
    if (salts === position.salts) {
      if (position.frames > frames) return false
      this.#begin(position, frames)
      return true
    }
    if (position.frames === 0 || !isNext(position.salts, salts) || !this.#readFormer(position, salts)) return false
    this.#begin({ salts, frames: 0, checksum: '' }, frames)
    return true
  }

  /**
   * Reads what the log had after `position` before it restarted. The frame of `position` is still there, so the present
   * log is shorter. Returns false if it is unclear where the former log ended.
   *
   * Before the restart, the whole former log was copied into the database file. So only that file is read, and frames
   * that a failed commit left behind the last one do no harm. Pages that have changed since are read from the present
   * log.
   */
  #readFormer(position: LogPosition, salts: string): boolean {
    const changed = new Set<number>()
    const bytes = new Uint8Array(FRAME_BYTES)
    const frame = Buffer.from(bytes.buffer)
    const sum = this.#checksumFrom(position)
    for (let index = position.frames; ; index++) {
      const count = readAt(this.#log, bytes, frameAt(index))
      if (count < FRAME_HEADER_BYTES) break
      if (saltsIn(frame) !== position.salts) {
        // After a power loss, parts of the present log that were never flushed may be here.
        const words = [position.salts, salts].flatMap(wordsOf)
        if (wordsOf(saltsIn(frame)).some((word) => words.includes(word))) return false
        break
      }
      if (count < FRAME_BYTES || sum.add(bytes) !== checksumIn(frame)) return false
      changed.add(frame.readUInt32BE(0))
    }
    this.#databasePages = this.#files.bytes / PAGE_BYTES
    for (const page of changed) {
      const content = new Uint8Array(PAGE_BYTES)
      const count = readAt(this.#files.database, content, (page - 1) * PAGE_BYTES)
      // The database may have become smaller.
      if (count === PAGE_BYTES) this.#pages.set(page, content)
    }
    return true
  }

  #checksumFrom({ checksum }: LogPosition): Checksum {
    const magic = Buffer.alloc(WORD_BYTES)
    readAt(this.#log, magic, 0)
    return new Checksum(checksum, (magic.readUInt32BE(0) & 1) === 0)
  }

  #begin(position: LogPosition, frames: number): void {
    this.#position = position
    this.#frames = frames
    this.#read()
  }

  /**
   * Called after each group, and before the gate, with the number of committed frames in the log. The log can only have
   * restarted if all of it was read.
   */
  note(frames: number): void {
    const salts = this.#isRead ? this.#saltsNow() : this.#position.salts
    if (salts !== this.#position.salts) this.#position = { salts, frames: 0, checksum: '' }
    else if (frames < this.#frames) this.isBroken = true
    else if (frames === this.#frames) return
    this.#frames = frames
    this.onCommit()
  }

  /** Called when a write transaction has begun, before it writes anything. */
  beforeWrites(): void {
    if (!this.#isRead && this.#copiedFrames() >= this.#frames) this.#read()
  }

  /** Take all pages that commits have changed since the last call, or null if there are none. */
  take(): Pages | null {
    this.#read()
    if (this.#pages.size === 0) return null
    const taken = { pages: this.#pages.bytes, databasePages: this.#databasePages, position: this.#position }
    this.#pages = new PageList(this.#kept.shift())
    return taken
  }

  /** The pages are no longer needed: later pages may overwrite them. */
  giveBack({ pages: { buffer, byteLength } }: Pages): void {
    this.#neededBytes = Math.max(byteLength, this.#neededBytes * FADING)
    const bytes = this.#kept.reduce((sum, kept) => sum + kept.byteLength, buffer.byteLength)
    const isUseful = this.#neededBytes >= buffer.byteLength * LEAST_USE
    if (isUseful && this.#kept.length < MAX_KEPT && bytes <= MAX_KEPT_BYTES) this.#kept.push(new Uint8Array(buffer))
  }

  close(): void {
    closeSync(this.#log)
  }

  get #isRead(): boolean {
    return this.#position.frames === this.#frames
  }

  #read(): void {
    if (this.isBroken || this.#isRead) return
    const { frames: start, salts } = this.#position
    const end = this.#frames
    this.isBroken = this.#saltsNow() !== salts
    this.#readPages(this.#pageNumbers(start, end), start)
    const last = this.#frameHeader(end)
    this.#databasePages = last.readUInt32BE(WORD_BYTES)
    // The last frame of a commit says how large the database is.
    if (this.#databasePages === 0) this.isBroken = true
    this.#position = { salts, frames: end, checksum: checksumIn(last) }
  }

  /** Read the newest content of each page, from the frames that begin with `start`, a run of frames at a time. */
  #readPages(numbers: Uint32Array, start: number): void {
    /** For each page, the index of its newest frame. */
    const newest = new Map<number, number>()
    for (let index = 0; index < numbers.length; index++) newest.set(numbers[index]!, index)
    for (let first = 0; first < numbers.length;) {
      if (newest.get(numbers[first]!) !== first) {
        first++
        continue
      }
      let last = first
      for (let next = first + 1; next < numbers.length && next - last <= MAX_SKIPPED_FRAMES + 1; next++) {
        if (next - first === RUN_FRAMES) break
        if (newest.get(numbers[next]!) === next) last = next
      }
      const run = this.#run.subarray(0, (last + 1 - first) * FRAME_BYTES)
      if (readAt(this.#log, run, frameAt(start + first)) < run.byteLength) this.isBroken = true
      for (let index = first; index <= last; index++) {
        const at = (index - first) * FRAME_BYTES + FRAME_HEADER_BYTES
        const page = numbers[index]!
        if (newest.get(page) === index) this.#pages.set(page, run.subarray(at, at + PAGE_BYTES))
      }
      first = last + 1
    }
  }

  /** The numbers of the pages in the frames from `start`, counted from 0, to before `end`. */
  #pageNumbers(start: number, end: number): Uint32Array {
    const numbers = new Uint32Array(end - start)
    for (let frame = start; frame < end;) {
      const block = frame < FIRST_BLOCK_FRAMES ? 0 : 1 + Math.floor((frame - FIRST_BLOCK_FRAMES) / BLOCK_FRAMES)
      const first = block === 0 ? 0 : FIRST_BLOCK_FRAMES + (block - 1) * BLOCK_FRAMES
      const next = Math.min(end, FIRST_BLOCK_FRAMES + block * BLOCK_FRAMES)
      const at = block * BLOCK_BYTES + (block === 0 ? INDEX_HEADER_BYTES : 0) + (frame - first) * WORD_BYTES
      const part = new Uint8Array(numbers.buffer, (frame - start) * WORD_BYTES, (next - frame) * WORD_BYTES)
      if (readAt(this.#files.index, part, at) < part.byteLength) this.isBroken = true
      frame = next
    }
    return numbers
  }

  #copiedFrames(): number {
    readAt(this.#files.index, this.#word, BACKFILL_AT)
    return endianness() === 'LE' ? this.#word.readUInt32LE() : this.#word.readUInt32BE()
  }

  #saltsNow(): string {
    const header = Buffer.alloc(HEADER_BYTES)
    if (readAt(this.#log, header, 0) < HEADER_BYTES) return NO_LOG
    return header.toString('hex', SALTS_AT, SALTS_AT + SALTS_BYTES)
  }

  /** The header of the last of this many frames. */
  #frameHeader(frames: number): Buffer {
    const header = Buffer.alloc(FRAME_HEADER_BYTES)
    readAt(this.#log, header, frameAt(frames - 1))
    return header
  }
}

const frameAt = (index: number): number => HEADER_BYTES + index * FRAME_BYTES

const saltsIn = (frame: Buffer): string => frame.toString('hex', FRAME_SALTS_AT, FRAME_SALTS_AT + SALTS_BYTES)
const checksumIn = (frame: Buffer): string =>
  frame.toString('hex', FRAME_CHECKSUM_AT, FRAME_CHECKSUM_AT + CHECKSUM_BYTES)
const wordsOf = (salts: string): string[] => [salts.slice(0, 2 * WORD_BYTES), salts.slice(2 * WORD_BYTES)]

/** Whether the log has restarted once between these salts: every restart increments the first word. */
function isNext(former: string, salts: string): boolean {
  const [before, now] = [former, salts].map((each) => Number.parseInt(wordsOf(each)[0]!, 16)) as [number, number]
  return now === (before + 1) % 2 ** 32
}

/** The running checksum of frames. */
class Checksum {
  #first: number
  #second: number

  /** `isLittle`: whether the checksum reads words as little-endian. It is always stored as big-endian. */
  constructor(
    before: string,
    readonly isLittle: boolean,
  ) {
    const [first, second] = wordsOf(before).map((word) => Number.parseInt(word, 16)) as [number, number]
    this.#first = first
    this.#second = second
  }

  /** Adds a frame. Returns the checksum of all frames through this one. */
  add(frame: Uint8Array): string {
    const view = new DataView(frame.buffer, frame.byteOffset)
    let [first, second] = [this.#first, this.#second]
    for (const [start, end] of [
      [0, FRAME_SALTS_AT],
      [FRAME_HEADER_BYTES, FRAME_BYTES],
    ] as const)
      for (let at = start; at < end; at += 2 * WORD_BYTES) {
        first = (first + view.getUint32(at, this.isLittle) + second) | 0
        second = (second + view.getUint32(at + WORD_BYTES, this.isLittle) + first) | 0
      }
    this.#first = first
    this.#second = second
    return [first, second].map((word) => (word >>> 0).toString(16).padStart(2 * WORD_BYTES, '0')).join('')
  }
}

/** Returns how many bytes were read: fewer than asked for only at the end of the file. */
function readAt(descriptor: number, buffer: Uint8Array, at: number): number {
  let done = 0
  while (done < buffer.byteLength) {
    const count = readSync(descriptor, buffer, done, buffer.byteLength - done, at + done)
    if (count === 0) break
    done += count
  }
  return done
}
