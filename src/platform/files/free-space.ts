import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** What stays free for everything else while something large is written. */
const RESERVED_BYTES = 512 * 1024 ** 2
/** The writer of something large checks the free space again after this many bytes. */
export const CHECKED_BYTES = 64 * 1024 ** 2

/** Thrown when something large would take the reserve of the disk. */
export class NoRoom extends Error {}

/** Whether the file system of a folder has the reserve left after another `bytes`. */
export const hasRoomFor = async (folder: string, bytes: number, reservedBytes = RESERVED_BYTES): Promise<boolean> =>
  (await freeBytesOf(folder)) >= bytes + reservedBytes

/** Returns how many bytes a user without privileges can still write to the file system of a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Passes on the chunks that a caller writes to a folder. Throws `NoRoom` as soon as less than the reserve is left. */
export async function* whileRoom(
  chunks: AsyncIterable<Uint8Array>,
  folder: string,
  reservedBytes = RESERVED_BYTES,
): AsyncGenerator<Uint8Array> {
  let unchecked = 0
  for await (const chunk of chunks) {
    yield chunk
    unchecked += chunk.length
    if (unchecked < CHECKED_BYTES) continue
    unchecked = 0
    if (!(await hasRoomFor(folder, 0, reservedBytes))) throw new NoRoom('the disk has only its reserve left')
  }
}

/** What stays free for commits, whatever else is written. */
export const COMMIT_BYTES = 128 * 1024 ** 2
/** Bytes after which `RoomForCommits` looks at the disk again. */
const WATCHED_BYTES = 16 * 1024 ** 2

/** Watches the free space of a folder, for all who write into it at the same time. */
export class RoomForCommits {
  #unwatchedBytes = 0
  #isLeft = true

  constructor(readonly folder: string) {}

  /** Whether enough is left for commits. Call it before `bytes` are written. */
  isLeft(bytes = 0): boolean {
    this.#unwatchedBytes += bytes
    if (this.#isLeft && this.#unwatchedBytes < WATCHED_BYTES) return true
    this.#unwatchedBytes = 0
    const { bavail, bsize } = statfsSync(this.folder)
    return (this.#isLeft = bavail * bsize >= COMMIT_BYTES)
  }
}
