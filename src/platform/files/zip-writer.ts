/**
 * Writes a ZIP archive as a stream, whatever its size and the number of its entries: the directory that ends it waits
 * in a temporary file, so memory use does not depend on either.
 */
import { crc32 } from 'node:zlib'
import { centralHeader, descriptor, endOfArchive, localHeader, type ZipEntry } from '../../protocol/zip.ts'
import { Spool } from './spool.ts'

export class ZipWriter {
  readonly #directory: Spool
  #count = 0
  #written = 0

  /** Temporary files are created in `dir`. */
  constructor(dir: string) {
    this.#directory = new Spool(dir)
  }

  /** Yields an entry. Throws if `content` has another size or checksum than the entry says. */
  async *entry(entry: ZipEntry, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const offset = this.#written
    yield this.#counted(localHeader(entry))
    let [size, checksum] = [0, 0]
    for await (const chunk of content) {
      size += chunk.length
      checksum = crc32(chunk, checksum)
      yield this.#counted(chunk)
    }
    if (size !== entry.size || checksum !== (entry.crc32 ?? checksum))
      throw new Error(`${entry.name} does not match its announced content`)
    const written = { ...entry, offset, checksum }
    if (entry.crc32 === null) yield this.#counted(descriptor(written))
    this.#directory.append(centralHeader(written))
    this.#count++
  }

  /** Yields what ends the archive. */
  *end(): Generator<Uint8Array> {
    const { size } = this.#directory
    yield* this.#directory.read()
    yield endOfArchive({ count: this.#count, offset: this.#written, size })
  }

  close(): void {
    this.#directory.close()
  }

  #counted(bytes: Uint8Array): Uint8Array {
    this.#written += bytes.length
    return bytes
  }
}
