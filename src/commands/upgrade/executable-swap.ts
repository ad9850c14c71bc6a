/**
 * Replaces an executable, so that its name leads to a whole file at every instant: the old one or the new one.
 *
 * Files beside it: `.new` during the download, `.previous` to return to, `.lock` while an upgrade runs, and `.pending`
 * from the swap until the new executable has proved to work.
 */
import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import { lockFile } from '../../platform/files/directory-lock.ts'

export interface ExecutablePlace {
  /** The file itself, to which symbolic links lead. */
  path: string
  /** Where a new executable is downloaded to. */
  next: string
  previous: string
  /** Exists while it is undecided whether the new executable stays. */
  pending: string
}

/** Returns the places of an executable. Throws OperatorError if it is missing. */
export function placeOf(executable: string): ExecutablePlace {
  const path = realpathOf(executable)
  return { path, next: `${path}.new`, previous: `${path}.previous`, pending: `${path}.pending` }
}

/** Throws OperatorError if the executable cannot be replaced. */
export function requireWritable({ path }: ExecutablePlace): void {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new OperatorError(
      `${folder} cannot be written (${(error as NodeJS.ErrnoException).code}): run this command as a user who may, such as root. In a container, use the image of the new version instead`,
    )
  }
}

function realpathOf(executable: string): string {
  try {
    return realpathSync(executable)
  } catch {
    throw new OperatorError(`there is no executable ${executable}`)
  }
}

/** Run `act` while no other upgrade of this executable runs. Throws OperatorError if one does. */
export async function whileLocked<T>({ path }: ExecutablePlace, act: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const unlock = lockFile(lock, () => new OperatorError(`another upgrade of ${path} is running`))
  try {
    return await act()
  } finally {
    rmSync(lock, { force: true })
    unlock()
  }
}

/** Give the new executable the mode and owner of the old one. */
export function takeAfter({ path, next }: ExecutablePlace): void {
  const { mode, uid, gid } = statSync(path)
  if (process.getuid?.() === 0) chownSync(next, uid, gid)
  chmodSync(next, mode & 0o7777)
}

/**
 * Put the new executable in place of the old one, which is kept. With `isOnTrial`, the new one has to prove itself
 * until `settle`, even if this process is killed.
 */
export function swapIn({ path, next, previous, pending }: ExecutablePlace, isOnTrial: boolean): void {
  duplicate(path, previous)
  if (isOnTrial) writeFileSync(pending, '')
  renameSync(next, path)
  flush(dirname(path))
}

/** Put the previous executable in place again. It also stays under its own name. */
export function swapBack({ path, previous }: ExecutablePlace): void {
  duplicate(previous, path)
  flush(dirname(path))
}

/** Whether an earlier upgrade was killed before the new executable had proved to work. */
export const isOnTrial = ({ pending, previous }: ExecutablePlace): boolean =>
  existsSync(pending) && existsSync(previous)

/** Decide for the executable that is in place. */
export const settle = ({ pending }: ExecutablePlace): void => rmSync(pending, { force: true })

/** Give a file a second name, or make a copy where that is not possible. The file appears under it whole. */
function duplicate(from: string, to: string): void {
  const part = `${to}.part`
  rmSync(part, { force: true })
  try {
    linkSync(from, part)
  } catch {
    // Some file systems have no hard links.
    copyFileSync(from, part)
    chmodSync(part, statSync(from).mode & 0o7777)
    flush(part)
  }
  renameSync(part, to)
  // If both names belong to the same file, the rename did nothing.
  rmSync(part, { force: true })
}

/** Without this, a loss of power may lose a file's contents, or names in a folder. */
function flush(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
