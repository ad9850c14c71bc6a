/**
 * Exports repositories as CAR archives.
 *
 * An archive holds one state, whatever is written in the meantime: it is read from a snapshot into a queue at full
 * speed, and sent from the queue at the client's speed. A slow client therefore blocks nobody else, and memory use does
 * not depend on the size of the repository.
 */
import { setImmediate } from 'node:timers/promises'
import { perContext, type Context } from '../../platform/context.ts'
import { SpillQueue, SpillRoom } from '../../platform/files/spill-queue.ts'
import { carOf, writeCar, type Block } from '../../protocol/car.ts'
import type { Cid } from '../../protocol/cid.ts'
import type { Did, Tid } from '../../protocol/identifiers.ts'
import { blocksOf, recordProof, repoBlocks, repoHead } from '../repo/repo.ts'

const CAR_TYPE = 'application/vnd.ipld.car'

/** Bytes that may be queued for clients that are slower than the disk. Beyond them, exports to such clients end early. */
const maxWaiting = { memoryBytes: 256 * 1024 ** 2, fileBytes: 2 * 1024 ** 3 }

const spillRoom = perContext(() => new SpillRoom(maxWaiting))

/**
 * Exports the whole repository, or the blocks added after revision `since`, with the present commit as root. Null if
 * there is no repository.
 */
export function exportRepo(ctx: Context, did: Did, since: Tid | null): Promise<Response | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Response | null>()
  // Resolves as soon as there is something to send; the snapshot lasts until everything was read.
  const reading = ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) resolve(null)
    else await send(ctx, writeCar(repo.head, repoBlocks(reader, repo, since)), resolve)
  })
  reading.catch(reject)
  return promise
}

async function send(ctx: Context, chunks: AsyncGenerator<Uint8Array>, respond: (response: Response) => void): Promise<void> {
  const first = await chunks.next()
  const second = await chunks.next()
  if (second.done) return respond(carResponse(first.value!))
  const queue = new SpillQueue(ctx.config.dataDir, spillRoom(ctx))
  respond(carResponse(queue.stream()))
  try {
    queue.push(first.value!)
    queue.push(second.value)
    for await (const chunk of chunks) {
      if (queue.isCancelled) return
      queue.push(chunk)
      await setImmediate()
    }
    queue.end()
  } catch (error) {
    ctx.log.error('export aborted', { error })
    queue.fail(error)
  }
}

const carResponse = (body: Uint8Array | ReadableStream<Uint8Array>): Response =>
  new Response(body as NonNullable<ConstructorParameters<typeof Response>[0]>, { headers: { 'Content-Type': CAR_TYPE } })

/** Exports blocks by CID, in an archive without a root, or returns the CIDs that the repository does not have. */
export function exportBlocks(
  ctx: Context,
  did: Did,
  cids: readonly Cid[],
): Promise<{ ok: true; response: Response } | { ok: false; missing: Cid[] }> {
  return ctx.db.shortSnapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    const found = repo === null ? cids.map(() => null) : await blocksOf(ctx, reader, repo, cids)
    const missing = cids.filter((_, i) => found[i] === null)
    if (missing.length > 0) return { ok: false, missing }
    const blocks = cids.map((cid, i): Block => ({ cid, bytes: found[i]! }))
    return { ok: true, response: carResponse(carOf(null, blocks)) }
  })
}

/** Exports a record with the proof that it exists, or the proof that it does not. Null if there is no repository. */
export function exportRecord(ctx: Context, did: Did, path: string): Promise<Response | null> {
  return ctx.db.shortSnapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return null
    return carResponse(carOf(repo.head, await recordProof(ctx, reader, repo, path)))
  })
}
