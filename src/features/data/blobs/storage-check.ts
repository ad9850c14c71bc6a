/**
 * Prepares the storage. Keeps a server from starting with the storage of another server, in which every blob would be
 * missing.
 */
import { existsSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import { blobsFolder } from '../../../platform/files/data-directory.ts'
import { isPostgresUrl } from '../../../platform/database/database-url.ts'
import { BucketUnavailable } from '../../../platform/network/bucket-faults.ts'
import type { BlobBucket } from './blob-bucket.ts'
import { blobMirror } from './blob-mirror.ts'
import { hasBlobs } from './blob-store.ts'
import { blobBucket, blobStorage } from './open-storage.ts'

/**
 * Throws `OperatorError` if the storage refuses to work, or if there are rows of blobs but the bucket, or the folder of
 * a server on PostgreSQL, is new. Accepts a folder that a mirror will fill, and a bucket that cannot be reached.
 */
export async function prepareStorage(ctx: Context): Promise<void> {
  const bucket = blobBucket(ctx)
  // Check before the folder is created: at the next start, it would look as if the operator had created it.
  if (bucket === null) await refuseNewFolder(ctx)
  await blobStorage(ctx).prepare()
  if (bucket === null || !(await isKnownEmpty(bucket)) || !(await hasBlobs(ctx.db))) return
  throw new OperatorError(
    `${emptied(ctx)}: name the bucket and prefix that hold them, or copy them with "holdfast copy"`,
  )
}

async function refuseNewFolder(ctx: Context): Promise<void> {
  const folder = blobsFolder(ctx.config.dataDir)
  if (existsSync(folder) || blobMirror(ctx) !== null || !(await hasBlobs(ctx.db))) return
  // A SQLite database is in the same directory as its folder, so the blobs are lost: it is better to serve the rest
  // than nothing.
  if (!isPostgresUrl(ctx.config.databaseUrl))
    return ctx.log.error('the database lists blobs, but their folder is empty', { path: folder })
  throw new OperatorError(
    `${emptied(ctx)}: set data_dir to the folder of the server that wrote them, set blobs.store to s3 if they are in a bucket, or create ${folder} to start without them`,
  )
}

const emptied = (ctx: Context): string => `the database lists blobs, but ${blobStorage(ctx).place} is empty`

async function isKnownEmpty(bucket: BlobBucket): Promise<boolean> {
  try {
    return await bucket.isEmpty()
  } catch (error) {
    if (error instanceof BucketUnavailable) return false
    throw error
  }
}
