import { statfs } from 'node:fs/promises'

/** What stays free for everything else while something large is written. */
const RESERVED_BYTES = 512 * 1024 ** 2
/** Bytes of something large after which its writer looks at the room again. */
export const CHECKED_BYTES = 64 * 1024 ** 2

/** Whether the file system of a folder has the reserve left after another `bytes`. */
export const hasRoomFor = async (folder: string, bytes: number): Promise<boolean> =>
  (await freeBytesOf(folder)) >= bytes + RESERVED_BYTES

/** Returns how many bytes a user without privileges can still write to the file system of a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
