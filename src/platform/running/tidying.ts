/** What is left to do after a change, or after an error. */
import type { Log } from './log.ts'

/**
 * Do what is left to be done after a change that was made, or an error that the caller throws. If it fails, it is only
 * logged, because the change stands, and the error may be the one that says that a change may still be made.
 */
export async function tidyUp({ log }: { log: Pick<Log, 'warn'> }, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.warn('could not tidy up', { error })
  }
}
