/**
 * Returns a function that makes something when it is first called, and keeps it. After a failure it tries again: a
 * promise that rejects is not kept.
 */
export function madeOnce<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => {
    if (made !== null) return made.value
    const value = make()
    made = { value }
    if (value instanceof Promise) value.catch(() => (made = null))
    return value
  }
}
