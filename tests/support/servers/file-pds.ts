/**
 * The real server on a database of its own, whichever one the suite runs on. A test file whose servers are all of this
 * kind runs once, in `npm test`.
 */
import type { ConfigOverrides } from './config.ts'
import { startServerOn, type ServerOptions, type TestPds } from './server.ts'
import { blobsInBucket, readers } from './suite-parts.ts'

/** Its database is a file in its folder, or the one that the configuration names. */
export async function startPdsOnFile(config: ConfigOverrides = {}, options: ServerOptions = {}): Promise<TestPds> {
  const bucket = hasBucket(config) ? await (await import('./bucket-host.ts')).startBucket() : null
  return startServerOn({ bucket }, { ...ofSuite, ...config }, options)
}

/** Whether the suite keeps its blobs in a bucket, and the test does not say where. */
export const hasBucket = (config: ConfigOverrides): boolean => blobsInBucket && leavesBlobs(config)

export const leavesBlobs = ({ blobs, blobMirror }: ConfigOverrides): boolean =>
  blobs?.store === undefined && blobMirror === undefined

/** What the suite has set. */
export const ofSuite: ConfigOverrides = readers > 0 ? { server: { readers } } : {}
