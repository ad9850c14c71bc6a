/** Smaller responses: content codings that the client accepts, and entity tags for what it already has. */
import { Readable, type Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip } from 'node:zlib'

/** A response shorter than this is sent as it is: coding it costs more than it saves. */
export const MIN_CODED_BYTES = 1024
/**
 * A body in memory that is no longer than this is coded at once, on this thread, in 1.2 ms at most. That takes a fifth
 * to a quarter of the processor time of a streaming coder, and no more time of this thread: a stream passes through
 * four queues. Level 1 of libdeflate makes the body as short as level 4 of zlib, within 3 %.
 */
const MAX_CODED_AT_ONCE = 256 * 1024
const atOnce = { level: 1, library: 'libdeflate' } as const
const BROTLI_QUALITY = 4
const ZLIB_LEVEL = 4

/** In order of preference among codings to which the client gives equal weight. */
const coders: Record<string, () => Transform> = {
  gzip: () => createGzip({ level: ZLIB_LEVEL }),
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  deflate: () => createDeflate({ level: ZLIB_LEVEL }),
}

/** A response whose body is in memory. */
export class WholeResponse extends Response {
  constructor(
    readonly whole: string | Uint8Array,
    init: ResponseInit,
  ) {
    super(whole as ConstructorParameters<typeof Response>[0], init)
  }
}

const compressible = /^text\/|^application\/(?:json|javascript|xml|vnd\.ipld\.car)|^application\/[\w.+-]+\+json/

/** Returns the content coding to use, or null for none. A malformed weight counts as 0. RFC 9110 section 12.5.3. */
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

/**
 * Most responses that are coded at a time. Until its client has taken most of it, a response keeps the state and the
 * buffers of its coder, up to 0.7 MB, and a client may request many and take nothing.
 */
const MAX_CODERS = 128

/** Counts the coders of a server. */
export class CodingRoom {
  #coders = 0

  get isFull(): boolean {
    return this.#coders >= MAX_CODERS
  }

  /** The coder counts until it has ended. */
  enter(coder: Transform): void {
    this.#coders++
    coder.once('close', () => this.#coders--)
  }
}

/**
 * Returns the response in the coding that the request prefers, or unchanged if coding is not worth it or not possible,
 * or if there is no room for another coder.
 *
 * RFC 9110 section 8.4.
 */
export function encoded(room: CodingRoom, request: Request, response: Response): Response {
  const { headers, status } = response
  if (
    status === 304 ||
    status === 206 ||
    headers.has('content-encoding') ||
    !compressible.test(headers.get('content-type') ?? '')
  )
    return response
  const whole = response instanceof WholeResponse ? response.whole : null
  const length = whole?.length ?? headers.get('content-length')
  if (length !== null && Number(length) < MIN_CODED_BYTES) return response
  headers.append('Vary', 'Accept-Encoding')
  const coding = chosenCoding(request.headers.get('accept-encoding'))
  if (coding === null) return response
  if (coding === 'gzip' && whole !== null && whole.length <= MAX_CODED_AT_ONCE) {
    describeCoded(headers, coding)
    return new Response(Bun.gzipSync(whole as Uint8Array<ArrayBuffer>, atOnce), { status, headers })
  }
  if (room.isFull) return response
  // Read `body` only when it is needed: reading it turns bytes into a stream, and the kernel no longer sends a file.
  const { body } = response
  if (body === null) return response
  describeCoded(headers, coding)
  // A response to HEAD sends no body, so a coder of it would not end.
  if (request.method === 'HEAD') {
    // A source that has failed has nothing to end.
    body.cancel().catch(() => undefined)
    return new Response(new ReadableStream(), { status, headers })
  }
  const coder = coders[coding]!()
  room.enter(coder)
  const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0])
  source.on('error', (error) => coder.destroy(error))
  coder.on('close', () => source.destroy())
  return new Response(Readable.toWeb(source.pipe(coder)) as ReadableStream, { status, headers })
}

function describeCoded(headers: Headers, coding: string): void {
  headers.set('Content-Encoding', coding)
  const etag = headers.get('etag')
  if (etag !== null) headers.set('ETag', codedEtag(etag, coding))
  headers.delete('Content-Length')
}

/**
 * Returns a weak validator of a JSON text: it promises the same meaning, not the same bytes. RFC 9110 section 8.8.1.
 */
export const weakEtag = (text: string): string => `W/"${text.length.toString(16)}-${Bun.hash(text).toString(16)}"`

/** A strong validator identifies exact bytes, which a coding changes: parts of the two must never be joined. */
const codedEtag = (etag: string, coding: string): string =>
  etag.startsWith('W/') ? etag : etag.replace(/"$/, `-${coding}"`)

const coded = new RegExp(`-(?:${Object.keys(coders).join('|')})"$`)

/**
 * Returns the tag in `If-None-Match` that stands for the same content in any coding, or null if there is none. The 304
 * carries this tag as its `ETag`: any other would rename the copy that the client holds.
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
