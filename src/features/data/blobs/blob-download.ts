/** Serves a blob: whole, in part, or as 304. Source: RFC 9110, sections 13 and 14. */
import { DAY_SECS } from '../../../base/durations.ts'
import { knownTag } from '../../../http/encoding.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { runsNothing } from '../../../http/foreign-bytes.ts'
import { Refusal, serviceUnavailable, upstreamFailure } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import { StreamPlaces, type StreamBounds } from '../../../platform/running/stream-places.ts'
import type { Did, SpaceUri } from '../../../protocol/identifiers.ts'
import { requireVisibleRepo, type Viewer } from '../../access/auth/auth.ts'
import type { BlobBody, StoredBlob } from './blob-storage.ts'
import { findReadable, type ReadableBlob } from './blob-store.ts'
import { byteRangeOf, type ByteRange } from './byte-range.ts'
import { openStored } from './missing-files.ts'
import { blobStorage } from './open-storage.ts'
import { isReferredInSpace } from './space-reference-store.ts'

/** How long browsers may keep a blob: the bytes of a CID never change. */
const CACHE_SECS = 7 * DAY_SECS
/** How long a shared cache may serve a blob before it asks again: an operator may take the blob down. */
const SHARED_CACHE_SECS = 60

/** Limits the log lines that readers of a lost blob cause. */
const lostLines = perContext(({ clock }) => new LogRateLimiter(clock))
/** For blobs from a bucket. A client that is slower than `patienceMillis` keeps a piece of its blob in memory. */
const downloadBounds: StreamBounds = {
  size: 128,
  ofNetwork: 32,
  maxWaiting: 1024,
  waitMillis: 15_000,
  patienceMillis: 1000,
  maxStragglers: 256,
}

const downloading = perContext(({ config }) => new StreamPlaces(config, downloadBounds))

const LOST = 'The stored bytes of this blob are missing or damaged'

/**
 * Returns a response with 200, 206, 304 or 416. Refuses with `BlobNotFound` if the blob does not exist or is taken
 * down, if only records in spaces refer to it, or if no record refers to it yet and the caller is neither its owner nor
 * the operator. A moderator can also read a blob that is taken down or in quarantine, even if only records in spaces
 * refer to it. Refuses with `UpstreamFailure` if the bucket has lost or damaged the blob, and with `ServiceUnavailable`
 * if the folder has, and the mirror does not have the blob either, or does not deliver it in time.
 */
export async function downloadBlob(
  exchange: Exchange,
  viewer: Viewer | 'moderator',
  did: Did,
  cid: string,
): Promise<Response> {
  const { ctx, replyHeaders } = exchange
  if (viewer === 'moderator' && (await findReadable(ctx.db, did, cid)) === null)
    return sendBlob(exchange, present(await findReadable(ctx.db, did, cid, true)), did, cid)
  const reader = viewer === 'moderator' ? { did: null, admin: true } : viewer
  const blob = await readableBy(ctx, reader, did, cid)
  if (reader.did === null && !reader.admin)
    replyHeaders.set('Cache-Control', `public, max-age=${CACHE_SECS}, s-maxage=${SHARED_CACHE_SECS}, immutable`)
  return sendBlob(exchange, blob, did, cid, async () => {
    await requireVisibleRepo(ctx, reader, did)
    await readableBy(ctx, reader, did, cid)
  })
}

async function readableBy({ db }: Context, viewer: Viewer, did: Did, cid: string): Promise<ReadableBlob> {
  const blob = present(await findReadable(db, did, cid))
  if (blob.isPermanent) return blob
  const mayPreview = viewer.admin || viewer.did === did
  // Those who may call this method need not have access to the space.
  if (!mayPreview || (await isReferredInSpace(db, did, cid, null))) throw blobNotFound()
  return blob
}

function present(blob: ReadableBlob | null): ReadableBlob {
  if (blob === null) throw blobNotFound()
  return blob
}

const blobNotFound = () => new Refusal(400, 'BlobNotFound', 'Blob not found')

/** Like `downloadBlob`, for a blob to which a record of the account in a space refers. No cache may keep it. */
export async function downloadSpaceBlob(
  exchange: Exchange,
  { did, space, cid }: { did: Did; space: SpaceUri; cid: string },
): Promise<Response> {
  const { db } = exchange.ctx
  const find = async () =>
    present((await isReferredInSpace(db, did, cid, space)) ? await findReadable(db, did, cid) : null)
  const blob = await find()
  exchange.replyHeaders.set('Cache-Control', 'private, no-store')
  return sendBlob(exchange, blob, did, cid, async () => void (await find()))
}

/**
 * `stillReadable` is called if the request had to wait for the bytes, and throws if the caller may not read them any
 * more.
 */
async function sendBlob(
  exchange: Exchange,
  blob: ReadableBlob,
  did: Did,
  cid: string,
  stillReadable?: () => Promise<void>,
): Promise<Response> {
  const { ctx, request } = exchange
  const etag = `"${cid}"`
  const headers = { ETag: etag, 'Accept-Ranges': 'bytes', ...runsNothing }
  const known = knownTag(request.headers.get('if-none-match'), etag)
  if (known !== null) return new Response(null, { status: 304, headers: { ...headers, ETag: known } })

  const described = {
    ...headers,
    'Content-Type': blob.mimeType,
    'Content-Disposition': `attachment; filename="${cid}"`,
  }
  const range = byteRangeOf(request.headers, { size: blob.size, etag })
  if (range === 'unsatisfiable')
    return new Response(null, { status: 416, headers: { ...headers, 'Content-Range': `bytes */${blob.size}` } })
  const part = range && { ...described, 'Content-Range': `bytes ${range.first}-${range.last}/${blob.size}` }
  const storage = blobStorage(ctx)
  // A HEAD request needs only the headers, so do not read the bucket for it.
  if (storage.isShared && request.method === 'HEAD') {
    const length = range === null ? blob.size : range.last - range.first + 1
    return new Response(null, {
      status: part ? 206 : 200,
      headers: { ...(part ?? described), 'Content-Length': String(length) },
    })
  }
  const body = await openBlob(exchange, { cid, size: blob.size }, range ?? undefined, stillReadable)
  if (body === null) {
    lostLines(ctx).within(cid, (omitted) => ctx.log.error('blob file is missing or damaged', { did, cid, omitted }))
    throw storage.isShared ? upstreamFailure(LOST) : serviceUnavailable(LOST)
  }
  return new Response(body, part ? { status: 206, headers: part } : { headers: described })
}

/** Opens a blob. Reading it from a bucket takes a place. Throws `NoPlace` if too many blobs are being read. */
async function openBlob(
  { ctx, request }: Exchange,
  blob: StoredBlob,
  range: ByteRange | undefined,
  afterWait: (() => Promise<void>) | undefined,
): Promise<BlobBody | null> {
  const storage = blobStorage(ctx)
  if (!storage.isShared) return openStored(ctx, blob, { range }, afterWait)
  const place = await downloading(ctx).enter(request, afterWait)
  const cut = new AbortController()
  let body: BlobBody | null = null
  try {
    return (body = await storage.open(blob, {
      range,
      gone: () => AbortSignal.any([request.signal, cut.signal]),
      onEnd: place.leave,
    }))
  } finally {
    if (body instanceof ReadableStream) place.handOver(() => cut.abort(new Error('too many other clients are slow')))
    else place.leave()
  }
}
