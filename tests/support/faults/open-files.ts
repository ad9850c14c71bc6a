/** Files that this process has open. */
import { readdirSync, readlinkSync } from 'node:fs'

const DESCRIPTORS = '/proc/self/fd'

/** Returns the path of each open descriptor, by its number. */
export const openFiles = (): Map<string, string> =>
  new Map(readdirSync(DESCRIPTORS).map((fd) => [fd, linkOf(`${DESCRIPTORS}/${fd}`)]))

/** The descriptor that read the folder is gone by now. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return ''
    throw error
  }
}
