/** Slows bulk work down, so that requests find the disk and the processor free. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Shorter waits are saved up: timers are no finer than this. */
const MIN_WAIT_MILLIS = 4

/** Called with the bytes that were just worked on, it waits until they fit the pace. Throws once it is told to stop. */
export type Pace = (bytes: number) => Promise<void>

export function paceOf(bytesPerSec: number, stopping: AbortSignal): Pace {
  let due = performance.now()
  return async (bytes) => {
    stopping.throwIfAborted()
    const now = performance.now()
    due = Math.max(due, now) + (bytes / bytesPerSec) * 1000
    if (due - now >= MIN_WAIT_MILLIS) await sleep(due - now, undefined, { signal: stopping })
  }
}

/** The share of the time that background work may hold the event loop. */
const BUSY_SHARE = 0.1
const MAX_REST_MILLIS = 1000

/**
 * Does pieces of work with rests between them, each in proportion to the work before it: on a slow disk it rests longer.
 * Throws once it is told to stop.
 */
export type Throttle = <T>(work: () => Promise<T>) => Promise<T>

export function throttle(stopping: AbortSignal): Throttle {
  let owedMillis = 0
  return async (work) => {
    stopping.throwIfAborted()
    if (owedMillis >= MIN_WAIT_MILLIS) {
      await sleep(Math.min(owedMillis, MAX_REST_MILLIS), undefined, { signal: stopping })
      owedMillis = 0
    }
    const started = performance.now()
    try {
      return await work()
    } finally {
      owedMillis += (performance.now() - started) * (1 / BUSY_SHARE - 1)
    }
  }
}
