/** Marks expired codes, and deletes unconfirmed registrations. No decision depends on it: readers compare times. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { deleteShownClaimsBefore } from './agent-claim-page-store.ts'
import { deleteFinishedClaims, lapsedClaims } from './agent-claim-store.ts'
import { endClaim } from './agent-claims.ts'
import { deleteUnclaimedEvents, unclaimedEventAt } from './agent-event-store.ts'
import { abandonedRegistrations, deleteAbandoned } from './agent-registration-store.ts'

/** How long a finished code is recognised, and an expired registration kept. */
const KEPT_MILLIS = DAY_MILLIS
/** Most expired registrations that are kept. Older ones are deleted early. */
const MAX_ABANDONED = 10_000
/** How long events of unconfirmed registrations are kept, and how many. */
const UNCLAIMED_EVENT_MILLIS = 30 * DAY_MILLIS
const MAX_UNCLAIMED_EVENTS = 100_000
/** Rows per transaction. */
const PIECE = 100

export const agentClaimSweep: Sweep = {
  name: 'agent-claim-sweep',
  destructive: true,
  counts: { swept: 'agent_claim_sweep_swept_total' },
  intervalSecs: ({ agentAuth }) => agentAuth.claimSweepIntervalSecs,
  async run(ctx, stopping) {
    const { db, clock } = ctx
    const now = clock.now()
    const cutoff = now - UNCLAIMED_EVENT_MILLIS
    const surplus = (await unclaimedEventAt(db, MAX_UNCLAIMED_EVENTS)) ?? cutoff
    const inPieces = (piece: (tx: Tx) => Promise<number>) => repeated(ctx, stopping, piece)
    return {
      swept: await inPieces(async (tx) => {
        const lapsed = await lapsedClaims(tx, now, PIECE)
        for (const claim of lapsed) await endClaim(tx, claim, now)
        return lapsed.length
      }),
      errors: 0,
      abandoned:
        (await inPieces(async (tx) => forgetAbandoned(tx, { before: now - KEPT_MILLIS }))) +
        (await inPieces(async (tx) => forgetAbandoned(tx, { before: now, keep: MAX_ABANDONED }))),
      claims: await inPieces((tx) => deleteFinishedClaims(tx, now - KEPT_MILLIS, PIECE)),
      events: await inPieces((tx) => deleteUnclaimedEvents(tx, Math.max(cutoff, surplus), PIECE)),
      pages: await deleteShownClaimsBefore(db, now),
    }
  },
}

async function forgetAbandoned(tx: Tx, which: { before: number; keep?: number }): Promise<number> {
  const ids = (await abandonedRegistrations(tx, { ...which, limit: PIECE })).map(({ id }) => id)
  return ids.length === 0 ? 0 : deleteAbandoned(tx, ids)
}

/**
 * Repeat a piece of work, each time in a transaction of its own, until it changes fewer rows than `PIECE`. Returns how
 * many it changed in all.
 */
async function repeated({ db }: Context, stopping: AbortSignal, piece: (tx: Tx) => Promise<number>): Promise<number> {
  let all = 0
  for (;;) {
    stopping.throwIfAborted()
    const changed = await db.transaction(piece)
    all += changed
    if (changed < PIECE) return all
  }
}
