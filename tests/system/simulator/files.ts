/** Stands in for `node:fs/promises`: the same on the event loop's own thread, so that it ends where it began. */
import * as fs from 'node:fs'
import { takesAWhile } from './seams.ts'

export { constants } from 'node:fs'

type Sync<Name extends keyof typeof fs> = (typeof fs)[Name] extends (...given: infer Given) => infer Result
  ? (...given: Given) => Promise<Awaited<Result>>
  : never

const promised = <Name extends keyof typeof fs>(name: Name): Sync<Name> =>
  (async (...given: never[]) => {
    await takesAWhile()
    return (fs[name] as unknown as (...given: never[]) => unknown)(...given)
  }) as Sync<Name>

export const access = promised('accessSync')
export const link = promised('linkSync')
export const mkdir = promised('mkdirSync')
export const mkdtemp = promised('mkdtempSync')
export const readdir = promised('readdirSync')
export const readFile = promised('readFileSync')
export const realpath = promised('realpathSync')
export const rename = promised('renameSync')
export const rm = promised('rmSync')
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
  return {
    fd,
    sync: async () => {
      await takesAWhile()
      fs.fsyncSync(fd)
    },
    datasync: async () => fs.fdatasyncSync(fd),
    stat: async () => fs.fstatSync(fd),
    truncate: async (size: number) => fs.ftruncateSync(fd, size),
    read: async (bytes: Uint8Array, start: number, count: number, at: number) => ({
      bytesRead: fs.readSync(fd, bytes, start, count, at),
    }),
    write: async (bytes: Uint8Array, start = 0, count = bytes.byteLength - start, at: number | null = null) => {
      await takesAWhile()
      return { bytesWritten: fs.writeSync(fd, bytes, start, count, at) }
    },
    writeFile: async (bytes: Uint8Array) => void fs.writeSync(fd, bytes),
    close: async () => {
      if (descriptors.delete(fd)) fs.closeSync(fd)
    },
  }
}

/** At the end of a world. */
export function closeLeft(): void {
  for (const fd of descriptors) fs.closeSync(fd)
  descriptors.clear()
}
