/**
 * Storage of backups: a folder or a bucket that holds named objects. Writes are atomic: an object appears under its
 * name whole, or not at all.
 */
import { access, constants, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Bucket } from '../../../platform/network/bucket.ts'
import { BucketRefusal } from '../../../platform/network/bucket-faults.ts'
import type { Content } from '../../../platform/network/bucket-wire.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { BACKUP_PREFIX } from '../../../platform/files/data-directory.ts'
import { parseBucketPlace, placeFault } from '../../../base/bucket-place.ts'
import { onDisk } from '../../../base/on-disk.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { explained, nullWhenMissing } from '../../../platform/files/system-faults.ts'
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

export interface Archive {
  write(name: string, content: AsyncIterable<Uint8Array>): Promise<void>
  /**
   * Write an object unless its name is taken. Returns true if the name certainly holds this content; otherwise the
   * caller has to read the object to learn whose content it holds.
   */
  writeNew(name: string, content: Uint8Array): Promise<boolean>
  /** Returns the object's bytes from offset `from` (default 0), or null if no object has this name. */
  read(name: string, from?: number): Promise<AsyncIterable<Uint8Array> | null>
  /** Returns a small object that `swap` may replace, with a tag unique to this version; null if there is none. */
  tagged(name: string): Promise<Tagged | null>
  /**
   * Replace an object if it still has this tag; with a null tag, create it. The content must differ from that of every
   * other version. Returns the new tag, or null if the object has changed meanwhile. Throws if the outcome is unknown.
   */
  swap(name: string, content: Uint8Array, tag: string | null): Promise<string | null>
  /** Throws `OperatorError` unless the store enforces the conditions of `writeNew` and `swap` between machines too. */
  requireConditions(): Promise<void>
  /** Lists the names that begin with `prefix`. */
  names(prefix: string): AsyncIterable<string>
  delete(name: string): Promise<void>
  /** Delete every object whose name begins with `folder` and a slash, including what was written only in part. */
  deleteFolder(folder: string): Promise<void>
  /** Delete partial files that killed processes left more than a day ago under names that begin with `prefix`. */
  deleteParts(prefix: string): Promise<void>
}

export interface Tagged {
  content: Uint8Array
  tag: string
}

/**
 * Open a folder, or `s3://bucket/prefix` with the endpoint and credentials of `blob_mirror`. Throws OperatorError if
 * those are not configured.
 */
export function archiveAt(
  place: string,
  { backup, blobMirror, dataDir }: Pick<Config, 'backup' | 'blobMirror' | 'dataDir'>,
): Archive {
  const bucketPlace = parseBucketPlace(place)
  const fault = placeFault(place)
  if (fault !== null) throw new OperatorError(`${place}: ${fault}`)
  const isContinuous = place === backup.continuous && place !== backup.destination
  if (bucketPlace === null) return folderArchive(place, isContinuous ? 'backup.continuous' : 'backup.destination')
  const { endpoint, region, accessKeyId, secretAccessKey, forcePathStyle } = blobMirror
  if (endpoint === null || accessKeyId === null || secretAccessKey === null)
    throw new OperatorError(
      'a backup in a bucket needs blob_mirror.endpoint, blob_mirror.access_key_id and blob_mirror.secret_access_key',
    )
  const bucket = new Bucket({
    bucket: bucketPlace.bucket,
    endpoint,
    region,
    accessKeyId,
    secretAccessKey,
    forcePathStyle,
  })
  const { prefix } = bucketPlace
  return bucketArchive(bucket, prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`, dataDir)
}

/** `key`: the configuration key that names the folder. */
function folderArchive(dir: string, key: string): Archive {
  const haveFolder = async (path: string): Promise<void> => {
    try {
      await mkdir(path, { recursive: true })
      await access(path, constants.W_OK | constants.X_OK)
    } catch (error) {
      throw explained(error, { path, folder: dir, key })
    }
  }
  return {
    async write(name, content) {
      const path = join(dir, name)
      await haveFolder(dirname(path))
      await spoolWhole(path, content)
    },
    async writeNew(name, content) {
      const path = join(dir, name)
      await haveFolder(dirname(path))
      return spoolNew(path, content)
    },
    async read(name, from = 0) {
      const path = join(dir, name)
      try {
        // If this user may not look the file up, that does not mean that it is missing.
        await access(path, constants.F_OK)
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'ENOENT' || code === 'ENOTDIR') return null
        throw explained(error, { path: dir, folder: dir, key })
      }
      return Bun.file(path).slice(from).stream()
    },
    tagged: async (name) => {
      const versions = await versionsOf(dir, name)
      for (const version of versions.toReversed()) {
        const file = Bun.file(join(dir, versionName(name, version)))
        // A version that was replaced since the listing may be deleted.
        if (await file.exists()) return { content: await file.bytes(), tag: String(version) }
      }
      return null
    },
    async swap(name, content, tag) {
      const versions = await versionsOf(dir, name)
      if ((versions.at(-1)?.toString() ?? null) !== tag) return null
      const version = Number(tag ?? 0) + 1
      const path = join(dir, versionName(name, version))
      await haveFolder(dirname(path))
      const isNew = await spoolNew(path, content)
      // Without hard links, `isNew` is false even after a successful rename. No other version has the same content, so
      // comparing the bytes decides.
      if (!isNew && !Buffer.from(await Bun.file(path).bytes()).equals(content)) return null
      if ((await versionsOf(dir, name)).at(-1) !== version) {
        // This process was suspended until the name of an old version was free again, and took that name.
        await rm(path, { force: true })
        return null
      }
      // Keep the previous version: if its name were free, a slow process could take it again.
      for (const old of versions.slice(0, -1)) await rm(join(dir, versionName(name, old)), { force: true })
      return String(version)
    },
    async requireConditions() {
      const probe = join(dir, probeName())
      await haveFolder(dirname(probe))
      try {
        await spoolWhole(probe, bytesOf(''), async (from, to) => {
          await link(from, to)
          await rm(from)
        })
      } catch (error) {
        if (!linkless.has((error as NodeJS.ErrnoException).code)) throw error
        throw unsafe(`the file system of ${dir} has no hard links`, 'use a bucket, or a folder on another one')
      } finally {
        await rm(probe, { force: true })
      }
    },
    async *names(prefix) {
      for (const name of await filesBelow(dir, prefix)) if (!name.endsWith(PART)) yield name
    },
    delete: (name) => rm(join(dir, name), { force: true }),
    deleteFolder: (folder) => rm(join(dir, folder), { recursive: true, force: true }),
    async deleteParts(prefix) {
      const parts = (await filesBelow(dir, prefix)).filter((name) => name.endsWith(PART))
      if (parts.length === 0) return
      const now = await timeAt(dir)
      for (const name of parts) {
        const found = await stat(join(dir, name)).catch(nullWhenMissing)
        if (found !== null && now - found.mtimeMs > DAY_MILLIS) await rm(join(dir, name), { force: true })
      }
    },
  }
}

/** Suffix of files that are not complete yet. */
const PART = '.part'

/** Returns the current time by the clock of the file system, which may be on another machine. */
async function timeAt(dir: string): Promise<Millis> {
  const probe = join(dir, probeName())
  try {
    await spool(probe, bytesOf(''))
    return (await stat(probe)).mtimeMs
  } finally {
    await rm(probe, { force: true })
  }
}

/** Names in a folder that begin with `prefix`, including those of incomplete files. */
async function filesBelow(dir: string, prefix: string): Promise<string[]> {
  const found = await readdir(join(dir, dirname(`${prefix}x`)), { recursive: true, withFileTypes: true }).catch(
    (error: { code?: string }) => {
      if (error.code === 'ENOENT') return []
      throw error
    },
  )
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(dir).length + 1))
    .filter((name) => name.startsWith(prefix))
}

/** Name of the file that `requireConditions` and `timeAt` write and delete. */
const probeName = () => `conditions-${crypto.randomUUID()}`

const unsafe = (what: string, remedy: string): OperatorError =>
  new OperatorError(`${what}, so no machine can take over safely: ${remedy}, or unset backup.takeover_secs`)

/** An object that can be replaced has a file for each version; the highest version counts. */
const versionName = (name: string, version: number): string => `${name}.${version}`

async function versionsOf(dir: string, name: string): Promise<number[]> {
  const folder = dirname(join(dir, name))
  const found = await readdir(folder).catch((error: { code?: string }): string[] => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const start = `${basename(name)}.`
  return found
    .filter((each) => each.startsWith(start) && /^\d{1,15}$/.test(each.slice(start.length)))
    .map((each) => Number(each.slice(start.length)))
    .toSorted((a, b) => a - b)
}

/** Error codes of `link` on file systems without hard links. */
const linkless: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL'])

/**
 * Rename a file unless the new name is taken; then the file that has the name stays, and this one is deleted. Returns
 * true if the name certainly belongs to this file.
 */
async function linkOrRename(from: string, to: string): Promise<boolean> {
  let isNew = false
  try {
    await link(from, to)
    isNew = true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (linkless.has(code)) {
      if (!(await Bun.file(to).exists())) {
        await rename(from, to)
        return false
      }
    } else if (code !== 'EEXIST') throw error
  }
  await rm(from, { force: true })
  return isNew
}

/** Write a file as `linkOrRename` names it, and return what that returns. */
async function spoolNew(path: string, content: Uint8Array): Promise<boolean> {
  let isNew = false
  await spoolWhole(path, bytesOf(content), async (from, to) => void (isNew = await linkOrRename(from, to)))
  return isNew
}

const smallContent = (content: Uint8Array): Content => ({
  body: new Blob([new Uint8Array(content)]),
  sha256: new Bun.CryptoHasher('sha256').update(content).digest('hex'),
  md5: new Bun.CryptoHasher('md5').update(content).digest('hex'),
})

/** An upload must state its size and digest first, so each object is spooled to a file in `spoolDir`. */
function bucketArchive(bucket: Bucket, prefix: string, spoolDir: string): Archive {
  async function* names(start: string): AsyncGenerator<string> {
    for await (const page of bucket.list(prefix + start)) for (const { key } of page) yield key.slice(prefix.length)
  }
  async function send(content: AsyncIterable<Uint8Array>, put: (content: Content) => Promise<unknown>): Promise<void> {
    const path = join(spoolDir, `${BACKUP_PREFIX}${crypto.randomUUID()}.part`)
    try {
      const { sha256 } = await spool(path, content)
      await put({ body: Bun.file(path), sha256 })
    } finally {
      await rm(path, { force: true })
    }
  }
  return {
    write: (name, content) => send(content, (spooled) => bucket.put(prefix + name, spooled)),
    writeNew: (name, content) => bucket.putNew(prefix + name, smallContent(content)),
    read: (name, from) => bucket.get(prefix + name, { from }),
    tagged: (name) => bucket.tagged(prefix + name),
    async swap(name, content, tag) {
      try {
        const stored = await bucket.replace(prefix + name, smallContent(content), tag)
        if (stored !== null) return stored
      } catch (error) {
        if (error instanceof BucketRefusal && !error.isPassing) throw error
        const found = await bucket.tagged(prefix + name)
        if (found !== null && Buffer.from(found.content).equals(content)) return found.tag
        throw error
      }
      // An earlier try of the same request may have stored it.
      const found = await bucket.tagged(prefix + name)
      return found !== null && Buffer.from(found.content).equals(content) ? found.tag : null
    },
    async requireConditions() {
      const key = prefix + probeName()
      const content = () => smallContent(Buffer.from(crypto.randomUUID()))
      try {
        const stored = await bucket.put(key, content())
        for (const [tag, condition] of [
          [null, 'If-None-Match'],
          ['0', 'If-Match'],
        ] as const)
          if ((await bucket.replace(key, content(), tag)) !== null || (await bucket.tagged(key))?.tag !== stored)
            throw unsafe(`this store ignores ${condition}`, 'use another store')
      } finally {
        await bucket.delete(key)
      }
    },
    names,
    delete: (name) => bucket.delete(prefix + name),
    // Incomplete files are in the data directory, where backups clear them.
    deleteParts: () => Promise.resolve(),
    async deleteFolder(folder) {
      for await (const name of names(`${folder}/`)) await bucket.delete(prefix + name)
    },
  }
}

/**
 * Write a stream to a file atomically: the file appears under its name complete or not at all, even if several
 * processes write it. `place` moves the finished file to its name.
 */
export async function spoolWhole(
  path: string,
  content: AsyncIterable<Uint8Array>,
  place: (from: string, to: string) => Promise<void> = rename,
): Promise<void> {
  const part = `${path}.${crypto.randomUUID()}${PART}`
  try {
    await spool(part, content)
    await place(part, path)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** Write a stream to a file and sync it to disk. Returns the size in bytes and the SHA-256 digest in hex. */
export async function spool(
  path: string,
  content: AsyncIterable<Uint8Array>,
): Promise<{ size: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher('sha256')
  let size = 0
  const file = await open(path, 'w', 0o600)
  try {
    for await (const chunk of content) {
      hasher.update(chunk)
      size += chunk.byteLength
      for (let written = 0; written < chunk.byteLength;) written += (await file.write(chunk, written)).bytesWritten
    }
    await file.sync()
  } catch (error) {
    throw onDisk(error, dirname(path))
  } finally {
    await file.close()
  }
  return { size, sha256: hasher.digest('hex') }
}

/** Largest size of objects that contain only a few values. */
const MAX_SMALL_BYTES = 1024 ** 2

/** Read an object into memory. Returns null if there is none. Throws `OperatorError` if it has more than `maxBytes`. */
export async function readWhole(
  archive: Archive,
  name: string,
  maxBytes = MAX_SMALL_BYTES,
): Promise<Uint8Array | null> {
  const content = await archive.read(name)
  return content && wholeOf(content, name, maxBytes)
}

/** As `readWhole`, for an object that is already being read. */
export async function wholeOf(
  content: AsyncIterable<Uint8Array>,
  name: string,
  maxBytes = MAX_SMALL_BYTES,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.byteLength
    if (bytes > maxBytes)
      throw new OperatorError(`${name} is not an object of a backup: it has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** An object was cut off, or changed. */
export class DamagedObject extends OperatorError {
  constructor(name: string, options?: ErrorOptions) {
    super(
      `the backup is damaged: ${name} was cut off or changed. Copy the backup again, or restore another one`,
      options,
    )
  }
}

/** Parse an object as JSON. Throws `DamagedObject` if it is malformed, or if `isWhole` rejects it. */
export function jsonObject<T>(name: string, bytes: Uint8Array, isWhole: (value: Partial<T>) => boolean): T {
  const value = parsedJson(Buffer.from(bytes).toString())
  if (typeof value !== 'object' || value === null || !isWhole(value)) throw new DamagedObject(name)
  return value as T
}

export async function* bytesOf(text: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield typeof text === 'string' ? Buffer.from(text) : text
}
