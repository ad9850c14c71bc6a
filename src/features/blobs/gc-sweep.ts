/**
 * Deletes blobs that no record has pointed at for the time of grace.
 *
 * Rows first, then files.
 */
import { setImmediate } from 'node:timers/promises'
import type { Context } from '../../platform/context.ts'
import type { Sweep } from '../../platform/sweeps.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import { deleteExpired, findExpired, listRemovals, type ExpiredBlob } from './blob-store.ts'
import { removeBlobFiles } from './blob-upload.ts'

/** Rows of one transaction: while it runs nobody else writes. */
const PAGE_ROWS = 100

interface Pass {
  ctx: Context
  stopping: AbortSignal
  /** Blobs whose clock started then, or before, may go. */
  until: Millis
  report: { swept: number; errors: number }
}

export const gcSweep: Sweep = {
  name: 'blob-gc',
  intervalSecs: ({ blobs }) => blobs.gcIntervalSecs,
  counts: { swept: 'blob_gc_swept_total', errors: 'blob_gc_errors_total' },
  async run(ctx, stopping) {
    const startedAt = ctx.clock.now()
    // A clock that starts during the pass does not end in it, even without a grace.
    const until = Math.min(startedAt - ctx.config.blobs.tempTtlSecs * 1000, startedAt - 1)
    const pass: Pass = { ctx, stopping, until, report: { swept: 0, errors: 0 } }
    await finishRemovals(pass)
    await deleteAllExpired(pass)
    return pass.report
  },
}

/** Files whose rows went before a crash. */
async function finishRemovals({ ctx, stopping, report }: Pass): Promise<void> {
  for (let last = ''; ; ) {
    const cids = await listRemovals(ctx.db, last, PAGE_ROWS)
    if (cids.length === 0) return
    last = cids.at(-1)!
    stopping.throwIfAborted()
    try {
      await removeBlobFiles(ctx, cids)
    } catch (error) {
      report.errors++
      ctx.log.warn('files kept for the next pass', { error })
    }
  }
}

async function deleteAllExpired(pass: Pass): Promise<void> {
  const { ctx, stopping, until, report } = pass
  for (let last: ExpiredBlob | null = null; ; ) {
    const page: ExpiredBlob[] = await findExpired(ctx.db, until, last, PAGE_ROWS)
    if (page.length === 0) return
    last = page.at(-1)!
    for (const [did, blobs] of Map.groupBy(page, (blob) => blob.did)) {
      stopping.throwIfAborted()
      try {
        report.swept += await deleteBlobs(pass, did, blobs.map(({ cid }) => cid))
      } catch (error) {
        report.errors++
        ctx.log.warn('blobs kept for the next pass', { did, error })
      }
    }
    await setImmediate()
  }
}

async function deleteBlobs({ ctx, until }: Pass, did: Did, cids: readonly string[]): Promise<number> {
  const { deleted, removals } = await ctx.db.transaction((tx) => deleteExpired(tx, did, cids, until))
  await removeBlobFiles(ctx, removals)
  return deleted
}
