/**
 * Work on items as they come, at most `limit` at a time. Nothing more is taken once the source or a piece of work has
 * failed; what runs is waited for, and the first fault is thrown.
 */
export async function concurrently<T>(items: AsyncIterable<T>, limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const source = items[Symbol.asyncIterator]()
  let failed = false
  const worker = async () => {
    try {
      while (!failed) {
        const next = await source.next()
        if (next.done) return
        await work(next.value)
      }
    } catch (error) {
      failed = true
      throw error
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: limit }, worker))
  await source.return?.()
  const fault = ends.find((end) => end.status === 'rejected')
  if (fault) throw fault.reason
}
