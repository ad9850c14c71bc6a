/** Copies of blobs in a bucket: one object per CID, under a prefix that only the mirror uses. */
import { Bucket } from '../../../platform/network/bucket.ts'
import { BucketUnavailable } from '../../../platform/network/bucket-faults.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Pace } from '../../../base/pace.ts'
import { parseCid } from '../../../protocol/cid.ts'
import type { StoredBlob } from './blob-storage.ts'
import { hasOwner } from './blob-store.ts'
import { blobFolder } from './open-storage.ts'

/** `Retry-After` of an upload that the mirror does not take. */
const RETRY_SECS = 10

export interface BlobMirror {
  bucket: Bucket
  keyPrefix: string
}

const opened = perContext(({ config: { blobMirror, blobs } }): BlobMirror | null => {
  if (blobs.store === 's3') return null
  const { bucket, endpoint, accessKeyId, secretAccessKey, keyPrefix } = blobMirror
  if (bucket === null || endpoint === null || accessKeyId === null || secretAccessKey === null) return null
  return { bucket: new Bucket({ ...blobMirror, bucket, endpoint, accessKeyId, secretAccessKey }), keyPrefix }
})

/** Returns null if no mirror is configured, or the blobs themselves are in a bucket. */
export const blobMirror = (ctx: Context): BlobMirror | null => opened(ctx)

/** Copy a file into the bucket. Returns false, and copies nothing, if the content does not match its CID. */
export async function copyToMirror(
  ctx: Context,
  { bucket, keyPrefix }: BlobMirror,
  { cid, size }: StoredBlob,
  pace: Pace,
): Promise<boolean> {
  const folder = blobFolder(ctx)
  const content = await folder.digest(cid, pace)
  const digest = parseCid(cid)?.digest
  if (content?.cid !== cid || content.size !== size || digest === undefined) return false
  await bucket.put(keyPrefix + cid, { body: Bun.file(folder.pathOf(cid)), sha256: Buffer.from(digest).toString('hex') })
  return true
}

/**
 * With `backup.continuous_promise = "sync"`, an upload is acknowledged once the mirror has its copy, even one that a
 * pass of the mirror was about to delete: the pass then finds that the blob has an owner. Throws `BucketUnavailable` if
 * that fails.
 */
export async function mirrorAtOnce(ctx: Context, blob: StoredBlob): Promise<void> {
  const { continuous, continuousPromise } = ctx.config.backup
  const mirror = continuous !== null && continuousPromise === 'sync' ? blobMirror(ctx) : null
  if (mirror === null) return
  const { bucket, keyPrefix } = mirror
  try {
    await blobFolder(ctx).alone(blob.cid, async () => {
      const isThere = (await bucket.sizeOf(keyPrefix + blob.cid)) === blob.size
      if (!isThere && !(await copyToMirror(ctx, mirror, blob, unpaced)))
        throw new Error('the file is missing or damaged')
    })
  } catch (error) {
    throw new BucketUnavailable(RETRY_SECS, bucket.name, error)
  }
}

const unpaced = async (): Promise<void> => {}

/** `unowned`: the last owner's row was deleted while the copy was being fetched. */
export type Restoration = 'restored' | 'absent' | 'damaged' | 'unowned'

/** Replace the file by the bucket's copy after verifying the copy. Throws if the bucket does not respond. */
export async function restoreFromMirror(
  ctx: Context,
  { bucket, keyPrefix }: BlobMirror,
  { cid, size }: StoredBlob,
  stopping?: AbortSignal,
): Promise<Restoration> {
  const copy = await bucket.get(keyPrefix + cid, { stopping })
  if (copy === null) return 'absent'
  await using incoming = await blobFolder(ctx).receive(upTo(copy, size))
  if (incoming.cid !== cid || incoming.size !== size) return 'damaged'
  // Awaited here, because the received file is deleted when this function ends.
  return await blobFolder(ctx).alone(cid, async () => {
    if (!(await hasOwner(ctx.db, cid))) return 'unowned'
    await incoming.place()
    return 'restored'
  })
}

/** Stops reading a copy that is too long. */
async function* upTo(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let count = 0
  for await (const chunk of chunks) {
    count += chunk.byteLength
    yield chunk
    if (count > maxBytes) return
  }
}
