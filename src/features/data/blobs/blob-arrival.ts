/** Blobs that arrive with their account from another server: bytes first, then rows, as for an upload. */
import type { Context } from '../../../platform/context.ts'
import { lockOn, type Lock, type Tx } from '../../../platform/database/database.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { cancelRemoval } from './blob-removal.ts'
import { setBlobTakedown, upsertUpload, type BlobRow } from './blob-store.ts'
import { blobStorage } from './open-storage.ts'

export interface ArrivedBlob extends BlobRow {
  takedownRef: string | null
}

/** Store bytes under a CID. Returns how many. Stores nothing and returns null if the bytes have another CID. */
export async function placeBlob(ctx: Context, cid: string, bytes: AsyncIterable<Uint8Array>): Promise<number | null> {
  await using incoming = await blobStorage(ctx).receive(bytes)
  if (incoming.cid !== cid) return null
  await incoming.place()
  return incoming.size
}

/** The locks that the caller of `ownArrivedBlobs` must hold. */
export const arrivalLocks = (blobs: readonly ArrivedBlob[]): Lock[] => blobs.map(({ cid }) => lockOn('blob', cid))

/**
 * Make placed blobs part of their account, in the transaction that stores its references. Blobs without a reference get
 * the grace of an upload.
 */
export async function ownArrivedBlobs(ctx: Context, tx: Tx, blobs: readonly ArrivedBlob[], now: Millis): Promise<void> {
  for (const blob of blobs) {
    if (blobStorage(ctx).isShared) await cancelRemoval(tx, blob.cid, null)
    await upsertUpload(ctx, tx, blob, now)
    if (blob.takedownRef !== null) await setBlobTakedown(tx, { ...blob, ref: blob.takedownRef })
  }
}
