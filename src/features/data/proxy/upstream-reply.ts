/**
 * Turns another service's response into ours. A success keeps its body and selected headers. An error becomes a
 * `Refusal`, with a default name and message if the other service sent none.
 */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import { codingsIn, MAX_CODINGS } from '../../../base/content-codings.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { membersOf } from '../../../base/members.ts'
import { Outline } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { runsNothing } from '../../../http/foreign-bytes.ts'
import { arrivedBody, discardBody, OutboundError } from '../../../platform/network/outbound.ts'

const passedOnSuccess = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-language',
  'atproto-repo-rev',
  'atproto-content-labelers',
  'retry-after',
]
const passedOnError = ['atproto-repo-rev', 'atproto-content-labelers', 'retry-after']

/** Longest error body that is read. */
const MAX_ERROR_BYTES = 64 * 1024
/** A longer error name is ignored, because names are kept, and shown to operators (`failure-memory.ts`). */
const MAX_NAME_CHARS = 128

/** Names and messages for error responses that lack them, by status. */
const defaultErrors: Record<number, readonly [name: string, message: string]> = {
  400: ['InvalidRequest', 'Invalid Request'],
  401: ['AuthenticationRequired', 'Authentication Required'],
  403: ['Forbidden', 'Forbidden'],
  404: ['XRPCNotSupported', 'XRPC Not Supported'],
  406: ['NotAcceptable', 'Not Acceptable'],
  413: ['PayloadTooLarge', 'Payload Too Large'],
  415: ['UnsupportedMediaType', 'Unsupported Media Type'],
  429: ['RateLimitExceeded', 'Rate Limit Exceeded'],
  501: ['MethodNotImplemented', 'Method Not Implemented'],
  502: ['UpstreamFailure', 'Upstream Failure'],
  503: ['NotEnoughResources', 'Not Enough Resources'],
  504: ['UpstreamTimeout', 'Upstream Timeout'],
}

/**
 * Returns the response for our client, with the body unchanged, which browsers do not run. An error response is thrown
 * as a `Refusal` with its status and name (or the default name), except that 500 becomes 502, and 401 becomes 502
 * `UpstreamFailure` for a client that uses DPoP.
 */
export async function relayed(request: Request, response: Response): Promise<Outline> {
  await refuseFailed(request, response)
  return passedOn(response, arrivedBody(response) ?? response.body)
}

/** Throws the `Refusal` that `relayed` throws. */
export async function refuseFailed(request: Request, response: Response): Promise<void> {
  if (response.status >= 400) throw await upstreamRefusal(request, response)
}

/** The response to a success of the other service, whose body may have been read already. */
export const passedOn = ({ status, headers }: Response, body: Outline['body']): Outline =>
  new Outline(status, { ...picked(headers, passedOnSuccess), ...runsNothing }, body)

export function picked(headers: Headers, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of names) {
    const value = headers.get(name)
    if (value !== null) found[name] = value
  }
  return found
}

async function upstreamRefusal(request: Request, response: Response): Promise<Refusal> {
  const body = await readJson(response, MAX_ERROR_BYTES)
  const headers = picked(response.headers, passedOnError)
  // A client that uses DPoP would take any 401 as the end of its own session.
  if (response.status === 401 && usesDpop(request))
    return new Refusal(502, 'UpstreamFailure', messageOf(body) ?? 'Upstream Failure', { headers })
  const status = response.status === 500 ? 502 : response.status
  const [name, message] = defaultErrors[status] ?? (status < 500 ? defaultErrors[400]! : defaultErrors[502]!)
  return new Refusal(status, errorOf(body) ?? name, messageOf(body) ?? message, { headers })
}

const usesDpop = (request: Request) => /^dpop /i.test(request.headers.get('authorization') ?? '')

const textMember = (body: unknown, name: 'error' | 'message'): string | null => {
  const text = membersOf(body)[name]
  return typeof text === 'string' && text !== '' ? text : null
}
function errorOf(body: unknown): string | null {
  const name = textMember(body, 'error')
  return name === null || name.length > MAX_NAME_CHARS ? null : name
}
const messageOf = (body: unknown) => textMember(body, 'message')

type Decoder = (bytes: Uint8Array, options: { maxOutputLength: number }) => Uint8Array

const decoders: Record<string, Decoder> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
}

export const isReadableCoding = (coding: string): boolean => Object.hasOwn(decoders, coding)

export const isJson = (response: Response): boolean =>
  /^application\/([\w.+-]+\+)?json\b/i.test(response.headers.get('content-type') ?? '')

/** Returns the decoded JSON body, or undefined if it is not JSON, is longer than `maxBytes` or is cut off. */
export async function readJson(response: Response, maxBytes: number): Promise<unknown> {
  if (!isJson(response)) {
    await discardBody(response)
    return undefined
  }
  const bytes = await readBytes(response, maxBytes)
  return bytes === null ? undefined : parseJson(bytes, response.headers.get('content-encoding'), maxBytes)
}

/**
 * Read a body that may have to be passed on nevertheless. Returns its bytes or, if it is longer than `maxBytes`, a
 * stream of all of it; null if the connection breaks.
 */
export async function readUpTo(
  response: Response,
  maxBytes: number,
): Promise<Uint8Array | ReadableStream<Uint8Array> | null> {
  const arrived = arrivedBody(response)
  if (arrived !== null) return new Uint8Array(arrived)
  const reader = (response.body ?? new Blob([]).stream()).getReader() as ReadableStreamDefaultReader<Uint8Array>
  const chunks: Uint8Array[] = []
  let count = 0
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      chunks.push(next.value)
      count += next.value.byteLength
      if (count > maxBytes) return continued(chunks, reader)
    }
  } catch (error) {
    if (error instanceof OutboundError) return null
    throw error
  }
  return Buffer.concat(chunks)
}

/** What was read, then the rest. */
function continued(
  chunks: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  const read = chunks.values()
  return new ReadableStream({
    async pull(controller) {
      const chunk = read.next().value ?? (await reader.read()).value
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** Returns null if the body is longer than `maxBytes`, or if the connection breaks before its end. */
async function readBytes(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const arrived = arrivedBody(response)
  if (arrived !== null) return arrived.byteLength > maxBytes ? null : new Uint8Array(arrived)
  const chunks: Uint8Array[] = []
  let count = 0
  try {
    for await (const chunk of response.body ?? []) {
      count += chunk.byteLength
      if (count > maxBytes) return null
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof OutboundError) return null
    throw error
  }
  return Buffer.concat(chunks)
}

/**
 * Returns undefined if the bytes do not decode to JSON, or decode to more than `maxBytes`, or are nested too deeply.
 * RFC 9110, 8.4.
 */
export function parseJson(bytes: Uint8Array, contentEncoding: string | null, maxBytes: number): unknown {
  const codings = codingsIn(contentEncoding)
  if (codings.length > MAX_CODINGS || !codings.every(isReadableCoding)) return undefined
  try {
    const decoded = codings
      .reverse()
      .reduce((coded, coding) => decoders[coding]!(coded, { maxOutputLength: maxBytes }), bytes)
    return parsedJson(new TextDecoder().decode(decoded))
  } catch {
    return undefined // bytes that do not decode or parse are not JSON, whatever the headers say
  }
}
