/** Brings back the bytes and rows of an account's blobs, from the mirror or another source. Removes nothing. */
import type { Throttle } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'
import { inPages } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { forgetBlobFault } from './blob-fault-store.ts'
import { blobMirror } from './blob-mirror.ts'
import { accountBlobs, updateSize } from './blob-store.ts'
import { blobStorage } from './open-storage.ts'
import { adoptForSpace, reconcileAccount } from './reconcile.ts'
import { allMissing } from './reference-store.ts'
import { listMissingInSpaces } from './space-reference-store.ts'

const PAGE = 100

/** Returns bytes that may be those of a blob; null if the source has none. */
export type BlobSource = (cid: string) => Promise<AsyncIterable<Uint8Array> | null>

export interface MendedBlobs {
  /** Blobs whose bytes came from the mirror or the other source. */
  restored: number
  /** Rows that were lost, or had a wrong size. */
  rows: number
  /** CIDs of blobs that the account has, or to which its records refer, and whose bytes are nowhere. */
  lost: string[]
}

export async function mendBlobs(
  ctx: Context,
  did: Did,
  source: BlobSource | null,
  throttled: Throttle,
): Promise<MendedBlobs> {
  const mended: MendedBlobs = { restored: 0, rows: 0, lost: [] }
  const sources = [mirrorSource(ctx), source].filter((one) => one !== null)
  const owned = inPages(PAGE, { cid: '' }, ({ cid }, limit) => accountBlobs(ctx.db, did, cid, limit))
  for await (const page of owned)
    for (const { cid, size } of page) {
      const found = await sizeOf(ctx, cid)
      const there = found ?? (await restored(ctx, cid, sources, mended))
      if (there === null) mended.lost.push(cid)
      else {
        if (there !== size) mended.rows += await updateSize(ctx.db, did, cid, there)
        await forgetBlobFault(ctx.db, cid)
      }
    }
  for await (const page of allMissing(ctx.db, did))
    for (const { cid } of page)
      if ((await sizeOf(ctx, cid)) === null && (await restored(ctx, cid, sources, mended)) === null)
        mended.lost.push(cid)
  const reconciled = await reconcileAccount(ctx, did, { now: ctx.clock.now(), throttled, isMending: true })
  mended.rows += reconciled.adopted
  const ofSpaces = inPages(PAGE, { cid: '' }, ({ cid }, limit) => listMissingInSpaces(ctx.db, did, cid, limit))
  for await (const page of ofSpaces)
    for (const { cid } of page) {
      const isThere = (await sizeOf(ctx, cid)) !== null || (await restored(ctx, cid, sources, mended)) !== null
      // The account had the blob when its record was written.
      if (isThere && (await adoptForSpace(ctx, did, cid))) mended.rows++
      else mended.lost.push(cid)
    }
  return mended
}

/** Returns how many bytes are there; null if they are not those of the blob. */
async function sizeOf(ctx: Context, cid: string): Promise<number | null> {
  const content = await blobStorage(ctx).digest(cid)
  return content?.cid === cid ? content.size : null
}

function mirrorSource(ctx: Context): BlobSource | null {
  const mirror = blobMirror(ctx)
  return mirror && ((cid) => mirror.bucket.get(mirror.keyPrefix + cid))
}

async function restored(
  ctx: Context,
  cid: string,
  sources: readonly BlobSource[],
  mended: MendedBlobs,
): Promise<number | null> {
  const storage = blobStorage(ctx)
  for (const source of sources) {
    const content = await source(cid)
    if (content === null) continue
    await using incoming = await storage.receive(content)
    if (incoming.cid !== cid) continue
    await storage.alone(cid, () => incoming.place())
    mended.restored++
    return incoming.size
  }
  return null
}
