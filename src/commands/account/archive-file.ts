import { lstatSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { OperatorError } from '../../base/operator-error.ts'
import { deleteIfInterrupted } from '../stop-signals.ts'

/** A ZIP archive ends with a record of this many bytes, which begins with this signature. */
const END_BYTES = 22
const END_SIGNATURE = Buffer.from([0x50, 0x4b, 0x05, 0x06])

/**
 * Write an archive to a file that appears under its name once it is complete. Returns its size in bytes.
 *
 * The archive is first written to a new file with a random name. A file with a fixed name could belong to another
 * export, or be a link that another user has placed in a shared folder.
 */
export async function saveArchive(archive: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const part = `${path}.${crypto.randomUUID()}.part`
  const keep = deleteIfInterrupted(part)
  try {
    const size = await saved(archive, part)
    await giveName(part, path)
    return size
  } finally {
    await rm(part, { force: true })
    keep()
  }
}

async function saved(archive: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const file = await open(path, 'wx', 0o600)
  let size = 0
  try {
    let end: Uint8Array = new Uint8Array()
    for await (const chunk of archive) {
      await file.writeFile(chunk)
      size += chunk.length
      end = Buffer.concat([end, chunk.slice(-END_BYTES)]).subarray(-END_BYTES)
    }
    if (!END_SIGNATURE.equals(end.subarray(0, END_SIGNATURE.length)))
      throw new OperatorError('the server stopped in the middle of the archive: see its log, and try again')
    await file.sync()
  } finally {
    await file.close()
  }
  return size
}

/** Give a file its name, unless another file has it. */
async function giveName(part: string, path: string): Promise<void> {
  try {
    await link(part, path)
  } catch {
    requireNoFile(path)
    // Some file systems have no hard links.
    await rename(part, path)
  }
}

/** Throws OperatorError if the path is a file, or a link to nothing. Call it before the archive is requested. */
export function requireNoFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) throw new OperatorError(`${path} already exists`)
}
