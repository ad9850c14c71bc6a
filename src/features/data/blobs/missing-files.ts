/**
 * Fetches files that the folder lacks from the mirror: a machine that takes over has all rows and few files.
 *
 * The server does not wait for them. `startFetching` goes through all rows. A file that a reader wants before that, or
 * that turns out to be damaged later, is fetched at once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { concurrently } from '../../../base/concurrently.ts'
import { NoPlace, Places } from '../../../base/places.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { COMMIT_BYTES, hasRoomFor, NoRoom } from '../../../platform/files/free-space.ts'
import { clientHere } from '../../../platform/running/request-scope.ts'
import { forgetBlobFault, isFaulty } from './blob-fault-store.ts'
import { blobMirror, restoreFromMirror, type Restoration } from './blob-mirror.ts'
import type { BlobBody, OpenOptions, StoredBlob } from './blob-storage.ts'
import { storedBlobs } from './blob-store.ts'
import { blobFolder, blobStorage } from './open-storage.ts'

/** Rows, and the states of their files, that are read at once. Requests wait meanwhile. */
const PAGE_ROWS = 200
const TRANSFERS_AT_ONCE = 4
const BLOBS_PER_PROGRESS_LINE = 1000
/** After this many failures in a row, the pass ends: the mirror is down, or the disk is full. */
const MAX_FAILURES_IN_A_ROW = 8
/** Pause after a pass with failures. It doubles each time. */
const SHORTEST_PAUSE_MILLIS = 5000
const LONGEST_PAUSE_MILLIS = 600_000
/** Blobs that the mirror lacks, about which later passes log nothing. */
const MAX_LOST = 10_000

/** Bounds on files that are fetched for readers at the same time. */
const readerPlaces = { size: 16, ofNetwork: 8, maxWaiting: 512, waitMillis: 10_000 }
/** How long a reader waits for a file. The fetch continues after that. */
const READER_MILLIS = 10_000
/**
 * Pause of fetches for readers: of all files if the mirror does not respond, of a single file if the mirror lacks it.
 */
const REST_MILLIS = 10_000
const MAX_RESTING = 10_000

const fetches = perContext(() => ({
  underWay: new SingleFlight<string, Restoration>(),
  places: new Places(readerPlaces),
  /** Until when no file, and until when these files, are fetched for readers. Times are on the monotonic clock. */
  restsUntil: -Infinity,
  resting: new BoundedCache<number>(MAX_RESTING),
  /** Total size of the files that are being fetched. */
  bytes: 0,
  stopping: new AbortController(),
}))

/** Opens a blob, after fetching its file if need be. `afterWait` is called after a fetch, and may throw. */
export async function openStored(
  ctx: Context,
  blob: StoredBlob,
  options: OpenOptions,
  afterWait?: () => Promise<void>,
): Promise<BlobBody | null> {
  const body = await blobStorage(ctx).open(blob, options)
  if (body !== null || !(await isFetched(ctx, blob))) return body
  await afterWait?.()
  return blobStorage(ctx).open(blob, options)
}

/**
 * Fetches the file of a blob for a reader. Returns whether it is there now. A damaged file of the right size is
 * replaced only if `blob_scrub.auto_heal` is set.
 */
async function isFetched(ctx: Context, blob: StoredBlob): Promise<boolean> {
  if (blobMirror(ctx) === null) return false
  // Read it first: a reader thread has no `background`, and leaves the request to the main thread.
  const { background } = ctx
  const { restsUntil, resting } = fetches(ctx)
  if (Math.max(restsUntil, resting.get(blob.cid) ?? -Infinity) > ctx.clock.monotonic()) return false
  const isWhole = (await blobFolder(ctx).sizeOf(blob.cid)) === blob.size
  if (isWhole && !ctx.config.blobScrub.autoHeal) return false
  const fetched = Promise.withResolvers<boolean>()
  background.run('fetch of a blob', async () => fetched.resolve(await fetchForReader(ctx, blob)))
  const late = setTimeout(() => fetched.resolve(false), READER_MILLIS)
  return fetched.promise.finally(() => clearTimeout(late))
}

async function fetchForReader(ctx: Context, blob: StoredBlob): Promise<boolean> {
  const held = fetches(ctx)
  const { cid } = blob
  try {
    const outcome = await held.places.run(clientHere(), () => fetchFile(ctx, blob))
    if (outcome === 'restored') ctx.log.info('blob restored from the mirror', { cid })
    else held.resting.set(cid, ctx.clock.monotonic() + REST_MILLIS)
    return outcome === 'restored'
  } catch (error) {
    if (error instanceof NoPlace || held.stopping.signal.aborted) return false
    held.restsUntil = ctx.clock.monotonic() + REST_MILLIS
    ctx.log.warn('blob not restored', { cid, error })
    return false
  }
}

/**
 * Fetches a file, once for all callers at the time. There must be a mirror. Throws if the mirror does not respond, or
 * if the disk has only room left for commits.
 */
export const fetchFile = (ctx: Context, blob: StoredBlob): Promise<Restoration> =>
  fetches(ctx).underWay.run(blob.cid, async () => {
    const held = fetches(ctx)
    const { cid, size } = blob
    held.bytes += size
    try {
      if (!(await hasRoomFor(ctx.config.dataDir, held.bytes, COMMIT_BYTES)))
        throw new NoRoom('the disk has only room left for commits')
      const outcome = await restoreFromMirror(ctx, blobMirror(ctx)!, blob, held.stopping.signal)
      if (outcome === 'restored' && (await isFaulty(ctx.db, cid))) await forgetBlobFault(ctx.db, cid)
      return outcome
    } finally {
      held.bytes -= size
    }
  })

/** Begins to fetch files that are missing or truncated. Returns a function that stops it. */
export function startFetching(ctx: Context): () => Promise<void> {
  const { stopping } = fetches(ctx)
  const fetching = fetchMissing(ctx, stopping.signal)
  return () => {
    stopping.abort()
    return fetching
  }
}

/** Makes passes until every file is here that the mirror has. */
async function fetchMissing(ctx: Context, stopping: AbortSignal): Promise<void> {
  const lost = new Set<string>()
  for (let millis = SHORTEST_PAUSE_MILLIS; !stopping.aborted; millis = Math.min(2 * millis, LONGEST_PAUSE_MILLIS)) {
    const isDone = await pass(ctx, lost, stopping).catch((error: unknown) => {
      ctx.log.error('could not look for missing blobs', { error })
      return false
    })
    if (isDone) return
    await pause(millis, undefined, { signal: stopping }).catch(() => undefined)
  }
}

/** Fetches all missing files. Returns false if a fetch failed, so that another pass is needed. */
async function pass(ctx: Context, lost: Set<string>, stopping: AbortSignal): Promise<boolean> {
  const tally = { missing: 0, restored: 0 }
  let failures = 0
  let failuresInARow = 0
  const isOver = () => stopping.aborted || failuresInARow >= MAX_FAILURES_IN_A_ROW
  await concurrently(missingBlobs(ctx, isOver), TRANSFERS_AT_ONCE, async (blob) => {
    const { cid } = blob
    if (isOver() || lost.has(cid)) return
    if (++tally.missing % BLOBS_PER_PROGRESS_LINE === 0) ctx.log.info('restoring blobs from the mirror', tally)
    try {
      const outcome = await fetchFile(ctx, blob)
      failuresInARow = 0
      if (outcome === 'restored') tally.restored++
      else if (outcome !== 'unowned') {
        if (lost.size < MAX_LOST) lost.add(cid)
        ctx.log.error('blob not restored', { cid, outcome })
      }
    } catch (error) {
      if (stopping.aborted) return
      failures++
      ctx.log.error('blob not restored', { cid, error })
      if (++failuresInARow === MAX_FAILURES_IN_A_ROW)
        ctx.log.error('the mirror delivers no blobs; missing blobs will be fetched later')
    }
  })
  if (tally.missing > 0) ctx.log.info('blobs restored from the mirror', tally)
  return failures === 0
}

async function* missingBlobs(ctx: Context, isOver: () => boolean): AsyncGenerator<StoredBlob> {
  for await (const page of storedBlobs(ctx.db, PAGE_ROWS)) {
    if (isOver()) return
    const sizes = await Promise.all(page.map(({ cid }) => blobFolder(ctx).sizeOf(cid)))
    yield* page.filter(({ size }, i) => sizes[i] !== size)
  }
}
