/** Serves a blob: whole, in part, or as 304. Source: RFC 9110, sections 13 and 14. */
import { knownTag } from '../../http/encoding.ts'
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import type { Did } from '../../protocol/identifiers.ts'
import type { Viewer } from '../auth/auth.ts'
import { findReadable } from './blob-store.ts'
import { byteRangeOf } from './byte-range.ts'
import { blobStorage } from './open-storage.ts'

/** How long caches may keep a blob. The bytes of a CID never change, but an operator may take them down. */
const CACHE_SECS = 7 * 86_400

/** Untrusted bytes on this server's origin: browsers must never run them as a page or a script. */
const safetyHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

/**
 * Returns a response with 200, 206, 304 or 416. Refuses with `BlobNotFound` if the blob does not exist or is taken
 * down, and if no record refers to it yet and the caller is neither its owner nor the operator.
 */
export async function downloadBlob(exchange: Exchange, viewer: Viewer, did: Did, cid: string): Promise<Response> {
  const { ctx, request, replyHeaders } = exchange
  const mayPreview = viewer.admin || viewer.did === did
  const blob = await findReadable(ctx.db, did, cid)
  if (blob === null || !(blob.isPermanent || mayPreview)) throw new Refusal(400, 'BlobNotFound', 'Blob not found')

  if (viewer.did === null && !viewer.admin) replyHeaders.set('Cache-Control', `public, max-age=${CACHE_SECS}, immutable`)
  const etag = `"${cid}"`
  const headers = { ETag: etag, 'Accept-Ranges': 'bytes', ...safetyHeaders }
  const known = knownTag(request.headers.get('if-none-match'), etag)
  if (known !== null) return new Response(null, { status: 304, headers: { ...headers, ETag: known } })

  const described = { ...headers, 'Content-Type': blob.mimeType, 'Content-Disposition': `attachment; filename="${cid}"` }
  const range = byteRangeOf(request.headers, { size: blob.size, etag })
  if (range === 'unsatisfiable')
    return new Response(null, { status: 416, headers: { ...headers, 'Content-Range': `bytes */${blob.size}` } })
  const storage = blobStorage(ctx)
  // The headers say all, and a bucket would be read in vain.
  if (storage.isShared && request.method === 'HEAD' && range === null)
    return new Response(null, { headers: { ...described, 'Content-Length': String(blob.size) } })
  const body = await storage.open({ cid, size: blob.size }, { range: range ?? undefined, gone: () => request.signal })
  if (body === null) throw new Error(`the file of blob ${cid} is missing or damaged`)
  if (range === null) return new Response(body, { headers: described })
  return new Response(body, {
    status: 206,
    headers: { ...described, 'Content-Range': `bytes ${range.first}-${range.last}/${blob.size}` },
  })
}
