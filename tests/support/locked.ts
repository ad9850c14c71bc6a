import { OperatorError } from '../../src/base/operator-error.ts'
import { lockDirectory } from '../../src/platform/files/directory-lock.ts'
import { until } from './until.ts'

/** How long another process may hold the lock: to build takes a few seconds on an idle machine. */
const MAX_MILLIS = 120_000

/** Does the work while no other process does work under the lock of this folder, which exists. */
export async function locked<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  let unlock = () => {}
  const isLocked = () => {
    try {
      unlock = lockDirectory(folder)
      return true
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      return false
    }
  }
  await until(isLocked, { maxPauseMillis: 100, maxMillis: MAX_MILLIS })
  try {
    return await work()
  } finally {
    unlock()
  }
}
