/** Waits for a condition of the outside world, such as the end of a connection. */
const MAX_MILLIS = 20_000
const PAUSE_MILLIS = 10

/** Resolves when the condition holds. Fails if it does not hold in time. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + MAX_MILLIS; !(await condition());) {
    if (performance.now() > deadline) throw new Error(`waited in vain for: ${condition}`)
    await Bun.sleep(PAUSE_MILLIS)
  }
}
