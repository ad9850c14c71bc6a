/**
 * A form with a file, read as it arrives: first the fields, then the file at the speed of its reader. Only the fields
 * are kept. The file is the last part of the form.
 *
 * Source: RFC 7578.
 */
import { Readable } from 'node:stream'
import type { BusboyInstance } from '@fastify/busboy'
import { Stalled, steady, uploadPace } from '../base/unstalled.ts'
import type { RequestBody } from './body.ts'
import { invalidRequest, payloadTooLarge, Refusal } from './errors.ts'

/** Before the file: all fields, and the lines around them. */
const MAX_FIELD_BYTES = 64 * 1024
const MAX_FIELDS = 32
/** Most headers of one part. */
const MAX_HEADERS = 16
const MAX_HEADER_BYTES = 4096
const BUFFER_BYTES = 64 * 1024
/**
 * The parser gets stuck if an unread part fills its buffer before it ends. So pieces are far smaller, and the parser
 * gets one in each turn of the event loop, in which unread parts are emptied.
 */
const PIECE_BYTES = 32 * 1024
const PART_BUFFER_BYTES = 4 * BUFFER_BYTES

/** Bytes that a client sends. `RequestBody` is one. */
export interface Upload {
  /** How many bytes the client announces, including what is around the file; null if it does not say. */
  readonly announcedBytes: number | null
  /** Throws `PayloadTooLarge` as soon as more than `maxBytes` are announced or counted. */
  stream(maxBytes: number): AsyncGenerator<Uint8Array>
}

export interface UploadedForm {
  fields: URLSearchParams
  /** Null if none was chosen. */
  file: UploadedFile | null
}

/**
 * Read a form up to its file, and call `work`. The rest of a file that `work` does not read is not received. Throws
 * `InvalidRequest` for another kind of form (415), and for one that is malformed, breaks off, or does not end after its
 * file, `PayloadTooLarge` for fields that are too large, and `RequestTimeout` for a form that arrives too slowly.
 */
export async function withUpload<T>(body: RequestBody, work: (form: UploadedForm) => Promise<T>): Promise<T> {
  const parser = await parserOf(body)
  const fields = new URLSearchParams()
  const begun = Promise.withResolvers<UploadedFile | null>()
  const over = Promise.withResolvers<void>()
  let stream: Readable | null = null
  const source = Readable.from(arrivingBytes(), { objectMode: false, highWaterMark: BUFFER_BYTES })

  async function* arrivingBytes(): AsyncGenerator<Uint8Array> {
    let count = 0
    for await (const chunk of steady(body.stream(Infinity), uploadPace)) {
      if (stream === null && count > MAX_FIELD_BYTES) throw payloadTooLarge()
      count += chunk.length
      for (let start = 0; start < chunk.length; start += PIECE_BYTES) yield chunk.subarray(start, start + PIECE_BYTES)
    }
  }

  const finish = () => {
    source.destroy()
    over.resolve()
  }
  const refuse = (fault: unknown) => {
    source.destroy()
    over.reject(fault)
  }
  over.promise.then(
    () => begun.resolve(null),
    (fault) => {
      stream?.destroy(fault)
      begun.reject(fault)
    },
  )

  // Not piped: the parser is finished at the end of the form, and a pipe would never end if bytes follow.
  source.on('data', (piece: Uint8Array) => {
    source.pause()
    parser.write(piece, () => setImmediate(() => source.resume()))
  })
  source.on('end', () => parser.end())
  source.on('error', (error) =>
    refuse(error instanceof Stalled ? new Refusal(408, 'RequestTimeout', 'The upload is too slow') : error),
  )
  parser.on('finish', finish)
  parser.on('error', () => refuse(invalidRequest('The form is malformed or incomplete')))
  for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const)
    parser.on(limit, () => refuse(invalidRequest('The form has more than one file, or too many fields')))
  parser.on('field', (name, value, _, isTruncated) => {
    if (isTruncated) refuse(payloadTooLarge())
    else if (stream !== null) refuse(invalidRequest('The form has a field after its file'))
    else fields.append(name, value)
  })
  parser.on('file', (_, bytes, name) => {
    stream = bytes
    // The reader of the file learns of the error, if there is a reader.
    bytes.on('error', () => undefined)
    // What browsers send if no file was chosen.
    if (!name) {
      bytes.resume()
      return begun.resolve(null)
    }
    begun.resolve(new UploadedFile(body.announcedBytes, bytes, () => over.promise))
  })

  try {
    const file = await begun.promise
    return await work({ fields, file })
  } finally {
    source.destroy()
  }
}

async function parserOf(body: RequestBody): Promise<BusboyInstance> {
  const contentType = body.request.headers.get('content-type') ?? ''
  if (body.contentType !== 'multipart/form-data')
    throw new Refusal(415, 'InvalidRequest', 'This form was sent in an unsupported format.')
  const { Busboy } = await import('@fastify/busboy')
  const limits = {
    fieldSize: MAX_FIELD_BYTES,
    fields: MAX_FIELDS,
    files: 1,
    parts: MAX_FIELDS + 1,
    headerPairs: MAX_HEADERS,
    headerSize: MAX_HEADER_BYTES,
  }
  try {
    return new Busboy({ headers: { 'content-type': contentType }, limits, fileHwm: PART_BUFFER_BYTES })
  } catch {
    throw invalidRequest('Content-Type: the form has no boundary')
  }
}

export class UploadedFile implements Upload {
  readonly #chunks: AsyncIterator<Uint8Array>
  /** Bytes that were read ahead. */
  #held: Uint8Array = new Uint8Array()

  constructor(
    readonly announcedBytes: number | null,
    bytes: Readable,
    /** Rejects with the fault of the form, if it has one. */
    readonly ended: () => Promise<void>,
  ) {
    this.#chunks = bytes[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  }

  /** Whether the file begins with these bytes. */
  async beginsWith(magic: string): Promise<boolean> {
    while (this.#held.length < magic.length) {
      const chunk = await this.#next()
      if (chunk === null) break
      this.#held = Buffer.concat([this.#held, chunk])
    }
    return Buffer.from(this.#held).toString('latin1', 0, magic.length) === magic
  }

  async *stream(maxBytes: number): AsyncGenerator<Uint8Array> {
    if (this.announcedBytes !== null && this.announcedBytes > maxBytes + MAX_FIELD_BYTES) throw payloadTooLarge()
    let count = 0
    for (let chunk: Uint8Array | null = this.#held; chunk !== null; chunk = await this.#next()) {
      count += chunk.length
      if (count > maxBytes) throw payloadTooLarge()
      if (chunk.length > 0) yield chunk
    }
    // A file is used once its form is known to end after it.
    await this.ended()
  }

  /** Returns null after the last chunk. */
  async #next(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await this.#chunks.next()
      return done ? null : value
    } catch (error) {
      await this.ended()
      throw error
    }
  }
}
