/** What is left to do after a change, or after an error. */
import type { Log } from './log.ts'

/**
 * Does what remains to be done after a change, or before the caller throws an error. If it fails, that is only logged:
 * the change stands, and nothing may replace the error, which may say that a change may still be made.
 */
export async function tidyUp({ log }: { log: Pick<Log, 'warn'> }, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.warn('could not tidy up', { error })
  }
}
