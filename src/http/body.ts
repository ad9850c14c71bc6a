/** Reads request bodies: bounded, decoded, strict about UTF-8, each read once. */
import { codingsIn, decoded, isKnownCoding, MAX_CODINGS, Miscoded } from '../base/content-codings.ts'
import { jsonExcess, requestBounds } from '../base/json-depth.ts'
import { Stalled, steady, uploadPace, type ArrivalPace } from '../base/unstalled.ts'
import { resumed } from '../platform/running/request-scope.ts'
import { payloadTooLarge, Refusal } from './errors.ts'

/** Bound of a JSON body whose endpoint declares none. */
export const DEFAULT_JSON_BYTES = 150 * 1024
/** Clients of the reference expect this name for JSON and text, and `PayloadTooLarge` for streams. */
const textTooLarge = () => new Refusal(413, 'PayloadTooLargeError', 'request entity too large')

const jsonFaults = {
  depth: `Nested deeper than ${requestBounds.depth} levels`,
  parts: `More than ${requestBounds.parts} lists and objects`,
  members: `An object has more than ${requestBounds.members} members`,
} as const

const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns the Content-Length in bytes, or null when there is none. Throws `InvalidRequest` if it is malformed. RFC 9110
 * section 8.6.
 */
export function announcedBytes({ headers }: Request): number | null {
  const header = headers.get('content-length')
  if (header === null) return null
  if (!/^[0-9]{1,15}$/.test(header)) throw new Refusal(400, 'InvalidRequest', 'invalid content-length')
  return Number(header)
}

export class RequestBody {
  #bytes: Promise<Uint8Array> | null = null

  constructor(
    readonly request: Request,
    /** For coded bodies. Readers can only measure the decoded bytes, which may be a thousand times as many. */
    readonly codedPace: ArrivalPace = uploadPace,
  ) {}

  /** The media type without its parameters, lower-cased; null when the header is missing. */
  get contentType(): string | null {
    const header = this.request.headers.get('content-type')
    return header === null ? null : header.split(';')[0]!.trim().toLowerCase()
  }

  get announcedBytes(): number | null {
    return announcedBytes(this.request)
  }

  /** Bytes of the decoded body; null if its length is not announced, or only that of the coded body. */
  get length(): number | null {
    return this.request.headers.has('content-encoding') ? null : this.announcedBytes
  }

  /** Whether the headers announce a body, even an empty one. RFC 9112 section 6. */
  get isAnnounced(): boolean {
    return this.request.headers.has('content-length') || this.request.headers.has('transfer-encoding')
  }

  /**
   * The decoded body in chunks. Throws `tooLarge()` as soon as more than `maxBytes` are announced or counted,
   * `UnsupportedMediaType` for an unknown content coding, `InvalidRequest` if the bytes do not match their coding, and
   * `RequestTimeout` if a coded body arrives too slowly.
   */
  async *stream(maxBytes: number, tooLarge = payloadTooLarge): AsyncGenerator<Uint8Array> {
    const announced = this.announcedBytes
    if (announced !== null && announced > maxBytes) throw tooLarge()
    if (this.request.body === null) return
    let count = 0
    for await (const chunk of this.#decoded(this.request.body)) {
      resumed()
      count += chunk.byteLength
      if (count > maxBytes) throw tooLarge()
      yield chunk
    }
  }

  /**
   * The whole decoded body, kept so that a guard that checks a signature over it and the handler may both read it.
   * Throws as `stream` does.
   */
  bytes(maxBytes: number, tooLarge = payloadTooLarge): Promise<Uint8Array> {
    return (this.#bytes ??= this.#read(maxBytes, tooLarge))
  }

  async #read(maxBytes: number, tooLarge: typeof payloadTooLarge): Promise<Uint8Array> {
    const announced = this.announcedBytes
    if (announced !== null && announced <= maxBytes && !this.request.headers.has('content-encoding'))
      return this.#whole()
    const chunks: Uint8Array[] = []
    for await (const chunk of this.stream(maxBytes, tooLarge)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  async #whole(): Promise<Uint8Array> {
    const bytes = await this.request.bytes()
    resumed()
    return bytes
  }

  async text(maxBytes: number): Promise<string> {
    try {
      return strictUtf8.decode(await this.bytes(maxBytes, textTooLarge))
    } catch (error) {
      if (error instanceof TypeError) throw new Refusal(400, 'InvalidRequest', 'The body is not valid UTF-8')
      throw error
    }
  }

  /**
   * Returns the parsed body, or undefined if it is empty. Throws `InvalidRequest` if it exceeds `requestBounds` or is
   * not UTF-8, and `SyntaxError` if it is not JSON.
   */
  async json(maxBytes: number = DEFAULT_JSON_BYTES): Promise<unknown> {
    const text = await this.text(maxBytes)
    if (text === '') return undefined
    const excess = jsonExcess(text, requestBounds)
    if (excess !== null) throw new Refusal(400, 'InvalidRequest', jsonFaults[excess])
    try {
      return JSON.parse(text)
    } catch (error) {
      throw new Refusal(400, 'SyntaxError', (error as SyntaxError).message)
    }
  }

  #decoded(body: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
    const codings = codingsIn(this.request.headers.get('content-encoding'))
    if (codings.length === 0) return body
    if (codings.length > MAX_CODINGS) throw new Refusal(415, 'UnsupportedMediaType', 'too many content-encodings')
    if (!codings.every(isKnownCoding)) throw new Refusal(415, 'UnsupportedMediaType', 'unsupported content-encoding')
    return uncoded(steady(body, this.codedPace), codings)
  }
}

async function* uncoded(body: AsyncIterable<Uint8Array>, codings: readonly string[]): AsyncGenerator<Uint8Array> {
  try {
    yield* decoded(body, codings)
  } catch (error) {
    if (error instanceof Miscoded)
      throw new Refusal(400, 'InvalidRequest', 'The body does not match its content-encoding')
    throw error instanceof Stalled ? new Refusal(408, 'RequestTimeout', 'The upload is too slow') : error
  }
}
