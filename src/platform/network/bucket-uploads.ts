/** Uploads in parts to a bucket: the parts of an object are stored one by one, and become the object in one step. */
import { JOIN_TIMEOUT_MILLIS, uploadTimeoutMillis, type Bucket } from './bucket.ts'
import type { Answer } from './bucket-answers.ts'
import { BucketRefusal } from './bucket-faults.ts'
import { contentOf, type Content } from './bucket-wire.ts'

/** Uploads per response. */
const LIST_PAGE = 100

/** An upload that was begun and neither completed nor aborted. */
export interface UnfinishedUpload {
  key: string
  id: string
  /** When it was begun, by the clock of the store. */
  startedAt: number
}

export class UploadInParts {
  readonly #tags: string[] = []
  #size = 0

  private constructor(
    readonly bucket: Bucket,
    readonly key: string,
    readonly id: string,
  ) {}

  static async begin(bucket: Bucket, key: string): Promise<UploadInParts> {
    const begun = await bucket.ask((store, signal) =>
      store.ask({ method: 'POST', key, query: { uploads: '' } }, signal),
    )
    const id = begun?.text('UploadId')
    if (id === undefined) throw new Error('the bucket started an upload without returning its id')
    return new UploadInParts(bucket, key, id)
  }

  /** Store the next part. All parts but the last must have the same size, and at least 5 MiB. */
  async add(content: Content, signal?: AbortSignal): Promise<void> {
    const { bucket, key, id } = this
    const query = { partNumber: this.#tags.length + 1, uploadId: id }
    const stored = await bucket.ask(
      (store, abortSignal) => store.headers({ method: 'PUT', key, query, content }, abortSignal),
      { timeoutMillis: uploadTimeoutMillis(content.body), signal },
    )
    const tag = stored.get('etag')
    if (tag === null) throw new Error('the bucket stored a part without returning its ETag')
    this.#tags.push(tag)
    this.#size += content.body.size
  }

  /** Makes the object of the parts. Throws if its size is not the sum of theirs. */
  async complete(): Promise<void> {
    const { bucket, key, id } = this
    const parts = this.#tags.map(
      (tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${Bun.escapeHTML(tag)}</ETag></Part>`,
    )
    const content = contentOf(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
    try {
      await bucket.ask(
        (store, signal) => store.ask({ method: 'POST', key, query: { uploadId: id }, content }, signal),
        { timeoutMillis: JOIN_TIMEOUT_MILLIS },
      )
    } catch (error) {
      // An earlier try may have succeeded without its response arriving.
      if (!(error instanceof BucketRefusal && error.status === 404)) throw error
    }
    const size = await bucket.sizeOf(key)
    if (size !== this.#size) throw new Error(`the bucket joined ${this.#size} bytes to ${size ?? 'nothing'}`)
  }

  /** Discard the parts. Succeeds if the upload has ended. */
  abort(): Promise<void> {
    return abortUpload(this.bucket, this)
  }
}

export async function abortUpload(bucket: Bucket, { key, id }: Pick<UnfinishedUpload, 'key' | 'id'>): Promise<void> {
  try {
    await bucket.ask((store, signal) => store.headers({ method: 'DELETE', key, query: { uploadId: id } }, signal))
  } catch (error) {
    if (!(error instanceof BucketRefusal && error.status === 404)) throw error
  }
}

/** Yields the unfinished uploads under the prefix, in pages. */
export async function* unfinishedUploads(bucket: Bucket, prefix: string): AsyncGenerator<UnfinishedUpload[]> {
  let place: Place = {}
  do {
    const query = { uploads: '', prefix, 'max-uploads': LIST_PAGE, ...place }
    const page = await bucket.ask((store, signal) => store.ask({ method: 'GET', query }, signal))
    yield (page?.all('Upload') ?? []).map(uploadOf)
    place = nextPlaceOf(page)
  } while (place !== null)
}

/** Where the next page begins; null after the last. */
type Place = { 'key-marker'?: string; 'upload-id-marker'?: string | undefined } | null

function uploadOf(upload: Answer): UnfinishedUpload {
  const [key, id, initiated] = ['Key', 'UploadId', 'Initiated'].map((name) => upload.text(name))
  const startedAt = Date.parse(initiated ?? '')
  if (key === undefined || id === undefined || Number.isNaN(startedAt))
    throw new Error('the bucket lists an upload without key, id or time')
  return { key, id, startedAt }
}

function nextPlaceOf(page: Answer | null): Place {
  if (page?.text('IsTruncated') !== 'true') return null
  const key = page.text('NextKeyMarker')
  if (key === undefined) throw new Error('the bucket sent an incomplete list of uploads')
  return { 'key-marker': key, 'upload-id-marker': page.text('NextUploadIdMarker') }
}
