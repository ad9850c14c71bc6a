/**
 * The disk of a machine with a server on SQLite. The files are real ones in memory. What was written and not flushed is
 * lost at a power cut, in part or as a whole, in pieces of a sector; a process that is killed loses nothing.
 *
 * Stands in for what `sqlite.ts`, `wal.ts`, `log-follower.ts` and `database-files.ts` import to open connections, to
 * flush the log, to have it copied into the file of the database, and to read both.
 */
import { Database } from 'bun:sqlite'
import {
  closeSync as closeFile,
  copyFileSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync as openFile,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { held, takesAWhile } from './seams.ts'
import type { Timeline } from './timeline.ts'
import { actorNamed } from './timeline.ts'

export { fstatSync, readSync, writeSync } from 'node:fs'

const SECTOR_BYTES = 512
/** https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
const HEADER_BYTES = 32
const SALTS_AT = 16
const SALTS_BYTES = 8
const FRAME_BYTES = 4096 + 24
const FRAME_SALTS_AT = 8
const none = new Uint8Array()

/** What is read of a log at a time: a flush has few frames as a rule. */
const FEW_BYTES = 4 * FRAME_BYTES
const WINDOW_BYTES = 32 * FRAME_BYTES
const window = new Uint8Array(WINDOW_BYTES)

const textOf = (bytes: Uint8Array, at: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset + at, SALTS_BYTES).toString('latin1')
const saltsOf = (log: Uint8Array): string => (log.length < HEADER_BYTES ? '' : textOf(log, SALTS_AT))
const frameSaltsOf = (frames: Uint8Array, at: number): string => textOf(frames, at + FRAME_SALTS_AT)

/** A part of the log. */
interface Piece {
  at: number
  bytes: Uint8Array
}

export class Disk {
  readonly actor = actorNamed('disk')
  #number = 0
  /** What the log had on the disk for certain, before the flushes that follow: few worlds ask for the sum. */
  #base: Uint8Array = none
  readonly #flushed: (readonly Piece[])[] = []
  /** The file that this is of. Another one gets the name when a machine follows and takes over. */
  #file: number | undefined
  /** What was read of the log for flushes: up to where, while it has these salts. */
  #read = { salts: '', end: 0 }
  /** Salts of the log that the process found. What follows its last commit may look like frames. */
  #foundSalts = ''
  /** Where the last of its frames ends that a flush has begun with: a process writes one after another. */
  #foundEnd = 0
  /** For those who look on. */
  #lookout: { file: number; db: Database; isMigrated: boolean } | null = null
  readonly #connections: Database[] = []
  readonly #descriptors = new Set<number>()
  /** How many of the next flushes a power cut interrupts. */
  cutsAtFlush = 0
  onCut: () => void = () => {}
  /** Longest time of a flush. */
  flushMillis = 4
  /** Longest time of an operation on a file of the spool, if that is known. */
  fileMillis: number | undefined

  constructor(
    readonly dir: string,
    readonly timeline: Timeline,
    bytes: Uint8Array | null,
  ) {
    rmSync(dir, { recursive: true, force: true })
    this.#begin(none)
    if (bytes !== null) writeFileSync(this.path, bytes)
  }

  get path(): string {
    return join(this.dir, String(this.#number), 'holdfast.db')
  }

  get log(): Uint8Array {
    return existsSync(this.#logPath) ? readFileSync(this.#logPath) : none
  }

  #begin(log: Uint8Array): void {
    this.#lookout?.db.close()
    this.#lookout = null
    this.#number++
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    if (log.length > 0) writeFileSync(this.#logPath, log)
    this.#setDurable(log)
    this.#file = this.#presentFile
    this.#read = { salts: '', end: 0 }
    this.#foundSalts = saltsOf(log)
    this.#foundEnd = 0
  }

  get #logPath(): string {
    return `${this.path}-wal`
  }

  get #presentFile(): number | undefined {
    return statSync(this.#logPath, { throwIfNoEntry: false })?.ino
  }

  /** Nothing of a log is on the disk that has just got the name. */
  #notice(file: number | undefined): void {
    if (file === this.#file) return
    this.#file = file
    this.#setDurable(none)
    this.#read = { salts: '', end: 0 }
    this.#foundSalts = ''
    this.#foundEnd = 0
  }

  /** The log as the next process finds it, which opens a copy: the connections of the last one cannot be closed. */
  restart(withPower: boolean): void {
    const log = withPower ? this.log : this.#torn(this.log)
    const former = dirname(this.path)
    this.#begin(log)
    const there = dirname(this.path)
    for (const name of readdirSync(former))
      if (!/-(?:wal|shm)$/.test(name)) copyFileSync(join(former, name), join(there, name))
  }

  /** Copy the log into the file of the database, which begins and ends with a flush. */
  checkpoint(done: () => void): void {
    const { timeline, path } = this
    const process = timeline.current
    timeline.schedule(timeline.between(0.5, this.flushMillis), this.actor, () => {
      if (this.path !== path || process.isDead) return
      this.#notice(this.#presentFile)
      this.#setDurable(this.log)
      const connection = new Database(path, { readwrite: true })
      connection.run('PRAGMA wal_checkpoint(PASSIVE)')
      connection.close()
      timeline.schedule(timeline.between(0, 0.5), process, done)
    })
  }

  /** What was flushed, with some of the sectors that were written since. */
  #torn(written: Uint8Array): Uint8Array {
    this.#notice(this.#presentFile)
    const { random } = this.timeline
    const durable = this.#durable
    const image = new Uint8Array(Math.max(written.length, durable.length))
    image.set(durable)
    const share = random.of([0, 0.1, 0.5, 0.9, 1])
    for (let at = 0; at < written.length; at += SECTOR_BYTES)
      if (random.below(1000) < share * 1000) image.set(written.subarray(at, at + SECTOR_BYTES), at)
    return image
  }

  flush(done: (error: Error | null) => void): void {
    const { timeline } = this
    const [added, file, process] = [this.#added(), this.#file, timeline.current]
    if (this.cutsAtFlush > 0) {
      this.cutsAtFlush--
      timeline.schedule(timeline.between(0, this.flushMillis), this.actor, () => this.onCut())
    }
    timeline.schedule(timeline.between(0.1, this.flushMillis), this.actor, () => {
      this.#notice(this.#presentFile)
      if (this.#file === file) this.#flushed.push(added)
      timeline.schedule(timeline.between(0, 0.5), process, () => done(null))
    })
  }

  /** What the log has that no flush has begun with: frames, and its header if it has started over. */
  #added(): Piece[] {
    const file = openFile(this.#logPath, 'r')
    try {
      this.#notice(fstatSync(file).ino)
      const read = (at: number, count: number) => readSync(file, window, 0, count, at)
      if (read(0, HEADER_BYTES) < HEADER_BYTES) return []
      const salts = saltsOf(window)
      const added: Piece[] = []
      if (salts === this.#foundSalts) {
        if (this.#foundEnd === 0) {
          this.#addChanged(added, 0, window.subarray(0, HEADER_BYTES))
          this.#foundEnd = HEADER_BYTES
        }
        for (let at = this.#foundEnd; ;) {
          const count = read(at, WINDOW_BYTES)
          let end = 0
          // What follows has room, or frames of before, and is as it was found.
          for (; end + FRAME_BYTES <= count && frameSaltsOf(window, end) === salts; end += FRAME_BYTES)
            if (this.#addChanged(added, at + end, window.subarray(end, end + FRAME_BYTES)))
              this.#foundEnd = at + end + FRAME_BYTES
          if (end < WINDOW_BYTES) return added
          at += end
        }
      }
      if (salts !== this.#read.salts) {
        this.#read = { salts, end: HEADER_BYTES }
        added.push({ at: 0, bytes: window.slice(0, HEADER_BYTES) })
      }
      for (let most = FEW_BYTES; ; most = WINDOW_BYTES) {
        const count = read(this.#read.end, most)
        let end = 0
        while (end + FRAME_BYTES <= count && frameSaltsOf(window, end) === salts) end += FRAME_BYTES
        if (end > 0) added.push({ at: this.#read.end, bytes: window.slice(0, end) })
        this.#read.end += end
        if (end < most) return added
      }
    } finally {
      closeFile(file)
    }
  }

  /** Add a part of the log unless it is on the disk for certain. Returns whether it was added. */
  #addChanged(added: Piece[], at: number, bytes: Uint8Array): boolean {
    const known = this.#durable.subarray(at, at + bytes.length)
    if (Buffer.compare(bytes, known) === 0) return false
    added.push({ at, bytes: bytes.slice() })
    return true
  }

  /** What the log has on the disk for certain. */
  get #durable(): Uint8Array {
    for (const added of this.#flushed.splice(0)) this.#store(added)
    return this.#base
  }

  #setDurable(log: Uint8Array): void {
    this.#base = log
    this.#flushed.length = 0
  }

  #store(added: readonly Piece[]): void {
    const end = Math.max(0, ...added.map(({ at, bytes }) => at + bytes.length))
    if (end > this.#base.length) {
      const longer = new Uint8Array(2 * end)
      longer.set(this.#base)
      this.#base = longer
    }
    for (const { at, bytes } of added) this.#base.set(bytes, at)
  }

  opened(connection: Database): void {
    this.#connections.push(connection)
  }

  openedFile(descriptor: number): void {
    this.#descriptors.add(descriptor)
  }

  closedFile(descriptor: number): void {
    this.#descriptors.delete(descriptor)
  }

  /** Rows that are committed, whether or not they are on the disk. */
  rows<Row>(text: string, values: readonly (string | number | Uint8Array)[]): Row[] {
    return this.#present?.db.query<Row, (string | number | Uint8Array)[]>(text).all(...values) ?? []
  }

  /** Whether a server has started: the file has no tables before. */
  get isMigrated(): boolean {
    const lookout = this.#present
    if (lookout === null) return false
    lookout.isMigrated ||= lookout.db.query(`SELECT 1 FROM sqlite_schema WHERE name = 'repo_seq_past'`).get() !== null
    return lookout.isMigrated
  }

  /** Null while there is no file. Another one gets the name when a machine follows and takes over. */
  get #present() {
    const file = statSync(this.path, { throwIfNoEntry: false })?.ino
    if (file === undefined) return null
    if (file !== this.#lookout?.file) {
      this.#lookout?.db.close()
      const db = new Database(this.path, { readonly: true, strict: true })
      this.#lookout = { file, db, isMigrated: false }
    }
    return this.#lookout
  }

  end(): void {
    rmSync(this.dir, { recursive: true, force: true })
    this.#lookout?.db.close()
    for (const connection of this.#connections) connection.close()
    for (const descriptor of this.#descriptors) closeFile(descriptor)
  }
}

const present = (): Disk => {
  if (held.diskInUse === null) throw new Error('there is no disk')
  return held.diskInUse()
}

/** Null: the thread is not needed any more. */
export const checkpoint = (path: string | null): Promise<boolean> =>
  path === null ? Promise.resolve(true) : new Promise((resolve) => present().checkpoint(() => resolve(true)))

export class Connection extends Database {
  constructor(path: string, options: ConstructorParameters<typeof Database>[1]) {
    super(path, options)
    present().opened(this)
  }
}

export function openSync(path: string, flags: string): number {
  const descriptor = openFile(path, flags)
  present().openedFile(descriptor)
  return descriptor
}

export function closeSync(descriptor: number): void {
  present().closedFile(descriptor)
  closeFile(descriptor)
}

/** Promises what `read` of `node:fs` passes to a callback. */
export const read = Object.assign(() => {}, {
  [promisify.custom]: async (file: number, buffer: Uint8Array, start: number, count: number, at: number) => {
    await takesAWhile()
    return { bytesRead: readSync(file, buffer, start, count, at) }
  },
})

export const fdatasync = (_descriptor: number, done: (error: Error | null) => void): void => present().flush(done)
