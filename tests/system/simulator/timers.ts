/** Stands in for `node:timers/promises`. */
import { after } from './seams.ts'

interface Options {
  signal?: AbortSignal
}

export function setTimeout<T>(millis = 0, value?: T, { signal }: Options = {}): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      timer.clear()
      reject(new DOMException('The operation was aborted', 'AbortError'))
    }
    const timer = after(millis, () => {
      signal?.removeEventListener('abort', aborted)
      resolve(value)
    })
    if (signal?.aborted) aborted()
    else signal?.addEventListener('abort', aborted, { once: true })
  })
}

export const setImmediate = <T>(value?: T): Promise<T | undefined> => setTimeout(0, value)
