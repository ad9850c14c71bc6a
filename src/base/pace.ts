/** Slows down bulk work, which leaves the disk and the processor free for requests. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Shorter waits are accumulated, because timers are no finer than this. */
const MIN_WAIT_MILLIS = 4

/**
 * Call it with the number of bytes just processed; it waits until the rate is met. Throws when `stopping` is aborted.
 */
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

/** Share of time that throttled work may occupy the event loop. */
export const BUSY_SHARE = 0.1
const MAX_REST_MILLIS = 1000

/**
 * Runs pieces of work with rests in between. Each rest is proportional to the work before it, which makes rests longer
 * on a slow disk. Throws when `stopping` is aborted.
 */
export type Throttle = <T>(work: () => Promise<T>) => Promise<T>

/** For work that someone waits for. */
export const unthrottled: Throttle = (work) => work()

/**
 * Deletes rows in pieces, until `deleteSome` finds none. A piece has at most `size` rows, and fewer if they are large.
 * Returns how many rows there were.
 */
export async function deleteInPieces(
  throttled: Throttle,
  size: number,
  deleteSome: (limit: number) => Promise<number>,
): Promise<number> {
  let total = 0
  for (let deleted = size; deleted > 0; total += deleted) deleted = await throttled(() => deleteSome(size))
  return total
}

export function throttle(stopping: AbortSignal, busyShare: number): Throttle {
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
      owedMillis += (performance.now() - started) * (1 / busyShare - 1)
    }
  }
}
