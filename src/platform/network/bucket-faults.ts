/** How requests to a bucket fail, and how that is told to operators. */
import type { Explained } from '../../base/operator-error.ts'

/** The store refused a request: the HTTP status and error code of its response. */
export class BucketRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {
    super(`the bucket returned ${status} ${code}`)
  }

  /** Whether the same request may succeed later. 501: the store does not know how. */
  get isPassing(): boolean {
    return (this.status >= 500 && this.status !== 501) || this.status === 429 || this.status === 408
  }
}

/** The bucket does not work at the moment: it cannot be reached, stalls, fails, or refuses the credentials. */
export class BucketUnavailable extends Error {
  constructor(
    readonly retryAfterSecs: number,
    /** Endpoint, bucket and prefix. */
    readonly url: string,
    cause: unknown,
  ) {
    super('the blob bucket is unavailable', { cause })
  }
}

const CHECK_KEYS = 'check the keys of [blobs] that begin with s3_, and what they allow'

/** By status and error code of the store's response. The first that matches decides. */
const refusals: readonly [RegExp, what: string, remedy: string][] = [
  [/^404/, 'does not exist', 'create it, or name another one'],
  [/^40[13]/, 'refuses this server', CHECK_KEYS],
  [
    /^(3|400)/,
    'is elsewhere, or speaks another dialect',
    'check blobs.s3_endpoint, blobs.s3_region and blobs.s3_force_path_style',
  ],
  [/^(5|429|408)/, 'fails', 'look at the store, and try again'],
  [/^/, 'refuses a request', CHECK_KEYS],
]

/** The request never got an answer, by the error code of the system or by our own words. */
const unreached =
  /^(ECONN|EHOST|ENET|ENOTFOUND|EAI_|ETIMEDOUT|ConnectionRefused|FailedToOpenSocket)|has no address|does not respond/

export function explainBucket({ url, cause }: BucketUnavailable): Explained {
  const { message, code = '' } = cause as Error & { code?: string }
  if (cause instanceof BucketUnavailable) return explainBucket(cause)
  if (cause instanceof BucketRefusal) {
    const answer = `${cause.status} ${cause.code}`.trim()
    const [, what, remedy] = refusals.find(([pattern]) => pattern.test(answer))!
    return { what: `the bucket ${url} ${what} (${answer})`, remedy }
  }
  if (unreached.test(code) || unreached.test(message))
    return {
      what: `the bucket ${url} cannot be reached (${message})`,
      remedy: 'check blobs.s3_endpoint, and that the store runs',
    }
  return {
    what: `the server that answers for the bucket ${url} is not an S3 store (${message})`,
    remedy: 'check blobs.s3_endpoint',
  }
}
