/** Slows bulk work down, so that requests find the disk and the processor free. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Shorter waits are saved up: timers are no finer than this. */
const MIN_WAIT_MILLIS = 4

/** Call it with what was just done, in bytes. Throws once `stopping` says so. */
export function paceOf(bytesPerSec: number, stopping: AbortSignal): (bytes: number) => Promise<void> {
  let due = performance.now()
  return async (bytes) => {
    stopping.throwIfAborted()
    const now = performance.now()
    due = Math.max(due, now) + (bytes / bytesPerSec) * 1000
    if (due - now >= MIN_WAIT_MILLIS) await sleep(due - now, undefined, { signal: stopping })
  }
}
