/**
 * Deletes the oldest events of agents that have done very much: the record is kept for as long as the account, and an
 * agent that writes and deletes again and again would let it grow forever. Events that say how an agent began or ended
 * stay.
 */
import { setImmediate } from 'node:timers/promises'
import { DAY_SECS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteUsesUntil, newestSurplus } from './agent-event-store.ts'

/** Most events of a registration that are kept, about 60 MB. The limits of an account allow 25,000 in a day. */
const MAX_EVENTS = 250_000
/** Registrations whose events are counted in one turn of the event loop. */
const PAGE_AGENTS = 10
const BATCH = 1000

export const agentEventSweep: Sweep = {
  name: 'agent-events',
  intervalSecs: () => DAY_SECS,
  run: (ctx, stopping) => thinEvents(ctx, stopping, MAX_EVENTS),
}

export async function thinEvents({ db }: Context, stopping: AbortSignal, keep: number): Promise<{ deleted: number }> {
  const report = { deleted: 0 }
  for (let after = ''; ;) {
    const page = await newestSurplus(db, after, { keep, limit: PAGE_AGENTS })
    for (const { id, surplus } of page)
      for (let deleted = BATCH; surplus !== null && deleted === BATCH; report.deleted += deleted) {
        stopping.throwIfAborted()
        deleted = await deleteUsesUntil(db, id, surplus, BATCH)
      }
    if (page.length < PAGE_AGENTS) return report
    await setImmediate()
    stopping.throwIfAborted()
    after = page.at(-1)!.id
  }
}
