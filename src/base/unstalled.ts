/** Thrown when a source delivers nothing for too long. */
export class Stalled extends Error {}

/** Passes on the items of a source. Throws `Stalled` if an item does not arrive within `millis` of being asked for. */
export async function* unstalled<T>(source: AsyncIterable<T>, millis: number): AsyncGenerator<T> {
  const pieces = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(new Stalled(`no data for ${millis} ms`)), millis)
      const piece = await Promise.race([pieces.next(), late]).finally(() => clearTimeout(timer))
      if (piece.done) return
      yield piece.value
    }
  } finally {
    // Not awaited: a stalled source only ends after its next item has arrived.
    void pieces.return?.().catch(() => undefined)
  }
}
