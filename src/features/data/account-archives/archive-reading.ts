/**
 * Reads the archive of an account, which anyone may have made: its directory first, and a file only once its name and
 * size are known to be within bounds. What a file contains is compared with the manifest, or with the CID in its name.
 */
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { Entry, ZipFile } from 'yauzl'
import { invalidRequest } from '../../../http/errors.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { isPreference, type Preference } from '../../../protocol/preference-rules.ts'
import { ARCHIVE_FORMAT, ARCHIVE_VERSION, archiveNames, blobNamed, mediaTypeOf } from './archive-names.ts'

/** Files of an archive, of which blobs are most. */
const MAX_FILES = 500_000
const MAX_JSON_BYTES = 4 * 1024 ** 2
const MAX_NAME_CHARS = 256
/** Entries of the directory that are read in one turn of the event loop, and bytes of it that are read at once. */
const PAGE_ENTRIES = 100
const READ_BYTES = 64 * 1024
/** Compression methods of ZIP: stored, and deflated, for archives that a person has packed again. */
const readableMethods = [0, 8]

/** Bytes after the directory, in the form of ZIP and in that of ZIP64. */
const endSizes = [22, 98]

/** Random access to the bytes of an archive. */
export interface ArchiveBytes {
  readonly size: number
  read(start: number, end: number): Iterable<Uint8Array>
}

/** Most bytes of each kind of file. */
export interface ArchiveBounds {
  repoBytes: number
  blobBytes: number
}

export interface ArchivedBlob {
  /** Name of its file, for messages. */
  name: string
  cid: string
  /** The media type that its name suggests; null if none. */
  mediaType: string | null
  /** The content, not compared with the CID yet. */
  bytes(): AsyncIterable<Uint8Array>
}

interface Manifest {
  did: Did
  /** SHA-256 in hex, by name of the file. */
  digests: ReadonlyMap<string, string>
}

const fault = (message: string) => invalidRequest(`The archive is not usable: ${message}`)

export class AccountArchive {
  private constructor(
    readonly did: Did,
    readonly source: ArchiveBytes,
    readonly manifest: Manifest,
    readonly entries: ReadonlyMap<string, Entry>,
    /** All blobs together, unpacked. */
    readonly blobBytes: number,
    readonly zip: ZipFile,
  ) {}

  /**
   * Refuses with `InvalidRequest` a file that is not an archive of an account, an archive with a file that is there
   * twice, too large, encrypted, or named so that it leads out of its folder, and an archive that lacks a file of its
   * manifest.
   */
  static async open(source: ArchiveBytes, bounds: ArchiveBounds): Promise<AccountArchive> {
    const zip = await opened(source)
    const { entries, blobBytes } = await entriesOf(zip, bounds)
    const manifest = manifestOf(await jsonIn(zip, entries.get(archiveNames.manifest)))
    for (const name of [archiveNames.repo, archiveNames.preferences])
      if (manifest.digests.has(name) && !entries.has(name)) throw fault(`${name} is missing, which its manifest lists`)
    return new AccountArchive(manifest.did, source, manifest, entries, blobBytes, zip)
  }

  /** The repository as CAR; null if the account has none. Its blocks are not verified. */
  repo(): AsyncIterable<Uint8Array> | null {
    const entry = this.entries.get(archiveNames.repo)
    return entry === undefined ? null : this.#verified(entry)
  }

  async preferences(): Promise<Preference[]> {
    const entry = this.entries.get(archiveNames.preferences)
    if (entry === undefined) return []
    const value = parsed(Buffer.concat(await Array.fromAsync(this.#verified(entry)))) as { preferences?: unknown }
    if (!Array.isArray(value?.preferences) || !value.preferences.every(isPreference))
      throw fault(`${entry.fileName} has no list of preferences`)
    return value.preferences
  }

  /** Yields the blobs, in the order of the archive. */
  async *blobs(): AsyncGenerator<ArchivedBlob> {
    const zip = await opened(this.source)
    for await (const entry of readable(zip)) {
      const cid = blobNamed(entry.fileName)
      if (cid === null) continue
      yield { name: entry.fileName, cid, mediaType: mediaTypeOf(entry.fileName), bytes: () => contentOf(zip, entry) }
    }
  }

  /** Yields the content. Throws before the end if its digest differs from that in the manifest. */
  async *#verified(entry: Entry): AsyncGenerator<Uint8Array> {
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const chunk of contentOf(this.zip, entry)) {
      hasher.update(chunk)
      yield chunk
    }
    if (hasher.digest('hex') !== this.manifest.digests.get(entry.fileName))
      throw fault(`the content of ${entry.fileName} does not match the manifest`)
  }
}

/** Throws a `Refusal` instead of the reader's error. */
async function checked<T>(work: Promise<T>, name?: string): Promise<T> {
  try {
    return await work
  } catch (error) {
    const { message } = error as Error
    throw fault(name === undefined ? message : `${name}: ${message}`)
  }
}

async function opened(source: ArchiveBytes): Promise<ZipFile> {
  const { fromRandomAccessReaderPromise, RandomAccessReader } = await import('yauzl')
  class Source extends RandomAccessReader {
    #start = 0
    #bytes = Buffer.alloc(0)

    /** Reads ahead: the records of the directory are short, and the reader would make three streams for each. */
    override read(
      buffer: Buffer,
      offset: number,
      length: number,
      position: number,
      callback: (error: Error | null) => void,
    ): void {
      if (position < this.#start || position + length > this.#start + this.#bytes.length) {
        const end = Math.min(source.size, position + Math.max(length, READ_BYTES))
        this.#bytes = Buffer.concat([...source.read(position, end)])
        this.#start = position
      }
      const from = position - this.#start
      const isWhole = this.#bytes.copy(buffer, offset, from, from + length) === length
      queueMicrotask(() => callback(isWhole ? null : new Error('it is truncated')))
    }

    override _readStreamForRange(start: number, end: number): Readable {
      return Readable.from(source.read(start, end))
    }
  }
  return checked(fromRandomAccessReaderPromise(new Source(), source.size, { lazyEntries: true, autoClose: false }))
}

async function* readable(zip: ZipFile): AsyncGenerator<Entry> {
  const entries = zip.eachEntry()
  for (let count = 1; ; count++) {
    const { done, value } = await checked(entries.next())
    if (done) return
    if (count % PAGE_ENTRIES === 0) await setImmediate()
    yield value as Entry
  }
}

/** Checks that all files are within bounds. Returns the files with fixed names, and the total size of the blobs. */
async function entriesOf(
  zip: ZipFile,
  { repoBytes, blobBytes }: ArchiveBounds,
): Promise<{ entries: Map<string, Entry>; blobBytes: number }> {
  if (zip.entryCount > MAX_FILES) throw fault(`it has more than ${MAX_FILES} files`)
  const largest = new Map<string, number>([
    [archiveNames.manifest, MAX_JSON_BYTES],
    [archiveNames.preferences, MAX_JSON_BYTES],
    [archiveNames.repo, repoBytes],
  ])
  const names = new Set<string>()
  const entries = new Map<string, Entry>()
  let total = 0
  for await (const entry of readable(zip)) {
    const { fileName, uncompressedSize } = entry
    const cid = blobNamed(fileName)
    const most = cid === null ? largest.get(fileName) : blobBytes
    const name = cid ?? fileName
    if (fileName.length > MAX_NAME_CHARS) throw fault('a file has a name that is too long')
    // An archive may contain any other files. They are never read.
    if (most === undefined) continue
    if (names.has(name)) throw fault(`it contains ${fileName} twice`)
    names.add(name)
    if (entry.isEncrypted() || !readableMethods.includes(entry.compressionMethod))
      throw fault(`${fileName} is encrypted, or compressed in an unknown way`)
    if (uncompressedSize > most) throw fault(`${fileName} has more than ${most} bytes`)
    if (cid === null) entries.set(fileName, entry)
    else total += uncompressedSize
  }
  // `readEntryCursor`, whose type is wrong, is where the directory ends. With anything between that and the end record,
  // other programs might see other files.
  const endBytes = zip.fileSize - Number(zip.readEntryCursor) - Buffer.byteLength(zip.comment)
  if (!endSizes.includes(endBytes)) throw fault('its central directory is not at its end')
  return { entries, blobBytes: total }
}

/** Yields the content of a file. Throws if its size differs from that in the directory. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Uint8Array> {
  const stream = await checked(zip.openReadStreamPromise(entry), entry.fileName)
  const chunks = stream[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await checked(chunks.next(), entry.fileName)
      if (done) return
      yield value as Uint8Array
    }
  } finally {
    stream.destroy()
  }
}

const parsed = (bytes: Uint8Array): unknown => parsedJson(Buffer.from(bytes).toString('utf8'))

async function jsonIn(zip: ZipFile, entry: Entry | undefined): Promise<unknown> {
  if (entry === undefined) throw fault(`it has no ${archiveNames.manifest}`)
  return parsed(Buffer.concat(await Array.fromAsync(contentOf(zip, entry))))
}

function manifestOf(value: unknown): Manifest {
  const { format, version, did, files } = (value ?? {}) as Record<string, unknown>
  if (format !== ARCHIVE_FORMAT) throw fault(`${archiveNames.manifest} is not the manifest of an account`)
  if (version !== ARCHIVE_VERSION) throw fault(`${archiveNames.manifest} has version ${String(version).slice(0, 20)}`)
  const parsedDid = typeof did === 'string' ? parseDid(did) : null
  if (parsedDid === null || !Array.isArray(files)) throw fault(`${archiveNames.manifest} names no account or no files`)
  const digests = new Map<string, string>()
  for (const file of files as { name?: unknown; sha256?: unknown }[])
    if (typeof file?.name === 'string' && typeof file.sha256 === 'string') digests.set(file.name, file.sha256)
  return { did: parsedDid, digests }
}
