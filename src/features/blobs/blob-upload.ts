/**
 * Taking in a blob: file first, then row. A crash in between leaves a file that nobody owns, never a row without bytes.
 */
import { payloadTooLarge, Refusal } from '../../http/errors.ts'
import type { RequestBody } from '../../http/body.ts'
import { perContext, type Context } from '../../platform/context.ts'
import type { Reader } from '../../platform/database/database.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { blobFiles } from './blob-files.ts'
import { blobTakedown, blobUsage, deleteRemovals, hasOwner, upsertUpload, type BlobRow } from './blob-store.ts'
import { mimeTypeOf } from './mime-type.ts'

/** One CID at a time is named, deleted or healed: a file must not go while an upload gives it an owner. */
export const cidQueue = perContext(() => new KeyedQueue())

/**
 * `permit` sees the type of what was received, and throws when the uploader may not upload it.
 *
 * Refuses `PayloadTooLarge` above the size of a blob or the storage of the account. An upload that breaks off leaves nothing.
 */
export async function uploadBlob(ctx: Context, did: Did, body: RequestBody, permit: (mimeType: string) => void): Promise<BlobRow> {
  const { maxBlobSize } = ctx.config.blobs
  await using incoming = await blobFiles(ctx).receive(body.stream(maxBlobSize))
  const { cid, size } = incoming
  const blob: BlobRow = { did, cid, size, mimeType: await mimeTypeOf(incoming.head, body.contentType) }
  permit(blob.mimeType)
  await admitUpload(ctx, ctx.db, blob)
  await cidQueue(ctx).run(cid, async () => {
    await incoming.keep()
    try {
      await ctx.db.transaction(async (tx) => {
        // It takes as long as it takes to arrive, and its account may be gone by then.
        refuseTakendown(await accountStatus(tx, did))
        await admitUpload(ctx, tx, blob)
        await upsertUpload(tx, blob, ctx.clock.now())
      })
    } catch (error) {
      await removeUnowned(ctx, cid)
      throw error
    }
  })
  return blob
}

/** An upload that the account owns already costs it nothing. */
async function admitUpload({ config }: Context, reader: Reader, { did, cid, size }: BlobRow): Promise<void> {
  const owned = await blobTakedown(reader, did, cid)
  if (owned !== null) {
    if (owned.ref !== null) throw new Refusal(400, 'InvalidRequest', 'Blob has been takendown, cannot re-upload')
    return
  }
  const { bytes } = await blobUsage(reader, did)
  if (bytes + size > config.blobs.maxStoragePerAccount) throw payloadTooLarge()
}

/** Delete files whose last owner is gone. Call it once their rows are deleted for good; what a crash leaves is taken up by the next pass of the GC. */
export async function removeBlobFiles(ctx: Context, cids: readonly string[]): Promise<void> {
  if (cids.length === 0) return
  await removeFiles(ctx, cids)
  await ctx.db.transaction((tx) => deleteRemovals(tx, cids))
}

/** Those among the files that nobody owns: an upload may have come meanwhile. */
export async function removeFiles(ctx: Context, cids: readonly string[]): Promise<void> {
  for (const cid of cids) await cidQueue(ctx).run(cid, () => removeUnowned(ctx, cid))
}

async function removeUnowned(ctx: Context, cid: string): Promise<void> {
  if (!(await hasOwner(ctx.db, cid))) await blobFiles(ctx).remove(cid)
}
