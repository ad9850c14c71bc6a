/**
 * The folder of blobs: `<shard>/<cid>`, one file per CID for all its owners.
 *
 * A file appears under its name complete and durable, or not at all: it is written under `.incoming`, synced and
 * renamed, and its folder is synced. Names that start with a dot are not blobs.
 *
 * Only verified bytes are served. A file is hashed before its first byte leaves this process, and again if its inode,
 * size or modification time has changed. The scrub finds damage that changes none of these. Small files are kept in
 * memory once they were read to be hashed, and are sent from there while the file is unchanged.
 */
import { statSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Pace } from '../../../base/pace.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { KeyedQueue } from '../../../base/keyed-queue.ts'
import { onDisk } from '../../../base/on-disk.ts'
import { nullWhenMissing } from '../../../platform/files/system-faults.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import { HEAD_BYTES, type BlobContent, type BlobStorage, type IncomingBlob, type OpenOptions } from './blob-storage.ts'
import { WriteBehind } from './write-behind.ts'

/** Bytes read at once. Hashing them takes well below a millisecond, which keeps requests from waiting. */
const READ_BYTES = 64 * 1024
/** How many files are remembered as verified. */
const MAX_VERIFIED = 100_000
/**
 * Files of up to this many bytes, such as avatars, stay in memory: reading them costs half of a request. A client that
 * does not take its response holds no more memory than with a larger file, which the runtime reads in pieces of this
 * size.
 */
const SMALL_BYTES = 256 * 1024
/** Bytes of small files in memory. */
const MAX_SMALL_BYTES = 8 * 1024 ** 2

const INCOMING = '.incoming'

interface SmallFile {
  /** Inode, size and modification time of its file when it was read. */
  identity: string
  content: Blob
}

export class BlobFolder implements BlobStorage {
  readonly isShared = false
  readonly #verified = new BoundedCache<string>(MAX_VERIFIED)
  /** Small files whose content was verified. */
  readonly #small = new BoundedCache<SmallFile>(MAX_SMALL_BYTES, (_, { content }) => content.size)
  /** Read buffers, reused for one file after another. */
  readonly #buffers: Uint8Array[] = []
  readonly #queue = new KeyedQueue()

  constructor(readonly dir: string) {}

  get place(): string {
    return `the folder ${this.dir}`
  }

  placeOf(cid: string): string {
    return `the file ${this.pathOf(cid)}`
  }

  async isThere(): Promise<boolean> {
    return (await statOf(this.dir)) !== null
  }

  async prepare(): Promise<void> {
    await mkdir(join(this.dir, INCOMING), { recursive: true })
    // These files are left over from a process that was killed. No other process uses the folder now.
    await clearFiles(join(this.dir, INCOMING), Infinity)
  }

  async isEmpty(): Promise<boolean> {
    for await (const page of this.list(1)) return page.length === 0
    return true
  }

  alone<T>(cid: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(cid, work)
  }

  pathOf(cid: string): string {
    return `${this.#shardOf(cid)}/${cid}`
  }

  async receive(chunks: AsyncIterable<Uint8Array>): Promise<IncomingFile> {
    const path = join(this.dir, INCOMING, `${crypto.randomUUID()}.tmp`)
    const hasher = new Bun.CryptoHasher('sha256')
    const head: Uint8Array[] = []
    let size = 0
    const file = new WriteBehind(await open(path, 'wx', 0o600))
    try {
      for await (const chunk of chunks) {
        if (size < HEAD_BYTES) head.push(chunk.slice(0, HEAD_BYTES - size))
        size += chunk.byteLength
        hasher.update(chunk)
        await file.write(chunk)
      }
      await file.finish()
    } catch (error) {
      await file.close().finally(() => rm(path, { force: true }))
      throw onDisk(error, this.dir)
    }
    await file.close()
    return new IncomingFile(this, path, cidOfBlobDigest(hasher.digest()).toString(), size, Buffer.concat(head))
  }

  /**
   * Give a received file its name. Replaces an existing file of this name, which had the same content or was damaged.
   */
  async name({ path, cid }: { path: string; cid: string }): Promise<void> {
    const shard = this.#shardOf(cid)
    const made = await mkdir(shard, { recursive: true })
    const target = this.pathOf(cid)
    await rename(path, target)
    await syncFolder(shard)
    if (made !== undefined) await syncFolder(this.dir)
    const found = stateOf(target)
    if (found !== null) this.#verified.set(cid, found.identity)
  }

  async remove(cid: string): Promise<void> {
    this.#verified.delete(cid)
    this.#small.delete(cid)
    await rm(this.pathOf(cid), { force: true })
  }

  async sizeOf(cid: string): Promise<number | null> {
    return (await statOf(this.pathOf(cid)))?.size ?? null
  }

  async open({ cid }: { cid: string }, { range }: OpenOptions = {}): Promise<Blob | null> {
    const content = await this.readable(cid)
    return content === null || range === undefined ? content : content.slice(range.first, range.last + 1)
  }

  /** Returns the content after its bytes were verified; null if it is missing or does not match the CID. */
  async readable(cid: string): Promise<Blob | null> {
    const path = this.pathOf(cid)
    const found = stateOf(path)
    if (found === null) return null
    const { identity, size } = found
    if (size <= SMALL_BYTES) {
      const small = this.#small.get(cid)
      return small?.identity === identity ? small.content : this.#readSmall(cid, identity)
    }
    if (this.#verified.get(cid) !== identity) {
      const content = await this.digest(cid)
      if (content?.cid !== cid) return null
      this.#verified.set(cid, identity)
    }
    return Bun.file(path)
  }

  async #readSmall(cid: string, identity: string): Promise<Blob | null> {
    const bytes = await readFile(this.pathOf(cid)).catch(nullWhenMissing)
    if (bytes === null) return null
    // Hashes on another thread, unlike `digest`, which hashes piece by piece.
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    if (cidOfBlobDigest(digest).toString() !== cid) return null
    const content = new Blob([bytes])
    this.#small.set(cid, { identity, content })
    return content
  }

  async digest(cid: string, pace?: Pace): Promise<BlobContent | null> {
    const file = await open(this.pathOf(cid), 'r').catch(nullWhenMissing)
    if (file === null) return null
    const buffer = this.#buffers.pop() ?? new Uint8Array(READ_BYTES)
    try {
      const hasher = new Bun.CryptoHasher('sha256')
      let size = 0
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, READ_BYTES, size)
        if (bytesRead === 0) break
        hasher.update(buffer.subarray(0, bytesRead))
        size += bytesRead
        await pace?.(bytesRead)
      }
      const found = cidOfBlobDigest(hasher.digest()).toString()
      if (found !== cid) this.#verified.delete(cid)
      return { cid: found, size }
    } finally {
      this.#buffers.push(buffer)
      await file.close()
    }
  }

  async *list(pageSize: number): AsyncGenerator<string[]> {
    const shards = (await readdir(this.dir, { withFileTypes: true })).filter(
      (entry) => entry.isDirectory() && !entry.name.startsWith('.'),
    )
    for (const shard of shards) {
      const names = (await readdir(join(this.dir, shard.name))).filter((name) => !name.startsWith('.'))
      for (let start = 0; start < names.length; start += pageSize) {
        yield names.slice(start, start + pageSize)
        await setImmediate()
      }
    }
  }

  clearIncoming(olderThan: number): Promise<number> {
    return clearFiles(join(this.dir, INCOMING), olderThan)
  }

  /** Folders are named by the last two characters, because the first ones are the same for every CID. */
  #shardOf(cid: string): string {
    return `${this.dir}/${cid.slice(-2)}`
  }
}

class IncomingFile implements IncomingBlob {
  constructor(
    readonly folder: BlobFolder,
    readonly path: string,
    readonly cid: string,
    readonly size: number,
    readonly head: Uint8Array,
  ) {}

  start(maxBytes: number): Promise<Uint8Array> {
    return Bun.file(this.path).slice(0, maxBytes).bytes()
  }

  place(): Promise<void> {
    return this.folder.name(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { force: true })
  }
}

/** Delete the files that were last written before `olderThan`. Returns how many. */
export async function clearFiles(dir: string, olderThan: number): Promise<number> {
  let cleared = 0
  for (const name of await readdir(dir)) {
    const path = join(dir, name)
    const found = await statOf(path)
    if (found === null || found.mtimeMs >= olderThan) continue
    await rm(path, { force: true })
    cleared++
  }
  return cleared
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

const statOf = (path: string) => stat(path).catch(nullWhenMissing)

/** Synchronous: the thread pool costs more than the call. */
function stateOf(path: string): { identity: string; size: number } | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : { identity: `${found.ino} ${found.size} ${found.mtimeMs}`, size: found.size }
}
