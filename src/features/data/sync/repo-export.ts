/**
 * Exports repositories as CAR archives.
 *
 * An archive holds one state, whatever is written in the meantime: it is read from a snapshot into a queue at full
 * speed, and sent from the queue at the client's speed. A slow client therefore blocks no other client, and memory use
 * does not depend on the size of the repository. Exports have places, because each takes some memory; clients that want
 * more than there are wait for a turn.
 */
import { OneByOne } from '../../../base/one-by-one.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { resumed } from '../../../platform/running/request-scope.ts'
import { StreamPlaces, type StreamBounds } from '../../../platform/running/stream-places.ts'
import { carOf, rootlessHeader, writeCar } from '../../../protocol/car.ts'
import type { Cid } from '../../../protocol/cid.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { recordProof, repoBlocks, repoHead, sectionsOf } from '../repo/repo.ts'
import { requireVisibleRepo, type Viewer } from '../../access/auth/auth.ts'
import { carResponse, OutgoingCar, type Recipient } from './outgoing-car.ts'

/** The client that asks, which may see the repository as it is now. */
type Asker = Recipient & { caller: Viewer }

/** For exports of repositories. More exports at a time would take more memory, and would not be faster. */
const exportBounds: StreamBounds = {
  size: 32,
  ofNetwork: 8,
  maxWaiting: 512,
  waitMillis: 15_000,
  patienceMillis: 1000,
  maxStragglers: 256,
}
/** For blocks and proofs. Nearly all of these requests are over in the turn of the event loop in which they begin. */
const readBounds: StreamBounds = { ...exportBounds, size: 32, ofNetwork: 16, maxWaiting: 10_000 }
/** A block has at most 2 MB, and most have less than a kilobyte. */
const BLOCKS_AT_ONCE = 24

const exporting = perContext(({ config }) => new StreamPlaces(config, exportBounds))
const readingBlocks = perContext(({ config }) => new StreamPlaces(config, readBounds))
const turns = perContext(() => new OneByOne())

/** Other requests are served after each piece that is read, however many exports run. */
async function nextTurn(ctx: Context): Promise<void> {
  await turns(ctx).next()
  resumed()
}

/** Checked again after a wait for a place: the account may have been taken down or deactivated meanwhile. */
const stillVisible =
  ({ ctx, caller }: Asker, did: Did) =>
  () =>
    requireVisibleRepo(ctx, caller, did)

export function measureExports(ctx: Context): void {
  const places = exporting(ctx)
  ctx.metrics.gauge('repo_exports_running', 'Exports of repositories that have a place', () => places.taken)
  ctx.metrics.gauge('repo_exports_waiting', 'Exports of repositories that wait for a place', () => places.waiting)
  ctx.metrics.gauge(
    'repo_exports_straggling',
    'Exports of repositories that only wait for slow clients',
    () => places.stragglers,
  )
}

/**
 * Exports the whole repository, or the blocks added after revision `since`, with the present commit as root. Null if
 * there is no repository. Throws `NoPlace` if too many exports are under way.
 */
export async function exportRepo(recipient: Asker, did: Did, since: Tid | null): Promise<Response | null> {
  const { ctx, request } = recipient
  if (request.method === 'HEAD') return (await repoHead(ctx.db, did)) && carResponse(null)
  const outgoing = new OutgoingCar(recipient, await exporting(ctx).enter(request, stillVisible(recipient, did)))
  // Resolves as soon as the response can begin; the snapshot lasts until everything was read.
  const { promise, resolve, reject } = Promise.withResolvers<Response | null>()
  const begin = () => resolve(outgoing.response())
  const reading = ctx.db.snapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    if (repo === null) return null
    for await (const chunk of writeCar(repo.head, repoBlocks(reader, repo, since))) {
      if (outgoing.isCancelled) return null
      const hasBegun = outgoing.isQueued
      outgoing.push(chunk)
      if (!outgoing.isQueued) continue
      if (!hasBegun) begin()
      await nextTurn(ctx)
    }
    return repo
  })
  reading.then(
    (repo) => {
      outgoing.end()
      if (repo === null) resolve(null)
      else if (!outgoing.isQueued) begin()
    },
    (error: unknown) => {
      outgoing.fail(error)
      reject(error)
    },
  )
  return promise
}

/**
 * Exports blocks by CID, at least one, in an archive without a root, or returns the CIDs that the repository does not
 * have.
 */
export async function exportBlocks(
  recipient: Asker,
  did: Did,
  cids: readonly Cid[],
): Promise<{ ok: true; response: Response } | { ok: false; missing: Cid[] }> {
  const missing: Cid[] = []
  const response = await sent(recipient, did, async (outgoing) => {
    for (let start = 0; start < cids.length; start += BLOCKS_AT_ONCE) {
      if (start > 0) await nextTurn(recipient.ctx)
      const sections = await sectionsAmong(recipient, did, cids.slice(start, start + BLOCKS_AT_ONCE), missing)
      // Copied, because `push` takes its chunk over, and the cached sections must stay as they are.
      outgoing.push(Buffer.concat(start === 0 ? [rootlessHeader, ...sections] : sections))
    }
    return missing.length === 0
  })
  return response === null ? { ok: false, missing } : { ok: true, response }
}

/** Returns the blocks that exist as CAR sections, and adds the CIDs of the others to `missing`. */
function sectionsAmong({ ctx }: Recipient, did: Did, cids: readonly Cid[], missing: Cid[]): Promise<Uint8Array[]> {
  return ctx.db.shortSnapshot(async (reader) => {
    const repo = await repoHead(reader, did)
    const found = repo === null ? cids.map(() => null) : await sectionsOf(ctx, reader, repo, cids)
    if (found.includes(null)) missing.push(...cids.filter((_, i) => found[i] === null))
    return found.filter((section) => section !== null)
  })
}

/** Exports a record with the proof that it exists, or the proof that it does not. Null if there is no repository. */
export function exportRecord(recipient: Asker, did: Did, path: string): Promise<Response | null> {
  const { ctx } = recipient
  return sent(recipient, did, async (outgoing) => {
    const car = await ctx.db.shortSnapshot(async (reader) => {
      const proof = await recordProof(ctx, reader, did, path)
      return proof && carOf(proof.repo.head, proof.blocks)
    })
    if (car !== null) outgoing.push(car)
    return car !== null
  })
}

/** Returns what `write` pushes; null if it returns false. */
async function sent(
  recipient: Asker,
  did: Did,
  write: (outgoing: OutgoingCar) => Promise<boolean>,
): Promise<Response | null> {
  const { ctx, request } = recipient
  const outgoing = new OutgoingCar(recipient, await readingBlocks(ctx).enter(request, stillVisible(recipient, did)))
  try {
    if (await write(outgoing)) {
      outgoing.end()
      return outgoing.response()
    }
  } catch (error) {
    outgoing.drop()
    throw error
  }
  outgoing.drop()
  return null
}
