/** Events that belong to no repository, put into the log of a running server. */
import { SQL } from 'bun'
import { headSeq } from '../../../src/features/data/firehose/event-log.ts'
import { unnumberedEvents } from '../../../src/features/data/firehose/sequencer-store.ts'
import { EVENT_NUMBERS, sequenceEvents, type RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import type { TestPds } from '../servers/pds.ts'
import type { Subscriber } from './subscriber.ts'
import { until } from '../until.ts'

/** Waits until every event that is committed by now has a number, which takes a moment on PostgreSQL. */
export const allNumbered = ({ ctx }: Pick<TestPds, 'ctx'>): Promise<void> =>
  until(async () => (await unnumberedEvents(ctx.db)).count === 0)

/** Until the end of the block, no event of the cluster gets a number: batches of numbers wait for this row. */
export async function holdNumbers(databaseUrl: string): Promise<AsyncDisposable> {
  const connection = new SQL({ adapter: 'postgres', url: databaseUrl, max: 1 })
  await connection.unsafe('BEGIN')
  await connection.unsafe('SELECT 1 FROM lease WHERE name = $1 FOR UPDATE', [EVENT_NUMBERS])
  return { [Symbol.asyncDispose]: () => connection.close({ timeout: 0 }) }
}

/** Append events in one transaction. Returns their numbers, in order, if no others are written meanwhile. */
export async function sequence(pds: TestPds, ...events: RepoEvent[]): Promise<number[]> {
  const { ctx } = pds
  const last = await ctx.db.transaction(async (tx) => {
    await sequenceEvents(ctx, tx, events)
    return headSeq(tx)
  })
  await allNumbered(pds)
  const head = ctx.db.cluster === null ? last : await headSeq(ctx.db)
  return events.map((_, i) => head - events.length + 1 + i)
}

/** Waits until a subscriber who follows from the start has seen every event that is committed by now. */
export async function allSeen(pds: Pick<TestPds, 'ctx'>, subscriber: Subscriber): Promise<void> {
  await allNumbered(pds)
  const head = await headSeq(pds.ctx.db)
  await subscriber.untilSeen((messages) => head === 0 || (messages.at(-1)?.body.seq ?? 0) >= head)
}
