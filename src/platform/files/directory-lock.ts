/**
 * Permits one process per data directory. The lock is one of SQLite's, on an empty file, so that the system releases it
 * however the process ends: there is no stale lock to remove by hand.
 */
import { Database } from 'bun:sqlite'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import { explained } from './system-faults.ts'

export const LOCK_FILE = 'holdfast.lock'

export interface LockHolder {
  pid: number
  /** Its command line. */
  words: readonly string[]
}

export class DirectoryInUse extends OperatorError {
  constructor(readonly dataDir: string) {
    super(`${dataDir} is in use by another process: stop that process, or set data_dir to another folder`)
  }

  /** Returns the process that holds the lock; null if the system does not tell: only Linux does. */
  holder(): LockHolder | null {
    if (process.platform !== 'linux') return null
    try {
      const { ino } = statSync(join(this.dataDir, LOCK_FILE))
      const locks = readFileSync('/proc/locks', 'utf8')
        .split('\n')
        .map((line) => line.split(/ +/))
      const held = locks.find(
        ([, kind, , access, , place]) => kind === 'POSIX' && access === 'WRITE' && place?.endsWith(`:${ino}`),
      )
      if (held === undefined) return null
      const pid = Number(held[4])
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
      return { pid, words }
    } catch (error) {
      // The holder has ended meanwhile, or this user may not read its command line.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
      return null
    }
  }
}

/**
 * Lock the directory. Returns the function that unlocks it. Throws `DirectoryInUse` if another process holds the lock.
 */
export const lockDirectory = (dataDir: string): (() => void) =>
  lockFile(join(dataDir, LOCK_FILE), () => new DirectoryInUse(dataDir))

/**
 * Lock a file that holds nothing, and is created if it is missing. The process that holds the lock may delete the file.
 * Returns the function that unlocks it. Throws `fault` if another process holds the lock.
 */
export function lockFile(path: string, fault: () => OperatorError): () => void {
  closeSync(openSync(path, 'a', 0o600))
  const ino = statSync(path, { throwIfNoEntry: false })?.ino
  const connection = new Database(path, { create: true })
  try {
    connection.run('BEGIN EXCLUSIVE')
    // Meanwhile the former holder may have deleted the file that this process has locked.
    if (statSync(path, { throwIfNoEntry: false })?.ino === ino) return () => connection.close()
  } catch (error) {
    connection.close()
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw explained(error, { path, folder: dirname(path) })
    throw fault()
  }
  connection.close()
  throw fault()
}
