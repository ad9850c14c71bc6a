/**
 * Sends an account as one ZIP archive.
 *
 * The content of the database is read first, from one snapshot, into a temporary file. Then the archive is made at the
 * speed of the client, one blob after another, so memory use depends neither on the account nor on the client. A blob
 * that was deleted meanwhile is listed as missing. Only a few archives are made at a time, because each takes a
 * temporary file as large as the repository.
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { OneByOne } from '../../../base/one-by-one.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { refusalOf, serviceUnavailable } from '../../../http/errors.ts'
import { runsNothing } from '../../../http/foreign-bytes.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { resumed } from '../../../platform/running/request-scope.ts'
import { StreamPlaces, type StreamBounds, type StreamPlace } from '../../../platform/running/stream-places.ts'
import { wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { closeContents, collect, NoRoomForArchive, type Contents } from './archive-contents.ts'
import { archivePieces, requireRoomToReceive } from './archive-pieces.ts'

/**
 * Collecting an account reads all of it. More archives at a time would not be faster, and would take more of the disk.
 */
const archiveBounds: StreamBounds = {
  size: 4,
  ofNetwork: 2,
  maxWaiting: 64,
  waitMillis: 15_000,
  patienceMillis: 1000,
  maxStragglers: 64,
}
/** A client that takes nothing for this long is disconnected. */
const STALL_MILLIS = 10 * MINUTE_MILLIS
/** How long a caller who was revalidated counts as valid. A slow client may download for days. */
const VALID_MILLIS = 1000

const archiving = perContext(({ config }) => new StreamPlaces(config, archiveBounds))
const turns = perContext(() => new OneByOne())

export function measureArchives(ctx: Context): void {
  const places = archiving(ctx)
  ctx.metrics.gauge('account_archives_running', 'Archives of accounts that have a place', () => places.taken)
  ctx.metrics.gauge(
    'account_archives_straggling',
    'Archives of accounts that only wait for slow clients',
    () => places.stragglers,
  )
}

/**
 * Returns the archive of an account as a download. Throws `AccountNotFound` if there is no such account, `NoPlace` if
 * too many archives are being made, and `ServiceUnavailable` if the disk has no room for it. `actor` is the operator
 * who asks for it, if one does.
 */
export async function archiveOfAccount(exchange: Exchange, did: Did, actor?: string): Promise<Response> {
  const { ctx, request } = exchange
  const place = await archiving(ctx).enter(request)
  const nextTurn = async () => {
    await turns(ctx).next()
    resumed()
    request.signal.throwIfAborted()
  }
  let contents: Contents
  try {
    contents = await ctx.db.snapshot((reader) => collect(ctx, reader, did, nextTurn))
  } catch (error) {
    place.leave()
    throw inWords(error)
  }
  try {
    await requireRoomToReceive(ctx, contents)
    // The caller's access may have ended during the wait for a place, or while the account was read.
    if (request.method !== 'HEAD')
      await ctx.db.transaction(async (tx) => {
        await exchange.revalidate(tx)
        await announceIn(tx, exchange, 'exported', did, { actor })
      })
  } catch (error) {
    closeContents(contents)
    place.leave()
    throw inWords(error)
  }
  const made = ctx.clock.now()
  const name = (contents.account.handle ?? did).replaceAll(/[^a-z0-9.-]/gi, '-')
  const headers = {
    'Content-Type': 'application/zip',
    'Content-Disposition': `attachment; filename="${name}-${wireTime(made).slice(0, 10)}.zip"`,
    ...runsNothing,
  }
  if (request.method !== 'HEAD') return new Response(outgoing(exchange, contents, place, made), { headers })
  closeContents(contents)
  place.leave()
  return new Response(null, { headers })
}

const inWords = (error: unknown): unknown =>
  error instanceof NoRoomForArchive ? serviceUnavailable('The server has no room to make this archive') : error

/**
 * The archive as a stream, which releases its place and its files when it ends, or when its client is gone or too slow.
 * It also ends if the session that asked for it does.
 */
function outgoing(
  exchange: Exchange,
  contents: Contents,
  place: StreamPlace,
  made: Millis,
): ReadableStream<Uint8Array> {
  const { ctx } = exchange
  const gone = new AbortController()
  const pieces = archivePieces(ctx, contents, { made, gone: gone.signal })
  let stall: ReturnType<typeof setTimeout> | undefined
  let validAt = ctx.clock.monotonic()
  const revalidate = async () => {
    const now = ctx.clock.monotonic()
    if (now - validAt < VALID_MILLIS) return
    validAt = now
    await exchange.revalidate(ctx.db)
  }
  const end = async () => {
    clearTimeout(stall)
    gone.abort()
    // Waits for a piece that is being made.
    await pieces.return(undefined)
    closeContents(contents)
    place.leave()
    exchange.mayIdle(false)
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const cut = (reason: string) => {
          controller.error(new Error(reason))
          void end()
        }
        place.handOver(() => cut('too many other clients are slow'))
        stall = setTimeout(() => cut('the reader is idle'), STALL_MILLIS)
        stall.unref()
      },
      async pull(controller) {
        stall?.refresh()
        exchange.mayIdle(true)
        try {
          await revalidate()
          const { done, value } = await pieces.next()
          if (gone.signal.aborted) return
          if (!done) return controller.enqueue(value)
          await end()
          controller.close()
        } catch (error) {
          if (gone.signal.aborted) return
          if (refusalOf(error) === null) ctx.log.error('export aborted', { did: contents.account.did, error })
          await end()
          controller.error(error)
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}
