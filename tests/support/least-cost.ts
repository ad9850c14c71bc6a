import type { Database } from '../../src/platform/database/database.ts'

const TRIES = 5

/**
 * Returns how many statements the action takes: the least of several tries, because work of the server's own may
 * coincide with some of them. The action has to cost the same each time, once `prepare` has been done before it.
 */
export async function leastCost(
  { counters }: Pick<Database, 'counters'>,
  action: () => Promise<unknown>,
  prepare: () => unknown = () => {},
): Promise<number> {
  let least = Infinity
  for (let tries = 0; tries < TRIES; tries++) {
    await prepare()
    const before = counters.statements
    await action()
    least = Math.min(least, counters.statements - before)
  }
  return least
}
