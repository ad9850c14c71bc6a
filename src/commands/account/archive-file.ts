import { lstatSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { OperatorError } from '../../base/operator-error.ts'
import { deleteIfInterrupted } from '../stop-signals.ts'

/** The record that ends a ZIP archive has these bytes, and begins with this signature. */
const END_BYTES = 22
const END_SIGNATURE = Buffer.from([0x50, 0x4b, 0x05, 0x06])

/**
 * Write an archive to a file, which has its name once all of it is there. Returns its size in bytes.
 *
 * It arrives in a file of its own: one that exists may be that of another export, or a link that another user has
 * placed in a shared folder.
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

/** Give a file its name, unless another one has it. */
async function giveName(part: string, path: string): Promise<void> {
  try {
    await link(part, path)
  } catch {
    requireNoFile(path)
    // Some file systems have no hard links.
    await rename(part, path)
  }
}

/** Throws OperatorError if there is a file, or a link to nothing. Call it before the archive is asked for. */
export function requireNoFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) throw new OperatorError(`${path} already exists`)
}
