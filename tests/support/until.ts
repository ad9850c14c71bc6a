/** Waits for what happens outside of the test, such as the end of a connection. */
const MAX_MILLIS = 40_000
const MAX_PAUSE_MILLIS = 10

/**
 * Resolves when the condition holds. Fails if it does not hold in time. Looks often at first; `maxPauseMillis` 0 goes
 * on with that, for what must not be missed by much.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { maxPauseMillis = MAX_PAUSE_MILLIS, maxMillis = MAX_MILLIS } = {},
): Promise<void> {
  const deadline = performance.now() + maxMillis
  for (let tries = 0; !(await condition()); tries++) {
    if (performance.now() > deadline) throw new Error(`waited in vain for: ${condition}`)
    await Bun.sleep(Math.min(tries, maxPauseMillis))
  }
}

/**
 * Gives everything else in the process so many turns: to let it come as far as it does without the test, or to choose
 * one of many moments at which a server is killed.
 */
export async function eventLoopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Bun.sleep(0)
}
