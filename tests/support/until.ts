/** Waits for what happens outside of the test, such as the end of a connection. */
const MAX_MILLIS = 40_000
const MAX_PAUSE_MILLIS = 100
/** Part of the time waited so far that passes before the next look, which may be a request to each of three nodes. */
const PAUSE_SHARE = 0.05

/**
 * Resolves when the condition holds. Fails if it does not hold in time. Looks often at first; `maxPauseMillis` 0 goes
 * on with that, for what must not be missed by much.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { maxPauseMillis = MAX_PAUSE_MILLIS, maxMillis = MAX_MILLIS } = {},
): Promise<void> {
  const began = performance.now()
  for (let tries = 0; !(await condition()); tries++) {
    const waited = performance.now() - began
    if (waited > maxMillis) throw new Error(`waited in vain for: ${condition}`)
    await Bun.sleep(Math.min(Math.max(Math.min(tries, 10), waited * PAUSE_SHARE), maxPauseMillis))
  }
}

/**
 * Gives everything else in the process so many turns: to let it come as far as it does without the test, or to choose
 * one of many moments at which a server is killed.
 */
export async function eventLoopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Bun.sleep(0)
}
