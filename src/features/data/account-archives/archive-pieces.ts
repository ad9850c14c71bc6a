/**
 * Makes an archive of the collected files and the blobs, one blob after another. A blob that was deleted meanwhile is
 * listed as missing.
 */
import { setImmediate } from 'node:timers/promises'
import type { Context } from '../../../platform/context.ts'
import { hasRoomFor } from '../../../platform/files/free-space.ts'
import { Spool } from '../../../platform/files/spool.ts'
import { storageFaultOf } from '../../../platform/files/storage-faults.ts'
import { ZipWriter } from '../../../platform/files/zip-writer.ts'
import { csvRow, BYTE_ORDER_MARK } from '../../../protocol/csv.ts'
import { parseCid } from '../../../protocol/cid.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { blobBytes, type StoredBlob } from '../blobs/blobs.ts'
import { CollectedFiles, jsonText, NoRoomForArchive, type Contents } from './archive-contents.ts'
import { ARCHIVE_FORMAT, ARCHIVE_VERSION, archiveNames } from './archive-names.ts'

interface Making {
  made: Millis
  /** Aborts when the client is gone. */
  gone: AbortSignal
}

/** The caller closes `contents`. */
export async function* archivePieces(ctx: Context, contents: Contents, making: Making): AsyncGenerator<Uint8Array> {
  const { dataDir, publicUrl } = ctx.config
  const modifiedAt = making.made
  const writer = new ZipWriter(dataDir)
  const late = new CollectedFiles(dataDir)
  const list = new Spool(dataDir)
  const totals = { included: 0, missing: 0, bytes: 0 }
  try {
    for (const file of contents.files.list) yield* writer.entry({ ...file, modifiedAt }, contents.files.read(file))
    list.append(Buffer.from(BYTE_ORDER_MARK + csvRow(['file', 'cid', 'sha256', 'bytes', 'mediaType', 'state'])))
    for (const batch of contents.blobs.batches())
      for (const blob of batch) {
        const name = archiveNames.blob(blob.cid, blob.mimeType)
        const bytes = blob.isTakenDown ? null : await bytesOf(ctx, blob, making.gone)
        const state = blob.isTakenDown ? 'taken down' : bytes === null ? 'missing' : 'included'
        const sha256 = Buffer.from(parseCid(blob.cid)!.digest).toString('hex')
        list.append(
          Buffer.from(csvRow([bytes === null ? '' : name, blob.cid, sha256, String(blob.size), blob.mimeType, state])),
        )
        if (bytes === null) totals.missing++
        else {
          yield* writer.entry({ name, size: blob.size, crc32: null, modifiedAt }, bytes)
          totals.included++
          totals.bytes += blob.size
        }
      }
    await late.add(archiveNames.blobList, list.read(), () => setImmediate())
    const { account, repo } = contents
    const manifest = {
      format: ARCHIVE_FORMAT,
      version: ARCHIVE_VERSION,
      did: account.did,
      handle: account.handle,
      service: publicUrl,
      createdAt: wireTime(making.made),
      repo: repo && { rev: repo.rev, head: repo.head.toString() },
      blobs: { ...totals, list: archiveNames.blobList },
      files: [...contents.files.list, ...late.list].map(({ name, size, sha256 }) => ({ name, bytes: size, sha256 })),
    }
    await late.add(archiveNames.manifest, [jsonText(manifest)], () => setImmediate())
    for (const file of late.list) yield* writer.entry({ ...file, modifiedAt }, late.read(file))
    yield* writer.end()
  } finally {
    writer.close()
    late.close()
    list.close()
  }
}

/** Throws `NoRoomForArchive` if the disk of a folder would not have its reserve left after another `bytes`. */
export async function requireRoom(folder: string, bytes: number): Promise<void> {
  if (!(await hasRoomFor(folder, bytes))) throw new NoRoomForArchive(folder)
}

/** Throws `NoRoomForArchive` if there is no room to receive the largest blob from a bucket. */
export async function requireRoomToReceive(ctx: Context, { blobs }: Contents): Promise<void> {
  if (!blobBytes.storage(ctx).isShared) return
  let largest = 0
  for (const batch of blobs.batches()) for (const { size } of batch) largest = Math.max(largest, size)
  if (largest > 0) await requireRoom(ctx.config.dataDir, largest)
}

/**
 * Returns the bytes of a blob, all of which are right; null if the blob is missing or damaged. Damage to an object in a
 * bucket shows only at its last bytes, so a blob from a bucket is received as a whole before any of it is sent.
 */
async function bytesOf(ctx: Context, blob: StoredBlob, gone: AbortSignal): Promise<AsyncIterable<Uint8Array> | null> {
  const storage = blobBytes.storage(ctx)
  const body = await blobBytes.open(ctx, blob, { gone: () => gone })
  if (body === null) return null
  const stream = new Response(body as ConstructorParameters<typeof Response>[0]).body!
  return storage.isShared ? received(ctx, blob, stream) : stream
}

async function received(
  ctx: Context,
  { cid, size }: StoredBlob,
  stream: ReadableStream<Uint8Array>,
): Promise<AsyncIterable<Uint8Array> | null> {
  const { dataDir } = ctx.config
  const spool = new Spool(dataDir)
  try {
    await requireRoom(dataDir, size)
    for await (const chunk of stream) spool.append(chunk)
  } catch (error) {
    spool.close()
    // The blob is not missing: this server's disk has no room for it.
    if (error instanceof NoRoomForArchive || storageFaultOf(error) !== null) throw error
    ctx.log.error('blob file is missing or damaged', { cid, error })
    return null
  }
  return (async function* () {
    try {
      yield* spool.read()
    } finally {
      spool.close()
    }
  })()
}
