/** The places of backups and blobs, as operators write them. */

/** Parses `s3://bucket/prefix`. The prefix may be empty. Returns null for any other text. */
export function parseBucketPlace(text: string): { bucket: string; prefix: string } | null {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? []
  return bucket === undefined ? null : { bucket, prefix }
}

/** Why a text names no folder, or null. To anything but a shell, `~` is a name like any other. */
export const folderFault = (text: string): string | null =>
  /^~(?:\/|$)/.test(text) ? 'expected a path without ~, which only shells replace' : null

/** Why a text names neither a folder nor a place in a bucket, or null. A letter and a colon are a drive of Windows. */
export function placeFault(text: string): string | null {
  if (parseBucketPlace(text) !== null) return null
  return /^[a-z][a-z0-9+.-]+:/i.test(text) ? 'expected a folder or s3://bucket/prefix' : folderFault(text)
}
