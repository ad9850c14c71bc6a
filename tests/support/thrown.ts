/**
 * How a promise was rejected, without the runner's `rejects`: that waits in an event loop of its own, which sleeps for
 * up to a second in each turn that nothing else wakes.
 */

/** For `toThrow`: a function that throws what the promise was rejected with, or nothing if it was not. */
export async function thrownBy(promise: PromiseLike<unknown>): Promise<() => void> {
  try {
    await promise
  } catch (error) {
    return () => {
      throw error
    }
  }
  return () => {}
}

/** What the promise was rejected with. Throws if it was not. */
export async function errorOf(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('the promise was not rejected')
}
