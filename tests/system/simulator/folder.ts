/**
 * A folder of files that are lost at a power cut, in part or as a whole, unless they were synced: their content with
 * the file, their names with the folder they are in. The files are real ones in memory.
 */
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Timeline } from './timeline.ts'

export class Folder {
  /** Names that the disk does not have yet, or still has: what is under them on the disk; null if nothing is. */
  readonly #names = new Map<string, Uint8Array | null>()
  /** Files whose content is not on the disk as a whole. */
  readonly #contents = new Set<string>()
  onRemoved: (path: string) => void = () => {}

  constructor(
    readonly dir: string,
    readonly timeline: Timeline,
  ) {
    rmSync(dir, { recursive: true, force: true })
  }

  has(path: string): boolean {
    return path === this.dir || path.startsWith(`${this.dir}/`)
  }

  made(path: string): void {
    if (!this.#names.has(path)) this.#names.set(path, null)
  }

  written(path: string): void {
    this.#contents.add(path)
  }

  /** A file, or a folder with the names in it. */
  synced(path: string): void {
    this.#contents.delete(path)
    for (const name of this.#names.keys()) if (dirname(name) === path) this.#names.delete(name)
  }

  /** Call before a file gets another name. */
  moves(from: string, to: string): void {
    if (!existsSync(to)) this.made(to)
    if (this.#contents.delete(from)) this.#contents.add(to)
    this.#goes(from)
  }

  /** Call before a file is removed. */
  removes(path: string): void {
    if (!existsSync(path)) return
    this.#contents.delete(path)
    this.#goes(path)
    this.onRemoved(path)
  }

  /** What the disk has under the name may come back. */
  #goes(path: string): void {
    if (this.#names.get(path) === null) this.#names.delete(path)
    else if (!this.#names.has(path)) this.#names.set(path, readFileSync(path))
  }

  /** The power is cut. */
  cut(): void {
    const { random } = this.timeline
    for (const path of this.#contents) truncateSync(path, random.below(statSync(path).size + 1))
    for (const [path, before] of this.#names) {
      if (this.timeline.happens(0.5)) continue
      if (before === null) rmSync(path, { recursive: true, force: true })
      else if (existsSync(dirname(path))) writeFileSync(path, before)
    }
    this.#contents.clear()
    this.#names.clear()
  }

  contentOf(path: string): Uint8Array | null {
    return existsSync(path) ? readFileSync(path) : null
  }

  end(): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}
