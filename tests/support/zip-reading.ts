/** Reads ZIP archives with another implementation than the server's. */
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import { fromBufferPromise, fromRandomAccessReaderPromise, RandomAccessReader, type Entry, type ZipFile } from 'yauzl'
import { ZipWriter } from '../../src/platform/files/zip-writer.ts'
import type { ZipEntry } from '../../src/protocol/zip.ts'

/** Shorter archives are read in one piece, which takes less time. */
const SHORT_BYTES = 64 * 1024 ** 2

/** An archive as the chunks that were written. One chunk may stand in it many times, and takes memory once. */
export class WrittenArchive extends RandomAccessReader {
  readonly #starts: number[] = []
  readonly #chunks: Uint8Array[] = []
  size = 0

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    this.#starts.push(this.size)
    this.#chunks.push(chunk)
    this.size += chunk.length
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(this.#slices(start, end))
  }

  *#slices(start: number, end: number): Generator<Uint8Array> {
    for (let i = this.#indexAt(start), at = start; at < end; i++) {
      const chunk = this.#chunks[i]!.subarray(at - this.#starts[i]!, end - this.#starts[i]!)
      at += chunk.length
      yield chunk
    }
  }

  #indexAt(position: number): number {
    let [low, high] = [0, this.#starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#starts[middle]! <= position) low = middle
      else high = middle - 1
    }
    return low
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  open(): Promise<ZipFile> {
    if (this.size <= SHORT_BYTES) return fromBufferPromise(this.bytes, { lazyEntries: true })
    return fromRandomAccessReaderPromise(this, this.size, { lazyEntries: true, autoClose: false })
  }

  /** Returns all entries by name, with their contents. */
  async contents(): Promise<Map<string, Buffer>> {
    const zip = await this.open()
    const contents = new Map<string, Buffer>()
    for await (const entry of entriesOf(zip)) contents.set(entry.fileName, await contentOf(zip, entry))
    return contents
  }
}

export function archiveIn(bytes: Uint8Array): WrittenArchive {
  const archive = new WrittenArchive()
  archive.push(bytes)
  return archive
}

/** Writes an archive with the server's writer. */
export async function zipped(
  entries: Iterable<Pick<ZipEntry, 'name'> & Partial<ZipEntry> & { content: Iterable<Uint8Array> }>,
): Promise<WrittenArchive> {
  const archive = new WrittenArchive()
  const writer = new ZipWriter(tmpdir())
  try {
    for (const { content, name, ...given } of entries) {
      const size = given.size ?? [...content].reduce((sum, { length }) => sum + length, 0)
      const entry = { name, size, crc32: given.crc32 ?? null, modifiedAt: given.modifiedAt ?? 0 }
      for await (const chunk of writer.entry(entry, content)) archive.push(chunk)
    }
    for (const chunk of writer.end()) archive.push(Buffer.from(chunk))
  } finally {
    writer.close()
  }
  return archive
}

export async function* entriesOf(zip: ZipFile): AsyncGenerator<Entry> {
  yield* zip.eachEntry()
}

export async function contentOf(
  zip: ZipFile,
  entry: Entry,
  range: { start?: number; end?: number } = {},
): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of await zip.openReadStreamPromise(entry, range)) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
