/**
 * A bucket of an S3-compatible store. The client library is loaded when a bucket is opened and not before.
 *
 * What is stored is what was meant: an upload carries the SHA-256 of its content in its signature, and the store
 * refuses other bytes.
 */
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import type { GetObjectCommandOutput, S3Client } from '@aws-sdk/client-s3'
import type { Secret } from './secret.ts'

const CONNECT_TIMEOUT_MILLIS = 10_000
/** One object, from the first byte of the request to the last one of the answer. */
const OBJECT_TIMEOUT_MILLIS = 300_000
const LIST_TIMEOUT_MILLIS = 60_000
const LIST_PAGE = 1000
const MAX_ATTEMPTS = 3

export interface BucketOptions {
  bucket: string
  endpoint: string
  region: string
  accessKeyId: string
  secretAccessKey: Secret<string>
  forcePathStyle: boolean
}

export interface StoredObject {
  key: string
  size: number
}

export interface Bucket {
  /** All objects under the prefix, in ascending order of their keys, page by page. Throws when the store sorts otherwise. */
  list(prefix: string): AsyncGenerator<StoredObject[]>
  /** `sha256` is the digest of the file's content in hexadecimal. */
  put(key: string, file: { path: string; size: number; sha256: string }): Promise<void>
  /** Null when there is no such object. Breaking off the iteration ends the transfer. */
  get(key: string): Promise<AsyncIterable<Uint8Array> | null>
  /** Deleting what is not there succeeds. */
  delete(key: string): Promise<void>
  close(): void
}

const silent = () => undefined

export async function openBucket({ bucket, endpoint, region, accessKeyId, secretAccessKey, forcePathStyle }: BucketOptions): Promise<Bucket> {
  const s3 = await import('@aws-sdk/client-s3')
  const client: S3Client = new s3.S3Client({
    endpoint,
    region,
    forcePathStyle,
    credentials: { accessKeyId, secretAccessKey: secretAccessKey.reveal() },
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MILLIS, requestTimeout: OBJECT_TIMEOUT_MILLIS },
    // Stores other than Amazon's do not all know the checksums that the client adds by itself.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // What it has to say it also throws.
    logger: { debug: silent, info: silent, warn: silent, error: silent },
  })

  return {
    async *list(prefix) {
      let token: string | undefined
      let last = ''
      do {
        const page = await client.send(new s3.ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: token, MaxKeys: LIST_PAGE }), {
          abortSignal: AbortSignal.timeout(LIST_TIMEOUT_MILLIS),
        })
        const objects = (page.Contents ?? []).map(({ Key, Size }) => ({ key: Key ?? '', size: Size ?? 0 }))
        for (const { key } of objects) {
          if (key <= last) throw new Error('the bucket does not list its keys in ascending order')
          last = key
        }
        yield objects
        token = page.IsTruncated ? page.NextContinuationToken : undefined
        if (page.IsTruncated && token === undefined) throw new Error('the bucket broke off its list')
      } while (token !== undefined)
    },

    async put(key, { path, size, sha256 }) {
      const command = new s3.PutObjectCommand({ Bucket: bucket, Key: key, Body: createReadStream(path), ContentLength: size, ContentType: 'application/octet-stream' })
      command.middlewareStack.add(
        (next) => (args) => {
          ;(args.request as { headers: Record<string, string> }).headers['x-amz-content-sha256'] = sha256
          return next(args)
        },
        { step: 'build', name: 'contentDigest' },
      )
      await client.send(command, { abortSignal: AbortSignal.timeout(OBJECT_TIMEOUT_MILLIS) })
    },

    async get(key) {
      let found: GetObjectCommandOutput
      try {
        found = await client.send(new s3.GetObjectCommand({ Bucket: bucket, Key: key }), { abortSignal: AbortSignal.timeout(OBJECT_TIMEOUT_MILLIS) })
      } catch (error) {
        if (error instanceof s3.NoSuchKey || (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode === 404) return null
        throw error
      }
      return found.Body as Readable
    },

    async delete(key) {
      await client.send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: key }), { abortSignal: AbortSignal.timeout(LIST_TIMEOUT_MILLIS) })
    },

    close: () => client.destroy(),
  }
}
