/**
 * What the suite runs on, as its environment says. A test file that does not reach this module through its imports is
 * the same everywhere.
 */

/** Whether each server of the suite is two nodes of which each gets every other request: `TEST_DATABASE=cluster`. */
export const onCluster = process.env['TEST_DATABASE'] === 'cluster'

/** Whether the suite runs on PostgreSQL: `TEST_DATABASE=postgres`. */
export const onPostgres = onCluster || process.env['TEST_DATABASE'] === 'postgres'

/** Whether the suite keeps blobs in a bucket: `TEST_BLOBS=s3`. */
export const blobsInBucket = process.env['TEST_BLOBS'] === 's3'

/** How many reader threads each server of the suite has: `TEST_READERS=1`. */
export const readers = Number(process.env['TEST_READERS'] ?? 0)
