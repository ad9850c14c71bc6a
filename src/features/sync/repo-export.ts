/**
 * Repositories as archives.
 *
 * An archive shows one state, whatever is written while it is made: it is read from a snapshot, at full speed, into a
 * queue, and goes from there to the client at the client's speed. So a slow client holds nothing that others wait for,
 * and memory does not grow with the repository.
 */
import { setImmediate } from 'node:timers/promises'
import { perContext, type Context } from '../../platform/context.ts'
import { SpillQueue, SpillRoom } from '../../platform/files/spill-queue.ts'
import { carOf, writeCar, type Block } from '../../protocol/car.ts'
import type { Cid } from '../../protocol/cid.ts'
import type { Did, Tid } from '../../protocol/identifiers.ts'
import { blocksOf, recordProof, repoBlocks, repoHead } from '../repo/repo.ts'

const CAR_TYPE = 'application/vnd.ipld.car'

/** What may wait for clients that are slower than the disk; beyond it, exports to such clients end early. */
const maxWaiting = { memoryBytes: 256 * 1024 ** 2, fileBytes: 2 * 1024 ** 3 }

const spillRoom = perContext(() => new SpillRoom(maxWaiting))

/** The whole repository, or what came after a revision. Its root is the present commit. Null when there is none. */
export function exportRepo(ctx: Context, did: Did, since: Tid | null): Promise<Response | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Response | null>()
  // Answered as soon as there is something to send; the snapshot lasts until all of it was read.
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
    ctx.log.error('export ended early', { error })
    queue.fail(error)
  }
}

const carResponse = (body: Uint8Array | ReadableStream<Uint8Array>): Response =>
  new Response(body as NonNullable<ConstructorParameters<typeof Response>[0]>, { headers: { 'Content-Type': CAR_TYPE } })

/** Blocks by their CIDs, each once, in an archive without a root. */
export function exportBlocks(ctx: Context, did: Did, cids: readonly Cid[]): Promise<{ ok: true; response: Response } | { ok: false; missing: Cid[] }> {
  return ctx.db.shortSnapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    const found = repo === null ? cids.map(() => null) : await blocksOf(ctx, reader, repo, cids)
    const missing = cids.filter((_, i) => found[i] === null)
    if (missing.length > 0) return { ok: false, missing }
    const blocks = cids.map((cid, i): Block => ({ cid, bytes: found[i]! }))
    return { ok: true, response: carResponse(carOf(null, blocks)) }
  })
}

/** Proof that a record is there, or that it is not, and the record. Null when there is no repository. */
export function exportRecord(ctx: Context, did: Did, path: string): Promise<Response | null> {
  return ctx.db.shortSnapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return null
    return carResponse(carOf(repo.head, await recordProof(ctx, reader, repo, path)))
  })
}
