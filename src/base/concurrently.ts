/**
 * Process items as they arrive, at most `limit` at a time. When the source or one item fails, no further items are
 * taken; work in progress is awaited, and then the first error is thrown.
 */
export async function concurrently<T>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
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
