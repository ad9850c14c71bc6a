/** Uploads in parts to a bucket: the parts of an object are stored one by one, and become the object in one step. */
import type { ListMultipartUploadsOutput, ListMultipartUploadsRequest } from '@aws-sdk/client-s3'
import { OBJECT_TIMEOUT_MILLIS, signedOver, uploadTimeoutMillis, type Bucket, type Content } from './bucket.ts'
import { BucketRefusal } from './bucket-faults.ts'

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
    const { UploadId } = await bucket.ask(({ client, library }, abortSignal) =>
      client.send(new library.CreateMultipartUploadCommand({ Bucket: bucket.name, Key: key }), { abortSignal }),
    )
    if (UploadId === undefined) throw new Error('the bucket started an upload without returning its id')
    return new UploadInParts(bucket, key, UploadId)
  }

  /** Store the next part. All parts but the last must have the same size, and at least 5 MiB. */
  async add({ body, sha256 }: Content, signal?: AbortSignal): Promise<void> {
    const { bucket, key, id } = this
    const { ETag } = await bucket.ask(
      ({ client, library }, abortSignal) => {
        const command = new library.UploadPartCommand({
          Bucket: bucket.name,
          Key: key,
          UploadId: id,
          PartNumber: this.#tags.length + 1,
          Body: body,
          ContentLength: body.size,
        })
        command.middlewareStack.add(signedOver(sha256), { step: 'build' })
        return client.send(command, { abortSignal })
      },
      { timeoutMillis: uploadTimeoutMillis(body), signal },
    )
    if (ETag === undefined) throw new Error('the bucket stored a part without returning its ETag')
    this.#tags.push(ETag)
    this.#size += body.size
  }

  /** Make the object of the parts. Throws if the object has another size than they. */
  async complete(): Promise<void> {
    const { bucket, key, id } = this
    const parts = this.#tags.map((tag, i) => ({ ETag: tag, PartNumber: i + 1 }))
    try {
      await bucket.ask(
        ({ client, library }, abortSignal) =>
          client.send(
            new library.CompleteMultipartUploadCommand({
              Bucket: bucket.name,
              Key: key,
              UploadId: id,
              MultipartUpload: { Parts: parts },
            }),
            { abortSignal },
          ),
        { timeoutMillis: OBJECT_TIMEOUT_MILLIS },
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
    await bucket.ask(({ client, library }, abortSignal) =>
      client.send(new library.AbortMultipartUploadCommand({ Bucket: bucket.name, Key: key, UploadId: id }), {
        abortSignal,
      }),
    )
  } catch (error) {
    if (!(error instanceof BucketRefusal && error.status === 404)) throw error
  }
}

/** Yields the unfinished uploads under the prefix, in pages. */
export async function* unfinishedUploads(bucket: Bucket, prefix: string): AsyncGenerator<UnfinishedUpload[]> {
  for (let place: Place | null = { KeyMarker: undefined, UploadIdMarker: undefined }; place !== null;) {
    const page: ListMultipartUploadsOutput = await listUploads(bucket, prefix, place)
    yield (page.Uploads ?? []).map(({ Key, UploadId, Initiated }) => {
      if (Key === undefined || UploadId === undefined || Initiated === undefined)
        throw new Error('the bucket lists an upload without key, id or time')
      return { key: Key, id: UploadId, startedAt: Initiated.getTime() }
    })
    if (page.IsTruncated === true && page.NextKeyMarker === undefined)
      throw new Error('the bucket sent an incomplete list of uploads')
    place =
      page.IsTruncated === true ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker } : null
  }
}

type Place = Pick<ListMultipartUploadsRequest, 'KeyMarker' | 'UploadIdMarker'>

const listUploads = (bucket: Bucket, prefix: string, place: Place) =>
  bucket.ask(({ client, library }, abortSignal) =>
    client.send(
      new library.ListMultipartUploadsCommand({ Bucket: bucket.name, Prefix: prefix, MaxUploads: LIST_PAGE, ...place }),
      {
        abortSignal,
      },
    ),
  )
