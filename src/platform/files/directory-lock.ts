/**
 * One process per data directory. The lock is SQLite's own on a file that holds nothing, so that the system releases it
 * however the process ends: there is no stale lock to remove by hand.
 */
import { Database } from 'bun:sqlite'
import { closeSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'

export const LOCK_FILE = 'holdfast.lock'

/**
 * Lock the directory. Returns the function that unlocks it. Throws `OperatorError` if another process holds the lock.
 */
export const lockDirectory = (dataDir: string): (() => void) =>
  lockFile(
    join(dataDir, LOCK_FILE),
    `${dataDir} is in use by another process: stop that process, or set data_dir to another folder`,
  )

/**
 * Lock a file that holds nothing, and is created if it is missing. The process that holds the lock may delete the file.
 * Returns the function that unlocks it. Throws `OperatorError` with `fault` if another process holds the lock.
 */
export function lockFile(path: string, fault: string): () => void {
  closeSync(openSync(path, 'a', 0o600))
  const ino = statSync(path, { throwIfNoEntry: false })?.ino
  const connection = new Database(path, { create: true })
  try {
    connection.run('BEGIN EXCLUSIVE')
    // Meanwhile the former holder may have deleted the file that this process has locked.
    if (statSync(path, { throwIfNoEntry: false })?.ino === ino) return () => connection.close()
  } catch (error) {
    connection.close()
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error
    throw new OperatorError(fault)
  }
  connection.close()
  throw new OperatorError(fault)
}
