/**
 * Brings the bucket up to date: uploads missing blobs, deletes copies of blobs without an owner.
 *
 * Rows and keys are walked in parallel, in ascending order, so memory holds one page of each. A key is deleted if two
 * complete passes in a row found no row for it, which protects blobs that are uploaded during a pass. Nothing is
 * deleted while there are no rows at all, which suggests a lost database.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import { concurrently } from '../../../base/concurrently.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Pace } from '../../../base/pace.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import { blobMirror, copyToMirror, type BlobMirror } from './blob-mirror.ts'
import { hasOwner, storedBlobs } from './blob-store.ts'
import { bucketDifferences } from './bucket-differences.ts'
import { blobFolder } from './open-storage.ts'
import { PAGE_ROWS, sweepPace } from './sweep-pace.ts'

const TRANSFERS_AT_ONCE = 4
/** Bytes that a request to the bucket counts as, in addition to its content. */
const TRANSFER_COST_BYTES = 128 * 1024
/** Most keys without a row that are remembered between passes; others wait for a later pass. */
const MAX_CANDIDATES = 100_000

/** Keys for which the last complete pass found no row. */
const candidates = perContext(() => ({ keys: new Set<string>() }))

interface Pass {
  ctx: Context
  stopping: AbortSignal
  mirror: BlobMirror
  pace: Pace
  report: { swept: number; errors: number; uploaded: number; deleted: number }
}

export const mirrorSweep: Sweep = {
  name: 'blob-mirror',
  maxPassSecs: 3 * DAY_SECS,
  intervalSecs: ({ blobMirror, blobs }) =>
    blobMirror.bucket === null || blobs.store === 's3' ? 0 : blobMirror.syncIntervalSecs,
  counts: { swept: 'blob_mirror_synced_total' },
  async run(ctx, stopping) {
    const report = { swept: 0, errors: 0, uploaded: 0, deleted: 0 }
    const mirror = blobMirror(ctx)
    if (mirror === null) {
      if (ctx.config.blobs.store === 's3') ctx.log.info('blob_mirror is ignored: the blobs themselves are in a bucket')
      return report
    }
    const pass: Pass = { ctx, stopping, mirror, pace: sweepPace(ctx, stopping), report }
    const { rows, keys, unknown } = await uploadMissing(pass)
    // Only now is the list of keys known to be complete.
    const before = candidates(ctx)
    if (rows === 0 && keys > 0) {
      ctx.log.error('the bucket has copies but the database lists no blobs; nothing will be deleted', { copies: keys })
      report.errors++
      before.keys.clear()
      return report
    }
    const due = unknown.filter((key) => before.keys.has(key))
    before.keys = new Set(unknown)
    await deleteUnowned(pass, due)
    return { ...report, swept: report.uploaded + report.deleted }
  },
}

/** Copy missing blobs. Returns the numbers of rows and keys, and the keys without a row. */
async function uploadMissing(pass: Pass): Promise<{ rows: number; keys: number; unknown: string[] }> {
  const { ctx, stopping, mirror, pace, report } = pass
  const found = { rows: 0, keys: 0, unknown: [] as string[] }
  const rows = storedBlobs(ctx.db, PAGE_ROWS)
  const objects = mirror.bucket.list(mirror.keyPrefix)
  const compared = bucketDifferences({ rows, objects, keyOf: (cid) => mirror.keyPrefix + cid, pace, tally: found })
  await concurrently(compared, TRANSFERS_AT_ONCE, async (difference) => {
    stopping.throwIfAborted()
    if (difference.kind === 'unknown') {
      if (found.unknown.length < MAX_CANDIDATES) found.unknown.push(difference.object.key)
      return
    }
    const { blob } = difference
    try {
      await pace(TRANSFER_COST_BYTES)
      if (await copyToMirror(ctx, mirror, blob, pace)) report.uploaded++
      else if (await hasOwner(ctx.db, blob.cid)) throw new Error('the file is missing or damaged')
    } catch (error) {
      stopping.throwIfAborted()
      report.errors++
      ctx.log.warn('blob not mirrored', { cid: blob.cid, error })
    }
  })
  return found
}

async function deleteUnowned({ ctx, mirror, pace, report }: Pass, keys: readonly string[]): Promise<void> {
  await concurrently(keys, TRANSFERS_AT_ONCE, async (key) => {
    await pace(TRANSFER_COST_BYTES)
    const cid = key.slice(mirror.keyPrefix.length)
    try {
      // An upload that relies on this copy has either written its row already, or looks for the copy after this. If
      // another machine has taken over, it may have an owner that is missing here: the transaction then fails.
      await blobFolder(ctx).alone(cid, async () => {
        if (await ctx.db.transaction((tx) => hasOwner(tx, cid))) return
        await mirror.bucket.delete(key)
        report.deleted++
      })
    } catch (error) {
      report.errors++
      ctx.log.warn('could not delete a copy from the mirror', { file: key, error })
    }
  })
}
