/** What the servers of the suite have beside a database, as its environment says. */

/** Whether the suite keeps blobs in a bucket: `TEST_BLOBS=s3`. */
export const blobsInBucket = process.env['TEST_BLOBS'] === 's3'

/** How many reader threads each server of the suite has: `TEST_READERS=1`. */
export const readers = Number(process.env['TEST_READERS'] ?? 0)
