/** Receives a blob: file first, then row. A crash in between leaves an unowned file, never a row without bytes. */
import { payloadTooLarge, Refusal } from '../../http/errors.ts'
import type { RequestBody } from '../../http/body.ts'
import { perContext, type Context } from '../../platform/context.ts'
import type { Reader, Tx } from '../../platform/database/database.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountStatus, refuseTakendown } from '../accounts/accounts.ts'
import { blobFiles } from './blob-files.ts'
import { blobTakedown, blobUsage, deleteRemovals, hasOwner, upsertUpload, type BlobRow } from './blob-store.ts'
import { mimeTypeOf } from './mime-type.ts'

/** Serialises naming, deleting and healing per CID: a file must not be deleted while an upload gives it an owner. */
export const cidQueue = perContext(() => new KeyedQueue())

/** What else an upload has to pass, beside the bounds of its account. */
interface Admission {
  /** Gets the detected type. Throws if the caller may not upload it. */
  permit(mimeType: string): void
  /** Runs in the transaction that makes the blob part of the account. If it throws, the upload has not happened. */
  record?(tx: Tx, blob: BlobRow): Promise<void>
}

/**
 * Receive a blob, and make it part of the account.
 *
 * Refuses with `PayloadTooLarge` above the maximum size of a blob or the storage of the account. A broken upload leaves
 * nothing.
 */
export async function uploadBlob(ctx: Context, did: Did, body: RequestBody, { permit, record }: Admission): Promise<BlobRow> {
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
        // An upload may take long; its account may have been deleted in the meantime.
        refuseTakendown(await accountStatus(tx, did))
        await admitUpload(ctx, tx, blob)
        await upsertUpload(tx, blob, ctx.clock.now())
        if (record) await record(tx, blob)
      })
    } catch (error) {
      await removeUnowned(ctx, cid)
      throw error
    }
  })
  return blob
}

/** A blob that the account already owns does not count again. */
async function admitUpload({ config }: Context, reader: Reader, { did, cid, size }: BlobRow): Promise<void> {
  const owned = await blobTakedown(reader, did, cid)
  if (owned !== null) {
    if (owned.ref !== null) throw new Refusal(400, 'InvalidRequest', 'Blob has been takendown, cannot re-upload')
    return
  }
  const { bytes } = await blobUsage(reader, did)
  if (bytes + size > config.blobs.maxStoragePerAccount) throw payloadTooLarge()
}

/** Delete files without an owner. Call it once the deletion of their rows is durable. After a crash, the next pass of the GC continues. */
export async function removeBlobFiles(ctx: Context, cids: readonly string[]): Promise<void> {
  if (cids.length === 0) return
  await removeFiles(ctx, cids)
  await ctx.db.transaction((tx) => deleteRemovals(tx, cids))
}

/** Checks again which files nobody owns: an upload may have arrived in the meantime. */
export async function removeFiles(ctx: Context, cids: readonly string[]): Promise<void> {
  for (const cid of cids) await cidQueue(ctx).run(cid, () => removeUnowned(ctx, cid))
}

async function removeUnowned(ctx: Context, cid: string): Promise<void> {
  if (!(await hasOwner(ctx.db, cid))) await blobFiles(ctx).remove(cid)
}
