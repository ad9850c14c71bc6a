/** Opens the storage that the configuration names. */
import { join } from 'node:path'
import type { Config } from '../../../platform/configuration/config.ts'
import { perContext } from '../../../platform/context.ts'
import { blobsFolder } from '../../../platform/files/data-directory.ts'
import { BucketBreaker } from '../../../platform/network/bucket-breaker.ts'
import { Bucket } from '../../../platform/network/bucket.ts'
import type { Clock } from '../../../platform/running/clock.ts'
import type { Log } from '../../../platform/running/log.ts'
import { BlobBucket } from './blob-bucket.ts'
import { BlobFolder } from './blob-folder.ts'
import type { BlobStorage } from './blob-storage.ts'

export type StorageConfig = Pick<Config, 'dataDir' | 'blobs'>

/** The blobs in the folder of a data directory. */
const blobFolderIn = (dataDir: string): BlobFolder => new BlobFolder(blobsFolder(dataDir))

/** The blob bucket; null if blobs are in the folder. */
export function openBlobBucket(
  { dataDir, blobs }: StorageConfig,
  ctx: { clock: Pick<Clock, 'monotonic'>; log: Log },
): BlobBucket | null {
  const { store, s3Bucket, s3Endpoint, s3AccessKeyId, s3SecretAccessKey, s3KeyPrefix } = blobs
  if (
    store !== 's3' ||
    s3Bucket === null ||
    s3Endpoint === null ||
    s3AccessKeyId === null ||
    s3SecretAccessKey === null
  )
    return null
  const url = `${s3Endpoint}/${s3Bucket}/${s3KeyPrefix}`
  const options = {
    bucket: s3Bucket,
    endpoint: s3Endpoint,
    region: blobs.s3Region,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
    forcePathStyle: blobs.s3ForcePathStyle,
  }
  return new BlobBucket({
    bucket: new Bucket(options, new BucketBreaker(ctx, url)),
    url,
    keyPrefix: s3KeyPrefix,
    spoolDir: join(blobsFolder(dataDir), '.incoming'),
    log: ctx.log,
  })
}

/** The storage of a process that does not run the server. */
export const openStorageOf = (config: StorageConfig, ctx: { clock: Pick<Clock, 'monotonic'>; log: Log }): BlobStorage =>
  openBlobBucket(config, ctx) ?? blobFolderIn(config.dataDir)

/** The bucket of a running server; null if its blobs are in the folder. */
export const blobBucket = perContext((ctx) => openBlobBucket(ctx.config, ctx))

/** The folder of a running server, whether or not its blobs are there. */
export const blobFolder = perContext((ctx) => blobFolderIn(ctx.config.dataDir))

/** Where a running server keeps its blobs. */
export const blobStorage = perContext((ctx): BlobStorage => blobBucket(ctx) ?? blobFolder(ctx))
