/**
 * Segments that wait for the destination, in the data directory, and what the next start needs to continue the chain.
 *
 * Nothing here is flushed: after a loss of power it may be damaged, which `open` notices; a new chain begins then.
 */
import { statSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { LogPosition } from '../../../platform/database/log-follower.ts'
import { digestOf } from './continuous-format.ts'

export interface ChainState {
  /** Where the chain is: another destination gets another chain. */
  destination: string
  chain: string
  /** In base64. As secret as the rest of the data directory. */
  key: string
  /** Of the last segment: 0 if there is none. */
  number: number
  digest: string
  at: Millis
  /** Of the lease under which it was made. Segments that are made before the lease was seen again have the same. */
  epoch?: number
  position: LogPosition
  /** When the newest base was complete; null if none is. */
  baseAt: Millis | null
  /** The database's file, as it was closed with everything in it; null while it is used. */
  closed: string | null
}

/** In the data directory. */
export const CONTINUOUS_FOLDER = 'continuous'
const STATE_FILE = 'state.json'
const SUFFIX = '.segment'

/** Another one after every change of the file. */
export function fileMark(path: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join(' ')
}

interface Spooled {
  number: number
  bytes: number
  /** Since when it waits, by the monotonic clock. */
  since: number
}

export class Spool {
  readonly waiting: Spooled[] = []
  bytes = 0

  constructor(readonly folder: string) {}

  /** Returns the chain to continue, or null if there is none: the spool is empty then. */
  async open(destination: string, now: number): Promise<ChainState | null> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const state = await this.#state()
    if (state !== null && state.destination === destination && (await this.#load(state, now))) return state
    await this.clear()
    return null
  }

  async #state(): Promise<ChainState | null> {
    try {
      return JSON.parse(await readFile(join(this.folder, STATE_FILE), 'utf8')) as ChainState
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Returns false unless the files are the last segments of the chain. */
  async #load({ number: last, digest }: ChainState, since: number): Promise<boolean> {
    const numbers = (await readdir(this.folder))
      .filter((name) => name.endsWith(SUFFIX))
      .map((name) => Number(name.slice(0, -SUFFIX.length)))
      .sort((a, b) => a - b)
    // Written before the state: its pages are read again.
    for (const number of numbers.filter((each) => each > last)) await rm(this.#path(number))
    const kept = numbers.filter((each) => each <= last)
    if (kept.some((number, index) => number !== last - kept.length + 1 + index)) return false
    for (const number of kept) {
      const { size } = await stat(this.#path(number))
      this.waiting.push({ number, bytes: size, since })
      this.bytes += size
    }
    return this.waiting.length === 0 || digestOf(await this.read(last)) === digest
  }

  /**
   * Add the last segment of the chain. It is sent once the state names it: a start that did not know of it would make
   * another one under its number.
   */
  async add(state: ChainState, content: Uint8Array, since: number): Promise<void> {
    const { number } = state
    await this.#write(this.#path(number), content)
    await this.save(state)
    this.waiting.push({ number, bytes: content.byteLength, since })
    this.bytes += content.byteLength
  }

  /** The destination has all through this state. */
  async skip(state: ChainState): Promise<void> {
    while (this.waiting.length > 0) await this.shift()
    await this.save(state)
  }

  read(number: number): Promise<Uint8Array> {
    return readFile(this.#path(number))
  }

  /** The destination has the oldest one. */
  async shift(): Promise<void> {
    const { number, bytes } = this.waiting.shift()!
    this.bytes -= bytes
    await rm(this.#path(number), { force: true })
  }

  save(state: ChainState): Promise<void> {
    return this.#write(join(this.folder, STATE_FILE), JSON.stringify(state))
  }

  /** The same, while the process ends. */
  saveNow(state: ChainState): void {
    writeFileSync(join(this.folder, STATE_FILE), JSON.stringify(state), { mode: 0o600 })
  }

  async clear(): Promise<void> {
    for (const name of await readdir(this.folder)) await rm(join(this.folder, name), { force: true })
    this.waiting.length = 0
    this.bytes = 0
  }

  async #write(path: string, content: Uint8Array | string): Promise<void> {
    await writeFile(`${path}.part`, content, { mode: 0o600 })
    await rename(`${path}.part`, path)
  }

  #path(number: number): string {
    return join(this.folder, `${number}${SUFFIX}`)
  }
}
