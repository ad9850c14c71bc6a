/** Smaller answers: content codings that the client asks for, and none at all when it has the answer already. */
import { Readable, type Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip } from 'node:zlib'

/** Below this a coding costs more than it saves. */
export const MIN_CODED_BYTES = 1024
const BROTLI_QUALITY = 4
const ZLIB_LEVEL = 4

/** In the order of preference among codings that the client likes alike. */
const coders: Record<string, () => Transform> = {
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: () => createGzip({ level: ZLIB_LEVEL }),
  deflate: () => createDeflate({ level: ZLIB_LEVEL }),
}

const compressible = /^(text\/|application\/(json|javascript|xml|[\w.+-]+\+json|vnd\.ipld\.car))/

/** The coding to use, or null for none. RFC 9110 section 12.5.3; a malformed weight counts as 0. */
export function chosenCoding(acceptEncoding: string | null): string | null {
  if (acceptEncoding === null || acceptEncoding === '') return null
  const weights = new Map(
    acceptEncoding.split(',').map((item) => {
      const [coding = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [coding, quality === undefined ? 1 : Number(quality.slice(2)) || 0] as const
    }),
  )
  const best = Object.keys(coders)
    .map((coding) => ({ coding, weight: weights.get(coding) ?? weights.get('*') ?? 0 }))
    .reduce((a, b) => (b.weight > a.weight ? b : a))
  return best.weight > 0 && best.weight >= (weights.get('identity') ?? 0) ? best.coding : null
}

/** The same answer in the coding that the request prefers, where that is worth it. */
export function encoded(request: Request, response: Response): Response {
  const { headers, status } = response
  if (status === 304 || status === 206 || headers.has('content-encoding') || !compressible.test(headers.get('content-type') ?? '')) return response
  const length = headers.get('content-length')
  if (length !== null && Number(length) < MIN_CODED_BYTES) return response
  headers.append('Vary', 'Accept-Encoding')
  const coding = chosenCoding(request.headers.get('accept-encoding'))
  if (coding === null) return response
  // Not before it is needed: bytes whose body was asked for go out as a stream, and a file is no longer sent by the kernel.
  const { body } = response
  if (body === null) return response
  headers.set('Content-Encoding', coding)
  const etag = headers.get('etag')
  if (etag !== null) headers.set('ETag', codedEtag(etag, coding))
  headers.delete('Content-Length')
  const coder = coders[coding]!()
  const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])
  source.on('error', (error) => coder.destroy(error))
  coder.on('close', () => source.destroy())
  return new Response(Readable.toWeb(source.pipe(coder)) as ReadableStream, { status, headers })
}

/** A weak validator of a JSON text: it says that the meaning is the same, not the bytes. */
export const weakEtag = (text: string): string => `W/"${text.length.toString(16)}-${Bun.hash(text).toString(16)}"`

/** A strong validator is of bytes, and a coding makes others of them: a part of these must not be joined to those. */
const codedEtag = (etag: string, coding: string): string => (etag.startsWith('W/') ? etag : etag.replace(/"$/, `-${coding}"`))

const coded = new RegExp(`-(?:${Object.keys(coders).join('|')})"$`)

/**
 * The tag of the request that stands for the same content, in whatever coding; null without one. It is the `ETag` of
 * the 304: any other would rename the copy that the client has.
 *
 * RFC 9110 section 13.1.2: weak comparison.
 */
export function knownTag(ifNoneMatch: string | null, etag: string): string | null {
  if (ifNoneMatch === null) return null
  if (ifNoneMatch.trim() === '*') return etag
  const opaque = (tag: string) => tag.replace(/^W\//, '')
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim())
  return tags.find((tag) => opaque(tag) === opaque(etag) || opaque(tag).replace(coded, '"') === etag) ?? null
}
