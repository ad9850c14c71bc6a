/** What `inTime` returns for work that is late. */
export const LATE = Symbol('late')

/**
 * Waits for work for `millis` at most. Returns what it resolves to, or `LATE`; rejects if it rejects. Work that is late
 * continues, and its failure is ignored. Without `ref`, the process may end while it waits.
 */
export async function inTime<T>(work: Promise<T>, millis: number, { ref = true } = {}): Promise<T | typeof LATE> {
  const { promise: late, resolve } = Promise.withResolvers<typeof LATE>()
  const timer = setTimeout(resolve, millis, LATE)
  if (!ref) timer.unref()
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for the end of work, whether it fails or not, for `millis` at most. Returns whether it has ended. */
export async function endsInTime(work: Promise<unknown>, millis: number): Promise<boolean> {
  const over = () => undefined
  return (await inTime(work.then(over, over), millis)) !== LATE
}
