/**
 * Verifies blobs: hashes what is stored, and looks for rows without bytes and bytes without rows.
 *
 * In a folder, damaged or missing bytes are replaced by the mirror's copy if that copy is valid. Bytes without an owner
 * are only reported, because they may be the last copy of a blob. A fault that remains gets a row in `blob_fault`,
 * until a later pass finds the blob right. The running check reports these rows.
 */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Pace } from '../../../base/pace.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import { parseCid } from '../../../protocol/cid.ts'
import type { BlobBucket } from './blob-bucket.ts'
import { faultyBlobs, forgetBlobFault, putBlobFault, type BlobFault } from './blob-fault-store.ts'
import { bucketDifferences } from './bucket-differences.ts'
import { blobMirror } from './blob-mirror.ts'
import type { StoredBlob } from './blob-storage.ts'
import { hasOwner, ownedAmong, storedBlobs } from './blob-store.ts'
import { fetchFile } from './missing-files.ts'
import { blobBucket, blobStorage } from './open-storage.ts'
import { isDueForRemoval } from './removal-store.ts'
import { FILE_COST_BYTES, PAGE_ROWS, ROW_COST_BYTES, sweepPace } from './sweep-pace.ts'

/**
 * An unfinished upload that is older belongs to a process that has ended; an object that is younger may still get its
 * row.
 */
const STALE_UPLOAD_MILLIS = HOUR_MILLIS

export interface ScrubReport {
  [count: string]: number
  swept: number
  errors: number
  flagged: number
  healed: number
  /** Unfinished uploads that were deleted. */
  stale: number
}

interface Pass {
  ctx: Context
  stopping: AbortSignal
  pace: Pace
  report: ScrubReport
  /** Faults that earlier passes found. */
  known: Map<string, BlobFault>
}

/** `isHashed` says which blobs are read; of the others, only the size is compared. */
export async function scrub(
  ctx: Context,
  stopping: AbortSignal,
  isHashed: (cid: string) => boolean,
): Promise<ScrubReport> {
  const report = { swept: 0, errors: 0, flagged: 0, healed: 0, stale: 0 }
  const pass: Pass = { ctx, stopping, pace: sweepPace(ctx, stopping), report, known: await faultyBlobs(ctx.db) }
  const bucket = blobBucket(ctx)
  if (bucket === null) await scrubFolder(pass)
  else await scrubBucket(pass, bucket, isHashed)
  await forgetGone(pass)
  report.stale = await blobStorage(ctx).clearIncoming(ctx.clock.now() - STALE_UPLOAD_MILLIS)
  return { ...report, swept: report.flagged + report.healed }
}

async function scrubFolder(pass: Pass): Promise<void> {
  const { ctx, stopping } = pass
  for await (const page of storedBlobs(ctx.db, PAGE_ROWS)) {
    for (const blob of page) {
      stopping.throwIfAborted()
      await scrubBlob(pass, blob)
    }
  }
  for await (const names of blobStorage(ctx).list(PAGE_ROWS)) await flagUnowned(pass, names)
}

async function scrubBucket(pass: Pass, bucket: BlobBucket, isHashed: (cid: string) => boolean): Promise<void> {
  const { ctx, stopping, pace } = pass
  const compared = bucketDifferences({
    rows: storedBlobs(ctx.db, PAGE_ROWS),
    objects: bucket.objects(),
    keyOf: (cid) => bucket.keyOf(cid),
    pace,
    tally: { rows: 0, keys: 0 },
    onMatch: async (blob) => {
      stopping.throwIfAborted()
      if (isHashed(blob.cid)) await scrubBlob(pass, blob)
    },
  })
  for await (const difference of compared) {
    stopping.throwIfAborted()
    if (difference.kind === 'missing') await scrubBlob(pass, difference.blob)
    else if (ageOf(difference.object.modifiedAt, ctx.clock.now()) >= STALE_UPLOAD_MILLIS)
      await flagObject(pass, bucket, difference.object.key)
  }
}

async function note({ ctx, known }: Pass, cid: string, fault: BlobFault | null): Promise<void> {
  if ((known.get(cid) ?? null) === fault) return
  if (fault === null) {
    known.delete(cid)
    await forgetBlobFault(ctx.db, cid)
  } else {
    known.set(cid, fault)
    await putBlobFault(ctx.db, cid, fault, ctx.clock.now())
  }
}

/** Forget faults of blobs that no longer have an owner, and of unowned bytes that have got an owner or are gone. */
async function forgetGone(pass: Pass): Promise<void> {
  const { ctx, known } = pass
  for (const [cid, fault] of known) {
    const isOwned = await hasOwner(ctx.db, cid)
    const isOver = fault === 'unowned' ? isOwned || (await blobStorage(ctx).sizeOf(cid)) === null : !isOwned
    if (isOver) await note(pass, cid, null)
  }
}

async function scrubBlob(pass: Pass, blob: StoredBlob): Promise<void> {
  const { ctx, stopping, pace, report } = pass
  const { cid, size } = blob
  try {
    await pace(FILE_COST_BYTES)
    const content = await blobStorage(ctx).digest(cid, pace)
    if (content?.cid === cid && content.size === size) return await note(pass, cid, null)
    if (!(await hasOwner(ctx.db, cid))) return
    const isHealed = await heal(ctx, blob).catch((error: unknown) => {
      stopping.throwIfAborted()
      report.errors++
      ctx.log.error('blob not restored', { cid, error })
      return false
    })
    if (isHealed) {
      report.healed++
      await note(pass, cid, null)
      ctx.log.warn('blob file replaced by the copy in the mirror', { cid })
    } else {
      report.flagged++
      await note(pass, cid, content === null ? 'missing' : 'damaged')
      ctx.log.error(content === null ? 'blob file is missing' : 'blob file is damaged', { cid })
    }
  } catch (error) {
    stopping.throwIfAborted()
    // The bucket has failed, or the disk at this file: continue with the next blob.
    report.flagged++
    report.errors++
    ctx.log.error('blob not scrubbed', { cid, error })
  }
}

async function heal(ctx: Context, blob: StoredBlob): Promise<boolean> {
  if (!ctx.config.blobScrub.autoHeal || blobMirror(ctx) === null) return false
  return (await fetchFile(ctx, blob)) === 'restored'
}

async function flagObject(pass: Pass, bucket: BlobBucket, key: string): Promise<void> {
  const cid = bucket.nameOf(key)
  if (cid !== null) return flagUnowned(pass, [cid])
  pass.report.flagged++
  pass.ctx.log.error('unexpected object in the blob bucket', { file: key })
}

async function flagUnowned(pass: Pass, names: readonly string[]): Promise<void> {
  const { ctx, pace, report } = pass
  await pace(names.length * ROW_COST_BYTES)
  const owned = await ownedAmong(ctx.db, names)
  for (const cid of names.filter((name) => !owned.has(name))) {
    if (await blobStorage(ctx).alone(cid, () => isExpected(ctx, cid))) continue
    report.flagged++
    // The folder may contain files of any name.
    if (parseCid(cid) !== null) await note(pass, cid, 'unowned')
    ctx.log.error('blob file has no owner', { file: cid })
  }
}

/** Checks again, because an upload writes the row after the bytes, and a deletion removes the bytes after the row. */
const isExpected = async (ctx: Context, cid: string): Promise<boolean> =>
  (await hasOwner(ctx.db, cid)) || (await isDueForRemoval(ctx.db, cid)) || (await blobStorage(ctx).sizeOf(cid)) === null
