/** Stands in for `node:fs/promises`: the same on the event loop's own thread, so that it ends where it began. */
import * as fs from 'node:fs'
import { held, takesAWhile } from './seams.ts'
import type { Folder } from './folder.ts'

export { constants } from 'node:fs'

type Sync<Name extends keyof typeof fs> = (typeof fs)[Name] extends (...given: infer Given) => infer Result
  ? (...given: Given) => Promise<Awaited<Result>>
  : never

/** `before` is called with the folder of blobs, and what is given. */
const promised = <Name extends keyof typeof fs>(
  name: Name,
  before?: (folder: Folder, ...paths: string[]) => void,
): Sync<Name> =>
  (async (...given: never[]) => {
    await takesAWhile()
    const folder = before && folderOf(given[0]!)
    if (folder) before!(folder, ...given)
    return (fs[name] as unknown as (...given: never[]) => unknown)(...given)
  }) as Sync<Name>

/** The folder in which files may be lost; null if the path is of another one. */
const folderOf = (path: string): Folder | null => held.folders.find((folder) => folder.has(path)) ?? null

export const access = promised('accessSync')
export const link = promised('linkSync')
export const mkdir = promised('mkdirSync', (folder, path) => {
  if (!fs.existsSync(path)) folder.made(path)
})
export const mkdtemp = promised('mkdtempSync')
export const readdir = promised('readdirSync')
export const readFile = promised('readFileSync')
export const realpath = promised('realpathSync')
export const rename = promised('renameSync', (folder, from, to) => folder.moves(from, to!))
export const rm = promised('rmSync', (folder, path) => folder.removes(path))
export const stat = promised('statSync')
export const unlink = promised('unlinkSync')
export const statfs = promised('statfsSync')
export const writeFile = promised('writeFileSync')

/** Files that are open: a process that is killed closes none. */
const descriptors = new Set<number>()

export async function open(path: string, flags: string, mode?: number) {
  await takesAWhile()
  const fd = fs.openSync(path, flags, mode)
  descriptors.add(fd)
  let isClosed = false
  const folder = folderOf(path)
  if (flags.includes('w')) folder?.made(path)
  return {
    fd,
    sync: async () => {
      await takesAWhile()
      folder?.synced(path)
      fs.fsyncSync(fd)
    },
    datasync: async () => {
      folder?.synced(path)
      fs.fdatasyncSync(fd)
    },
    stat: async () => fs.fstatSync(fd),
    truncate: async (size: number) => fs.ftruncateSync(fd, size),
    read: async (bytes: Uint8Array, start: number, count: number, at: number) => ({
      bytesRead: fs.readSync(fd, bytes, start, count, at),
    }),
    write: async (bytes: Uint8Array, start = 0, count = bytes.byteLength - start, at: number | null = null) => {
      await takesAWhile()
      folder?.written(path)
      return { bytesWritten: fs.writeSync(fd, bytes, start, count, at) }
    },
    writeFile: async (bytes: Uint8Array) => void fs.writeSync(fd, bytes),
    close: async () => {
      // Another file may have the number by now.
      if (isClosed) return
      isClosed = true
      descriptors.delete(fd)
      fs.closeSync(fd)
    },
  }
}

/** At the end of a world. */
export function closeLeft(): void {
  for (const fd of descriptors) fs.closeSync(fd)
  descriptors.clear()
}
