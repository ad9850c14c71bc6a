import { statfs } from 'node:fs/promises'

/** Returns how many bytes a user without privileges can still write to the file system of a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
