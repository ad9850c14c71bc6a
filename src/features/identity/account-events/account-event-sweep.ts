/** Deletes account events after 90 days, and the oldest events of a kind if an account has thousands of that kind. */
import { setImmediate } from 'node:timers/promises'
import { DAY_SECS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { countEvents, crowdedEvents, deleteEventsOfKind, deleteEventsUntil, oldestKept } from './account-event-store.ts'

const BATCH = 1000
/** Accounts per counting query. Counting the events of all accounts at once would take a second per million rows. */
const ACCOUNTS = 100
/**
 * Events of one kind that an account keeps. A client can add an unlimited number by signing in under another program
 * name each time, or by deactivating and activating repeatedly. Kinds do not crowd out each other.
 */
const MAX_OF_KIND = 5000

export const accountEventSweep: Sweep = {
  name: 'account-events',
  destructive: true,
  intervalSecs: () => DAY_SECS,
  async run(ctx, stopping) {
    const until = oldestKept(ctx.clock.now())
    const deleted = await inBatches((limit) => deleteEventsUntil(ctx.db, until, limit))
    const report = { deleted, crowded: 0 }
    for (let after = ''; ;) {
      const accounts = await countEvents(ctx.db, after, ACCOUNTS)
      for (const { did, count } of accounts) if (count > MAX_OF_KIND) report.crowded += await thin(ctx, did)
      if (accounts.length < ACCOUNTS) return report
      after = accounts.at(-1)!.did
      await setImmediate()
      stopping.throwIfAborted()
    }
  },
}

async function thin({ db }: Context, did: Did): Promise<number> {
  let deleted = 0
  for (const crowd of await crowdedEvents(db, did, MAX_OF_KIND))
    deleted += await inBatches((limit) => deleteEventsOfKind(db, did, { ...crowd, limit }))
  return deleted
}

async function inBatches(deleteSome: (limit: number) => Promise<number>): Promise<number> {
  let total = 0
  for (let deleted = BATCH; deleted === BATCH; total += deleted) deleted = await deleteSome(BATCH)
  return total
}
