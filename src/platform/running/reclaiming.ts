/**
 * Takes over what other nodes leave behind: on a cluster, rows that a node held when it died are free for the others.
 * Every node looks from time to time, because any of them may be the last one.
 */
import type { Log } from './log.ts'
import { outsideRequests } from './request-scope.ts'

const INTERVAL_MILLIS = 3000

/** Call each of `reclaims` every few seconds. Returns the function that stops it, and waits for those in progress. */
export function startReclaiming(log: Log, reclaims: readonly (() => Promise<void>)[]): () => Promise<void> {
  let running: Promise<void> | null = null
  const look = async () => {
    for (const reclaim of reclaims)
      await reclaim().catch((error: unknown) => log.warn('what other nodes left behind could not be looked for', { error }))
    running = null
  }
  const timer = outsideRequests(() => setInterval(() => (running ??= look()), INTERVAL_MILLIS))
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
  }
}
