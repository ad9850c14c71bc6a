/** Stands in for `node:fs/promises`: the same on the event loop's own thread, so that it ends where it began. */
import * as fs from 'node:fs'

export { constants } from 'node:fs'

type Sync<Name extends keyof typeof fs> = (typeof fs)[Name] extends (...given: infer Given) => infer Result
  ? (...given: Given) => Promise<Awaited<Result>>
  : never

const promised = <Name extends keyof typeof fs>(name: Name): Sync<Name> =>
  (async (...given: never[]) => (fs[name] as unknown as (...given: never[]) => unknown)(...given)) as Sync<Name>

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
export const statfs = promised('statfsSync')
export const writeFile = promised('writeFileSync')

export async function open(path: string, flags: string) {
  const fd = fs.openSync(path, flags)
  return {
    fd,
    sync: async () => fs.fsyncSync(fd),
    datasync: async () => fs.fdatasyncSync(fd),
    stat: async () => fs.fstatSync(fd),
    write: async (bytes: Uint8Array) => ({ bytesWritten: fs.writeSync(fd, bytes) }),
    writeFile: async (bytes: Uint8Array) => void fs.writeSync(fd, bytes),
    close: async () => fs.closeSync(fd),
  }
}
