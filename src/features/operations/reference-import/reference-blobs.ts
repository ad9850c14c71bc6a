/** Where the bytes of a reference PDS's blobs are: on its disk, or in its bucket. */
import { createReadStream, statSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import { Secret } from '../../../base/secret.ts'
import { Bucket } from '../../../platform/network/bucket.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { requireReadable } from './reference-access.ts'
import { variable } from './reference-env.ts'
import type { BlobPlaces, ReferenceFolder } from './reference-folder.ts'
import type { FormerBlob } from './reference-actor.ts'

/** Bytes of an object to read at once. */
const PIECE_BYTES = 1024 ** 2

export interface FormerBlobs {
  /** Returns the bytes, which are not verified; null if they are missing. */
  open(did: Did, blob: FormerBlob): Promise<AsyncIterable<Uint8Array> | null>
}

/** Throws `OperatorError` if the environment names a bucket without keys. */
export function formerBlobs({ blobs, env }: Pick<ReferenceFolder, 'blobs' | 'env'>): FormerBlobs {
  return blobs === null ? blobsInFormerBucket(env) : blobsOnDisk(blobs)
}

/** The folders or prefixes in which a blob can be, by its state. */
const roomOf = ({ tempKey, takedownRef }: FormerBlob): keyof BlobPlaces =>
  takedownRef !== null ? 'quarantine' : tempKey === null ? 'stored' : 'temporary'

const nameOf = ({ cid, tempKey, takedownRef }: FormerBlob): string =>
  takedownRef === null && tempKey !== null ? tempKey : cid

const blobsOnDisk = (places: BlobPlaces): FormerBlobs => ({
  async open(did, blob) {
    const path = join(places[roomOf(blob)], did, nameOf(blob))
    requireReadable(path)
    return statSync(path, { throwIfNoEntry: false })?.isFile() ? createReadStream(path) : null
  },
})

const prefixes: Record<keyof BlobPlaces, string> = { stored: 'blocks', temporary: 'tmp', quarantine: 'quarantine' }

function blobsInFormerBucket(env: ReferenceFolder['env']): FormerBlobs {
  const [accessKeyId, secretAccessKey] = ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'].map((name) =>
    variable(env, `PDS_BLOBSTORE_S3_${name}`),
  )
  if (!accessKeyId || !secretAccessKey)
    throw new OperatorError(
      'the blobs of the old server are in a bucket: set PDS_BLOBSTORE_S3_ACCESS_KEY_ID and PDS_BLOBSTORE_S3_SECRET_ACCESS_KEY in its environment',
    )
  const region = variable(env, 'PDS_BLOBSTORE_S3_REGION') ?? 'us-east-1'
  const bucket = new Bucket({
    bucket: variable(env, 'PDS_BLOBSTORE_S3_BUCKET')!,
    endpoint: variable(env, 'PDS_BLOBSTORE_S3_ENDPOINT') ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    forcePathStyle: variable(env, 'PDS_BLOBSTORE_S3_FORCE_PATH_STYLE') === 'true',
  })
  return {
    async open(did, blob) {
      const key = `${prefixes[roomOf(blob)]}/${did}/${nameOf(blob)}`
      return (await bucket.sizeOf(key)) === null ? null : piecesOf(bucket, key)
    },
  }
}

async function* piecesOf(bucket: Bucket, key: string): AsyncGenerator<Uint8Array> {
  const size = (await bucket.sizeOf(key)) ?? 0
  for (let first = 0; first < size;) {
    const piece = await bucket.read(key, { first, last: Math.min(size, first + PIECE_BYTES) - 1 })
    if (piece === null || piece.bytes.length === 0) return
    yield piece.bytes
    first += piece.bytes.length
  }
}
