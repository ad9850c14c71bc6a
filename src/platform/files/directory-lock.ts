/**
 * One process per data directory. The lock is SQLite's own on a file that holds nothing, so that the system releases it
 * however the process ends: there is no stale lock to remove by hand.
 */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'

export const LOCK_FILE = 'holdfast.lock'

/**
 * Lock the directory. Returns the function that unlocks it. Throws `OperatorError` if another process holds the lock.
 */
export function lockDirectory(dataDir: string): () => void {
  const connection = new Database(join(dataDir, LOCK_FILE), { create: true })
  try {
    connection.run('BEGIN EXCLUSIVE')
  } catch (error) {
    connection.close()
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error
    throw new OperatorError(
      `${dataDir} is in use by another process: stop that process, or set data_dir to another folder`,
    )
  }
  return () => connection.close()
}
