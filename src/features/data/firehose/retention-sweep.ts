/**
 * Deletes old events, by age and by count. Deleted events are always a prefix of the log, and the newest event is kept.
 */
import { deleteInPieces, throttle } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { headSeq, lastSeqBefore, logLock, pruneEvents } from './event-log.ts'

/** Rows deleted in one transaction; the bound keeps writers from waiting long. */
const CHUNK_ROWS = 1000

export const retentionSweep: Sweep = {
  name: 'firehose-gc',
  destructive: true,
  intervalSecs: ({ firehose }) => firehose.gcIntervalSecs,
  counts: { swept: 'firehose_gc_swept_total' },
  async run(ctx, stopping) {
    const through = await watermark(ctx)
    const pruneSome = (limit: number) => ctx.db.transactionOn(logLock, (tx) => pruneEvents(tx, through, limit))
    return { swept: await deleteInPieces(throttle(stopping, ctx.busyShare), CHUNK_ROWS, pruneSome), errors: 0 }
  },
}

/** Events up to this number may be deleted. An event is deleted if either rule, by count or by age, says so. */
async function watermark({ config: { firehose }, db, clock }: Context): Promise<number> {
  const head = await headSeq(db)
  const byCount = firehose.logRetentionCount === 0 ? 0 : head - firehose.logRetentionCount
  const now = clock.now()
  const byAge =
    firehose.logRetentionSecs === 0 ? 0 : await lastSeqBefore(db, now - firehose.logRetentionSecs * 1000, now)
  return Math.min(Math.max(byCount, byAge), head - 1)
}
