/**
 * The folder of blobs: `<shard>/<cid>`, one file per CID for all its owners.
 *
 * A file appears under its name whole and on the disk, or not at all: it is written under `.incoming`, synced and
 * renamed, and its folder is synced. Names that start with a dot are nobody's blob.
 *
 * What is read is what was hashed. A file is hashed before its first byte leaves this process; after that it must
 * still be the same file (inode, size, time of change) or it is hashed again. Damage below an unchanged file is what
 * the scrub looks for.
 */
import { statSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { blobsFolder } from '../../platform/files/data-directory.ts'
import { perContext } from '../../platform/context.ts'
import type { Pace } from '../../base/pace.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import { cidOfBlobDigest } from '../../protocol/cid.ts'
import { WriteBehind } from './write-behind.ts'

/** What type detection gets to see of a blob. */
export const HEAD_BYTES = 64 * 1024
/** Read at once; hashing as much takes well below a millisecond, so that requests are not kept waiting. */
const READ_BYTES = 64 * 1024
/** Files remembered as hashed. */
const MAX_VERIFIED = 100_000

const INCOMING = '.incoming'

export interface FileContent {
  cid: string
  size: number
}

export class BlobFiles {
  readonly #verified = new BoundedCache<string>(MAX_VERIFIED)
  /** Buffers for reading, handed from one file to the next. */
  readonly #buffers: Uint8Array[] = []

  constructor(readonly dir: string) {}

  /** Before anything else. */
  async prepare(): Promise<void> {
    await mkdir(join(this.dir, INCOMING), { recursive: true })
  }

  pathOf(cid: string): string {
    return `${this.#shardOf(cid)}/${cid}`
  }

  /** Write a stream to a file without a name, hashing it on the way. It goes when it is disposed of before it is kept. */
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
      throw error
    }
    await file.close()
    return new IncomingFile(this, path, cidOfBlobDigest(hasher.digest()).toString(), size, Buffer.concat(head))
  }

  /** Give a received file its name. What stood there before is replaced: it had the same content, or it was damaged. */
  async place({ path, cid }: { path: string; cid: string }): Promise<void> {
    const shard = this.#shardOf(cid)
    const made = await mkdir(shard, { recursive: true })
    const target = this.pathOf(cid)
    await rename(path, target)
    await syncFolder(shard)
    if (made !== undefined) await syncFolder(this.dir)
    const identity = identityOf(target)
    if (identity !== null) this.#verified.set(cid, identity)
  }

  async remove(cid: string): Promise<void> {
    this.#verified.delete(cid)
    await rm(this.pathOf(cid), { force: true })
  }

  /** Size of the file on the disk, null when there is none. */
  async sizeOf(cid: string): Promise<number | null> {
    return (await statOf(this.pathOf(cid)))?.size ?? null
  }

  /** The file, once its bytes are known to be the blob's. Null when it is missing or holds something else. */
  async readable(cid: string): Promise<Bun.BunFile | null> {
    const path = this.pathOf(cid)
    const identity = identityOf(path)
    if (identity === null) return null
    if (this.#verified.get(cid) !== identity) {
      const content = await this.contentOf(cid)
      if (content?.cid !== cid) return null
      this.#verified.set(cid, identity)
    }
    return Bun.file(path)
  }

  /** What the bytes on the disk hash to. Null when there is no file. */
  async contentOf(cid: string, pace?: Pace): Promise<FileContent | null> {
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

  /** Names of all files that could be blobs, in pages. */
  async *names(pageSize: number): AsyncGenerator<string[]> {
    const shards = (await readdir(this.dir, { withFileTypes: true })).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    for (const shard of shards) {
      const names = (await readdir(join(this.dir, shard.name))).filter((name) => !name.startsWith('.'))
      for (let start = 0; start < names.length; start += pageSize) {
        yield names.slice(start, start + pageSize)
        await setImmediate()
      }
    }
  }

  /** Delete what uploads left behind that ended with the process. Returns how many. */
  async clearIncoming(olderThan: number): Promise<number> {
    let cleared = 0
    for (const name of await readdir(join(this.dir, INCOMING))) {
      const path = join(this.dir, INCOMING, name)
      const found = await statOf(path)
      if (found === null || found.mtimeMs >= olderThan) continue
      await rm(path, { force: true })
      cleared++
    }
    return cleared
  }

  /** By the last two characters: the first ones are the same for every CID. */
  #shardOf(cid: string): string {
    return `${this.dir}/${cid.slice(-2)}`
  }
}

export class IncomingFile implements AsyncDisposable {
  constructor(
    readonly files: BlobFiles,
    readonly path: string,
    readonly cid: string,
    readonly size: number,
    /** The first bytes. */
    readonly head: Uint8Array,
  ) {}

  keep(): Promise<void> {
    return this.files.place(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { force: true })
  }
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

/** Synchronous: the file is opened synchronously anyway by whoever answers with it, and the thread pool costs more than the call. */
function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : `${found.ino} ${found.size} ${found.mtimeMs}`
}

function nullWhenMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** The blobs of a data directory, for a process that does not run the server. */
export const blobFilesIn = (dataDir: string): BlobFiles => new BlobFiles(blobsFolder(dataDir))

/** The blobs of a running server. */
export const blobFiles = perContext(({ config }) => blobFilesIn(config.dataDir))
