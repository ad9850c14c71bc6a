/** A temporary, unnamed file of row batches that are written now and read back later, in order. */
import { closeSync, readSync } from 'node:fs'
import { openNameless, writeAt } from './nameless-file.ts'

export class BatchFile<Row> {
  readonly #sizes: number[] = []
  #file: number | null = null
  #written = 0

  /** The file is created in `dir` when the first rows are added. */
  constructor(readonly dir: string) {}

  add(rows: readonly Row[]): void {
    if (rows.length === 0) return
    const bytes = Buffer.from(JSON.stringify(rows))
    this.#file ??= openNameless(this.dir)
    writeAt(this.#file, bytes, this.#written)
    this.#written += bytes.length
    this.#sizes.push(bytes.length)
  }

  *batches(): Generator<Row[]> {
    let position = 0
    for (const size of this.#sizes) {
      const bytes = Buffer.alloc(size)
      for (let read = 0; read < size;) read += readSync(this.#file!, bytes, read, size - read, position + read)
      position += size
      yield JSON.parse(bytes.toString()) as Row[]
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }
}
