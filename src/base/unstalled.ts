/** The source stood still. */
export class Stalled extends Error {}

/** What a source gives, as long as each piece comes within a time after it was asked for. Throws `Stalled`. */
export async function* unstalled<T>(source: AsyncIterable<T>, millis: number): AsyncGenerator<T> {
  const pieces = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { promise: late, reject } = Promise.withResolvers<never>()
      const timer = setTimeout(() => reject(new Stalled(`nothing came for ${millis} ms`)), millis)
      const piece = await Promise.race([pieces.next(), late]).finally(() => clearTimeout(timer))
      if (piece.done) return
      yield piece.value
    }
  } finally {
    // Not waited for: a source that stands still ends when its next piece has come.
    void pieces.return?.().catch(() => undefined)
  }
}
