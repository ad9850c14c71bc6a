/** Downloads into files, which appear under their names once they are whole. */
import { lstatSync } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { MINUTE_MILLIS } from '../base/durations.ts'
import { OperatorError } from '../base/operator-error.ts'
import { Stalled, unstalled } from '../base/unstalled.ts'
import { deleteIfInterrupted } from './stop-signals.ts'

/** Longest pause within a download. */
const MAX_PAUSE_MILLIS = 10 * MINUTE_MILLIS

/** Yields the bytes of a response, which may take as long as bytes keep arriving. */
export async function* arriving({ body }: Response, url: string): AsyncGenerator<Uint8Array> {
  if (body === null) return
  try {
    yield* unstalled(body, MAX_PAUSE_MILLIS)
  } catch (error) {
    if (!(error instanceof Stalled)) throw error
    throw new OperatorError(`${url} stopped sending: ${error.message}`, { cause: error })
  }
}

/** Looks at the chunks of a download, and says at their end whether they are all there. */
export interface Completeness {
  add(chunk: Uint8Array): void
  isWhole(): boolean
}

/** A ZIP archive ends with a record of this many bytes, which begins with this signature. */
const END_BYTES = 22
const END_SIGNATURE = Buffer.from([0x50, 0x4b, 0x05, 0x06])

export function endsAsZip(): Completeness {
  let end: Uint8Array = new Uint8Array()
  return {
    add(chunk) {
      end = Buffer.concat([end, chunk.slice(-END_BYTES)]).subarray(-END_BYTES)
    },
    isWhole: () => END_SIGNATURE.equals(end.subarray(0, END_SIGNATURE.length)),
  }
}

/**
 * Write a download to a file. Returns its size in bytes. Throws OperatorError if it is not whole.
 *
 * The download is first written to a new file with a random name. A file with a fixed name could belong to another
 * download, or be a link that another user has placed in a shared folder.
 */
export async function saveDownload(
  content: AsyncIterable<Uint8Array>,
  path: string,
  completeness: Completeness,
): Promise<number> {
  const part = `${path}.${crypto.randomUUID()}.part`
  const keep = deleteIfInterrupted(part)
  try {
    const size = await saved(content, part, completeness)
    await giveName(part, path)
    return size
  } finally {
    await rm(part, { force: true })
    keep()
  }
}

async function saved(
  content: AsyncIterable<Uint8Array>,
  path: string,
  { add, isWhole }: Completeness,
): Promise<number> {
  const file = await open(path, 'wx', 0o600)
  let size = 0
  try {
    for await (const chunk of content) {
      add(chunk)
      size += chunk.length
      await file.writeFile(chunk)
    }
    if (!isWhole()) throw new OperatorError('the download was cut off: see the log of the server, and try again')
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

/** Throws OperatorError if the path is a file, or a link to nothing. Call it before the download is requested. */
export function requireNoFile(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) throw new OperatorError(`${path} already exists`)
}
