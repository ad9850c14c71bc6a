/**
 * Verifies all blobs: hashes every file, and looks for rows without files and files without rows.
 *
 * A damaged or missing file is replaced by the mirror's copy if that copy is valid. A file that nobody owns is only
 * reported, because it may be the last copy of a blob.
 */
import type { Context } from '../../platform/context.ts'
import type { Pace } from '../../base/pace.ts'
import type { Sweep } from '../../platform/running/sweeps.ts'
import { blobFiles } from './blob-files.ts'
import { blobMirror, restoreFromMirror } from './blob-mirror.ts'
import { hasOwner, isDueForRemoval, ownedAmong, storedBlobs, type StoredBlob } from './blob-store.ts'
import { cidQueue } from './blob-upload.ts'
import { FILE_COST_BYTES, PAGE_ROWS, ROW_COST_BYTES, sweepPace } from './sweep-pace.ts'

/** Older unfinished uploads belong to a process that has ended. */
const STALE_UPLOAD_MILLIS = 3_600_000

interface Pass {
  ctx: Context
  stopping: AbortSignal
  pace: Pace
  report: { swept: number; errors: number; flagged: number; healed: number; stale: number }
}

export const scrubSweep: Sweep = {
  name: 'blob-scrub',
  destructive: true,
  intervalSecs: ({ blobScrub }) => blobScrub.intervalSecs,
  counts: { flagged: 'blob_scrub_flagged_total', healed: 'blob_scrub_healed_total' },
  async run(ctx, stopping) {
    const report = { swept: 0, errors: 0, flagged: 0, healed: 0, stale: 0 }
    const pass: Pass = { ctx, stopping, pace: sweepPace(stopping), report }
    for await (const page of storedBlobs(ctx.db, PAGE_ROWS)) {
      for (const blob of page) {
        stopping.throwIfAborted()
        await scrubBlob(pass, blob)
      }
    }
    for await (const names of blobFiles(ctx).names(PAGE_ROWS)) await flagUnowned(pass, names)
    report.stale = await blobFiles(ctx).clearIncoming(ctx.clock.now() - STALE_UPLOAD_MILLIS)
    return { ...report, swept: report.flagged + report.healed }
  },
}

async function scrubBlob({ ctx, stopping, pace, report }: Pass, blob: StoredBlob): Promise<void> {
  const { cid, size } = blob
  try {
    await pace(FILE_COST_BYTES)
    const content = await blobFiles(ctx).contentOf(cid, pace)
    if (content?.cid === cid && content.size === size) return
    if (!(await hasOwner(ctx.db, cid))) return
    if (await heal(ctx, blob)) {
      report.healed++
      ctx.log.warn('blob file replaced by the copy in the mirror', { cid })
    } else {
      report.flagged++
      ctx.log.error(content === null ? 'blob file is missing' : 'blob file is damaged', { cid })
    }
  } catch (error) {
    stopping.throwIfAborted()
    // The bucket, or the disk under one file, has failed: continue with the next file.
    report.flagged++
    report.errors++
    ctx.log.error('blob not scrubbed', { cid, error })
  }
}

async function heal(ctx: Context, blob: StoredBlob): Promise<boolean> {
  if (!ctx.config.blobScrub.autoHeal) return false
  const mirror = blobMirror(ctx)
  if (mirror === null) return false
  return (await restoreFromMirror(ctx, mirror, blob)) === 'restored'
}

async function flagUnowned({ ctx, pace, report }: Pass, names: readonly string[]): Promise<void> {
  await pace(names.length * ROW_COST_BYTES)
  const owned = await ownedAmong(ctx.db, names)
  for (const cid of names.filter((name) => !owned.has(name))) {
    if (await cidQueue(ctx).run(cid, () => isExpected(ctx, cid))) continue
    report.flagged++
    ctx.log.error('blob file has no owner', { file: cid })
  }
}

/** Checks again: an upload may have been between its file and its row, or a deletion between its row and its file. */
const isExpected = async (ctx: Context, cid: string): Promise<boolean> =>
  (await hasOwner(ctx.db, cid)) || (await isDueForRemoval(ctx.db, cid)) || (await blobFiles(ctx).sizeOf(cid)) === null
