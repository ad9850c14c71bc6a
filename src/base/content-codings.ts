/**
 * Decodes compressed bodies of clients and other servers piece by piece (RFC 9110, 8.4). A kilobyte may decompress to
 * gigabytes, so no more is decoded than the reader asks for.
 */
import { Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** Each coding costs a decompressor and its memory, and a header could name thousands. */
export const MAX_CODINGS = 2

const decoders: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Returns the codings that a `Content-Encoding` names, in the order in which they were applied. */
export const codingsIn = (header: string | null): string[] =>
  (header ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity')

export const isKnownCoding = (coding: string): boolean => Object.hasOwn(decoders, coding)

/** Thrown if the bytes do not match their coding. */
export class Miscoded extends Error {}

/** Decodes a body, all of whose codings must be known. Throws `Miscoded`, or what the body throws. */
export async function* decoded(
  body: AsyncIterable<Uint8Array>,
  codings: readonly string[],
): AsyncGenerator<Uint8Array> {
  const arriving = Readable.from(body, { objectMode: false })
  let source: Readable = arriving
  for (const coding of codings.toReversed()) {
    const from = source
    const decoder = decoders[coding]!()
    from.on('error', (error) => decoder.destroy(error))
    source = from.pipe(decoder)
  }
  try {
    for await (const chunk of source) yield chunk as Uint8Array
  } catch (error) {
    const { code } = error as { code?: string }
    if (code?.startsWith('Z_') || code?.startsWith('ERR_'))
      throw new Miscoded('the body does not match its coding', { cause: error })
    throw error
  } finally {
    arriving.destroy()
  }
}
