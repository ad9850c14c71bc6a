/**
 * Before the port opens, fetches blobs whose file is missing or truncated from the mirror. Failures are logged, and the
 * start continues.
 */
import { concurrently } from '../../../base/concurrently.ts'
import type { Context } from '../../../platform/context.ts'
import { blobMirror, restoreFromMirror } from './blob-mirror.ts'
import type { StoredBlob } from './blob-storage.ts'
import { storedBlobs } from './blob-store.ts'
import { blobFolder } from './open-storage.ts'

const PAGE_ROWS = 1000
const TRANSFERS_AT_ONCE = 4
const BLOBS_PER_PROGRESS_LINE = 1000
/** After this many failures in a row the bucket counts as down, and the start does not wait for every blob to fail. */
const MAX_FAILURES_IN_A_ROW = 8

export async function restoreMissing(ctx: Context): Promise<void> {
  const mirror = blobMirror(ctx)
  if (mirror === null) return
  const tally = { missing: 0, restored: 0 }
  let failuresInARow = 0
  await concurrently(missingBlobs(ctx), TRANSFERS_AT_ONCE, async (blob) => {
    if (failuresInARow >= MAX_FAILURES_IN_A_ROW) return
    if (++tally.missing % BLOBS_PER_PROGRESS_LINE === 0) ctx.log.info('restoring blobs from the mirror', tally)
    try {
      const outcome = await restoreFromMirror(ctx, mirror, blob)
      failuresInARow = 0
      if (outcome === 'restored') tally.restored++
      else ctx.log.error('blob not restored', { cid: blob.cid, outcome })
    } catch (error) {
      ctx.log.error('blob not restored', { cid: blob.cid, error })
      if (++failuresInARow === MAX_FAILURES_IN_A_ROW)
        ctx.log.error('the mirror does not respond; starting without the missing blobs')
    }
  })
  if (tally.missing > 0) ctx.log.info('blobs restored from the mirror', tally)
}

async function* missingBlobs(ctx: Context): AsyncGenerator<StoredBlob> {
  for await (const page of storedBlobs(ctx.db, PAGE_ROWS)) {
    const sizes = await Promise.all(page.map(({ cid }) => blobFolder(ctx).sizeOf(cid)))
    yield* page.filter(({ size }, i) => sizes[i] !== size)
  }
}
