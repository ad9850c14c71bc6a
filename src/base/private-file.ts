/**
 * Files that only their owner may read. Not in the module of sealed files: the server seals none, and need not load the
 * library that seals them.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { onDisk } from './on-disk.ts'
import { OperatorError } from './operator-error.ts'

/**
 * Writes a file that only its owner may read, and flushes it and its folder. Throws OperatorError if it exists, unless
 * it may be replaced.
 */
export function writePrivately(path: string, content: Uint8Array | string, { replace }: { replace: boolean }): void {
  if (!replace && existsSync(path)) throw new OperatorError(`${path} already exists`)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`
  try {
    writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true })
    if (replace) renameSync(temporary, path)
    else linkSync(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new OperatorError(`${path} already exists`, { cause: error })
    throw onDisk(error, path)
  } finally {
    rmSync(temporary, { force: true })
  }
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

/** The permissions of all users except the owner. */
const OTHERS = 0o077

/** Read a secret. Returns null if there is no such file. Throws OperatorError if others may read it. */
export function readPrivately(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return null
  // Windows has no such permissions.
  if (process.platform !== 'win32' && (found.mode & OTHERS) !== 0)
    throw new OperatorError(`other users of this machine can read ${path}: run "chmod 600" on it`)
  return readFileSync(path, 'utf8')
}
