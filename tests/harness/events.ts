/** Events that belong to no repository, put into the log of a running server. */
import { headSeq } from '../../src/features/firehose/event-log.ts'
import { sequenceEvents, type RepoEvent } from '../../src/features/firehose/firehose.ts'
import type { TestPds } from './pds.ts'

/** Append events in one transaction. Returns their numbers, in order. */
export function sequence({ ctx }: TestPds, ...events: RepoEvent[]): Promise<number[]> {
  return ctx.db.transaction(async (tx) => {
    await sequenceEvents(ctx, tx, events)
    const last = await headSeq(tx)
    return events.map((_, i) => last - events.length + 1 + i)
  })
}
