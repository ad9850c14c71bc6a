/** Copies all blobs of a database from one storage to another. */
import { concurrently } from '../../../base/concurrently.ts'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { storageFaultOf } from '../../../platform/files/storage-faults.ts'
import { BucketUnavailable } from '../../../platform/network/bucket-faults.ts'
import { storedBlobs, type BlobStorage, type StoredBlob } from '../../data/blobs/blobs.ts'

const PAGE_ROWS = 500
const TRANSFERS_AT_ONCE = 4

export interface BlobCopies {
  copied: number
  /** Already at the target, for example from an interrupted copy. */
  kept: number
  /** CIDs of blobs that are missing or damaged at the source. */
  missing: string[]
}

/** Verifies the digest of every blob that it copies. */
export async function copyBlobs(
  reader: Reader,
  from: BlobStorage,
  to: BlobStorage,
  onProgress: (blobs: number) => void,
): Promise<BlobCopies> {
  const report: BlobCopies = { copied: 0, kept: 0, missing: [] }
  await concurrently(blobsOf(reader), TRANSFERS_AT_ONCE, async (blob) => {
    if ((await to.sizeOf(blob.cid)) === blob.size) report.kept++
    else if (await copyBlob(blob, from, to)) report.copied++
    else report.missing.push(blob.cid)
    onProgress(report.copied + report.kept)
  })
  return report
}

async function* blobsOf(reader: Reader): AsyncGenerator<StoredBlob> {
  for await (const page of storedBlobs(reader, PAGE_ROWS)) yield* page
}

async function copyBlob(blob: StoredBlob, from: BlobStorage, to: BlobStorage): Promise<boolean> {
  const body = await from.open(blob).catch((error: unknown) => {
    if (error instanceof BucketUnavailable) throw error
    throw new OperatorError(
      `${from.placeOf(blob.cid)} cannot be read (${(error as Error).message}): fix that, or remove it to copy without it`,
      { cause: error },
    )
  })
  if (body === null) return false
  await using incoming = await to
    .receive(new Response(body).body ?? nothing())
    .catch((error: unknown) => blameTarget(error, to))
  if (incoming.cid !== blob.cid) return false
  await incoming.place().catch((error: unknown) => blameTarget(error, to))
  return true
}

function blameTarget(error: unknown, to: BlobStorage): never {
  const fault = storageFaultOf(error)
  if (fault === null) throw error
  throw new OperatorError(
    `${to.place} accepts no more blobs, because ${fault}: fix that, and run the same command again`,
    {
      cause: error,
    },
  )
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
