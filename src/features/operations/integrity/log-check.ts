/**
 * Checks the event log in the order of its numbers: each event by itself, and whether the events of a repository follow
 * one another. Whatever a subscriber would notice is found here first.
 */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { missingInList, wholeEventsAfter } from '../../data/firehose/firehose.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { checkEvent, type StateInEvent } from '../../../protocol/event-check.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Throttle } from '../../../base/pace.ts'

const page = { maxEvents: 100, maxBytes: 512 * 1024 }
/** Repositories whose last state is remembered. If there are more, not every event is compared with the one before. */
const MAX_REMEMBERED = 20_000

type LastState = Pick<StateInEvent, 'rev'> & { data: string }

/** The position of the check, and the last state of each repository. A restart forgets both. */
const progress = perContext(() => ({ seq: -1, last: new BoundedCache<LastState>(MAX_REMEMBERED) }))

/** Check the events that follow a number. Returns the last number, and the faults; null if there are no more events. */
export async function checkEvents(
  ctx: Context,
  after: number,
  throttled: Throttle,
): Promise<{ seq: number; found: { did: Did; fault: string }[] } | null> {
  const known = progress(ctx)
  // Another node may have checked the events in between, or the round has started over.
  if (known.seq !== after) known.last = new BoundedCache(MAX_REMEMBERED)
  const events = await throttled(() => wholeEventsAfter(ctx.db, after, page))
  if (events.length === 0) return null
  const found: { did: Did; fault: string }[] = []
  const unlisted = new Set(
    ctx.db.dialect.name === 'sqlite' ? await throttled(() => missingInList(ctx.db, after, events.at(-1)!.seq)) : [],
  )
  for (const event of events) {
    const checked = await throttled(() => checkEvent(event))
    const { did, seq } = event
    const blame = (fault: string) => found.push({ did, fault: `event ${seq}: ${fault}` })
    if (unlisted.has(seq)) blame('it is not in the list of the events of its account')
    if (!checked.ok) {
      blame(checked.fault)
      known.last.delete(did)
    } else if (checked.state !== null) {
      const { state } = checked
      const before = known.last.get(did)
      if (before !== undefined && event.type === 'commit') {
        if (state.since !== before.rev)
          blame(`it follows revision ${state.since}, and the event before it has ${before.rev}`)
        else if (state.prevData && state.prevData.toString() !== before.data)
          blame('it follows another tree than that of the event before it')
      }
      known.last.set(did, { rev: state.rev, data: state.data.toString() })
    } else if (event.type === 'account') known.last.delete(did)
  }
  known.seq = events.at(-1)!.seq
  return { seq: known.seq, found }
}
