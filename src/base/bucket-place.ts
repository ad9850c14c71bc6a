/** The places of backups and blobs in a bucket, as operators write them. */

/** Parses `s3://bucket/prefix`. The prefix may be empty. Returns null for any other text. */
export function parseBucketPlace(text: string): { bucket: string; prefix: string } | null {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? []
  return bucket === undefined ? null : { bucket, prefix }
}
