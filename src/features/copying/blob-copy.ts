/** Copies all blobs of a database from one storage to another. */
import { concurrently } from '../../base/concurrently.ts'
import type { Reader } from '../../platform/database/database.ts'
import { storedBlobs, type BlobStorage, type StoredBlob } from '../blobs/blobs.ts'

const PAGE_ROWS = 500
const TRANSFERS_AT_ONCE = 4

export interface BlobCopies {
  copied: number
  /** Already there, for example from a copy that was interrupted. */
  kept: number
  /** CIDs of blobs that the source lacks, or has damaged. */
  missing: string[]
}

/** Verifies the digest of every blob on the way. */
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
  const body = await from.open(blob)
  if (body === null) return false
  await using incoming = await to.receive(new Response(body).body ?? nothing())
  if (incoming.cid !== blob.cid) return false
  await incoming.place()
  return true
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
