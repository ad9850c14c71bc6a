/**
 * Finds out whether a reference PDS uses its folder.
 *
 * A process that has a database open in its log mode holds a lock on the file and one on the index of the log beside
 * it. Linux lists all locks, but in a container only those of its own processes. Where they are not all listed, an
 * index of the log means that the database is in use, because the last process that closes it removes the index. Files
 * that change while they are read are found by `stampsOf`.
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'

const LOCKS = '/proc/locks'
const PROCESSES = '/proc/self/ns/pid'
/** The namespace that shows the processes of the whole machine. Linux, include/linux/proc_ns.h: PROC_PID_INIT_INO. */
const ALL_PROCESSES = 'pid:[4026531836]'

/** Throws `OperatorError` if a process has one of the databases open. */
export function refuseUsed(paths: readonly string[]): void {
  const locked = lockedInodes()
  for (const path of paths) {
    const [database, index] = [path, `${path}-shm`].map((each) => statSync(each, { throwIfNoEntry: false })?.ino)
    if (database === undefined || index === undefined) continue
    if (locked === null)
      throw new OperatorError(
        `${path} may be in use, as ${path}-shm is there: stop the old server. If it was killed, start it and stop it once`,
      )
    if (locked.has(database) && locked.has(index))
      throw new OperatorError(`${path} is in use: stop the old server, or name a copy of its folder`)
  }
}

/** Inodes on which any process of the machine holds a lock; null if the system does not list them all. */
function lockedInodes(): Set<number> | null {
  try {
    if (readlinkSync(PROCESSES) !== ALL_PROCESSES) return null
    const lines = readFileSync(LOCKS, 'utf8').split('\n')
    return new Set(lines.flatMap((line) => /\s[\da-f]+:[\da-f]+:(\d+)\s/.exec(line)?.[1] ?? []).map(Number))
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return null
    throw error
  }
}

/** Size and time of change of files, as one text. Another text later means that they have changed. */
export const stampsOf = (paths: readonly string[]): string =>
  paths
    .flatMap((path) => [path, `${path}-wal`])
    .map((path) => statSync(path, { throwIfNoEntry: false }))
    .map((stats) => (stats === undefined ? '-' : `${stats.size} ${stats.mtimeMs}`))
    .join(', ')
