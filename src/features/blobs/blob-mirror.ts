/** Copies of blobs off this machine: one object per CID under the prefix, which belongs to the mirror alone. */
import { Bucket } from '../../platform/network/bucket.ts'
import { perContext, type Context } from '../../platform/context.ts'
import type { Pace } from '../../base/pace.ts'
import { parseCid } from '../../protocol/cid.ts'
import { blobFiles } from './blob-files.ts'
import { hasOwner, type StoredBlob } from './blob-store.ts'
import { cidQueue } from './blob-upload.ts'

export interface BlobMirror {
  bucket: Bucket
  keyPrefix: string
}

const opened = perContext(({ config: { blobMirror } }): BlobMirror | null => {
  const { bucket, endpoint, accessKeyId, secretAccessKey, keyPrefix } = blobMirror
  if (bucket === null || endpoint === null || accessKeyId === null || secretAccessKey === null) return null
  return { bucket: new Bucket({ ...blobMirror, bucket, endpoint, accessKeyId, secretAccessKey }), keyPrefix }
})

/** Null when none is configured. */
export const blobMirror = (ctx: Context): BlobMirror | null => opened(ctx)

/** Copy a file into the bucket. False, and nothing is copied, when the file is not what its name says. */
export async function copyToMirror(ctx: Context, { bucket, keyPrefix }: BlobMirror, { cid, size }: StoredBlob, pace: Pace): Promise<boolean> {
  const files = blobFiles(ctx)
  const content = await files.contentOf(cid, pace)
  const digest = parseCid(cid)?.digest
  if (content?.cid !== cid || content.size !== size || digest === undefined) return false
  await bucket.put(keyPrefix + cid, { path: files.pathOf(cid), sha256: Buffer.from(digest).toString('hex') })
  return true
}

/** `unowned`: the last owner went while the copy was on its way. */
export type Restoration = 'restored' | 'absent' | 'damaged' | 'unowned'

/** Put the bucket's copy in the place of the file, once it has proved to be the blob. Throws when the bucket does not answer. */
export async function restoreFromMirror(ctx: Context, { bucket, keyPrefix }: BlobMirror, { cid, size }: StoredBlob): Promise<Restoration> {
  const copy = await bucket.get(keyPrefix + cid)
  if (copy === null) return 'absent'
  await using incoming = await blobFiles(ctx).receive(upTo(copy, size))
  if (incoming.cid !== cid || incoming.size !== size) return 'damaged'
  // Awaited here: what is received goes when this function ends.
  return await cidQueue(ctx).run(cid, async () => {
    if (!(await hasOwner(ctx.db, cid))) return 'unowned'
    await incoming.keep()
    return 'restored'
  })
}

/** A copy that is too long is not read to its end. */
async function* upTo(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let count = 0
  for await (const chunk of chunks) {
    count += chunk.byteLength
    yield chunk
    if (count > maxBytes) return
  }
}
