/** Checks whether this user may read the old server's files, which often belong to another user, such as root. */
import { accessSync, constants } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'

/** Throws `OperatorError` if this user may not read a file. A missing file is no fault. */
export const requireReadable = (path: string): void => requireAccess(path, constants.R_OK)

/** As `requireReadable`, for a folder and what is in it. */
export const requireOpen = (folder: string): void => requireAccess(folder, constants.R_OK | constants.X_OK)

function requireAccess(path: string, mode: number): void {
  try {
    accessSync(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return
    if (code !== 'EACCES' && code !== 'EPERM') throw error
    const user = process.getuid?.()
    throw new OperatorError(
      user === undefined
        ? `${path} may not be read by this process: give it a copy of the old folder that it may read`
        : `${path} may not be read by this process (user ${user}): copy the old folder, and give the copy to that user with "chown -R ${user}"`,
      { cause: error },
    )
  }
}
