/** How requests to a bucket fail. */
import type { S3ServiceException } from '@aws-sdk/client-s3'

/** The store refused a request: the HTTP status and error code of its response. */
export class BucketRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`the bucket returned ${status} ${code}`)
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    return this.status >= 500 || this.status === 429 || this.status === 408
  }
}

/** The bucket does not work at the moment: it cannot be reached, stalls, fails, or refuses the credentials. */
export class BucketUnavailable extends Error {
  constructor(
    readonly retryAfterSecs: number,
    cause: unknown,
  ) {
    super('the bucket of blobs does not work at the moment', { cause })
  }
}

/** Returns null if the store sent no response, or none that can be parsed. */
export function bucketRefusalOf(error: unknown): BucketRefusal | null {
  const { $metadata, name } = error as Partial<S3ServiceException>
  const status = $metadata?.httpStatusCode ?? 0
  // A failed copy or completion may begin as a success; its error then stands in the body.
  if (status === 200 && (name === 'InternalError' || name === 'SlowDown')) return new BucketRefusal(503, name)
  return status < 300 ? null : new BucketRefusal(status, name ?? '')
}
