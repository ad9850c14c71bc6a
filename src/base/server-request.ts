/**
 * Requests to a server: bounded in time and size, encrypted, without redirects, and with one kind of error for each
 * outcome.
 */
import { membersOf } from './members.ts'
import { wholeOf } from './whole-of.ts'
import { MINUTE_MILLIS } from './durations.ts'
import { OperatorError } from './operator-error.ts'
import { parsedJson } from './parsed-json.ts'

/** Timeout of a request. A ceremony waits for the directory, which the server gives 10 s. */
const TIMEOUT_MILLIS = MINUTE_MILLIS
/** Longer explanations of a refusal are cut off. */
const MAX_SAID_CHARS = 500
/** Longer answers are cut off: none that a wallet asks for is longer. */
const MAX_ANSWER_BYTES = 5 * 1024 * 1024

/** The server understood the request and refused it. */
export class ServerRefusal extends OperatorError {
  constructor(
    readonly status: number,
    /**
     * The name of the error in either form of the wire, such as `HANDLE_TAKEN` or `InvalidToken`; empty if there was
     * none.
     */
    readonly code: string,
    message: string,
    /** The server's clock, from its `Date` header, in milliseconds since the epoch; null if it sent none. */
    readonly serverTime: number | null,
    /** The members of the JSON object in the response. */
    readonly answer: Answer = {},
  ) {
    super(message)
  }
}

/** There was no answer, or none that can be used: whether the request took effect is unknown. */
export class NoAnswer extends OperatorError {}

export type Answer = Readonly<Record<string, unknown>>

/** Returns the origin of a URL. Throws OperatorError unless it is https, or http on this machine. */
export function serverOrigin(text: string): string {
  const url = URL.parse(/^https?:/.test(text) ? text : `https://${text}`)
  if (url === null || url.hostname === '') throw new OperatorError(`${text} is not the address of a server`)
  if (!isConfidential(url)) throw new OperatorError(`data sent to ${url.origin} would not be encrypted: use https`)
  return url.origin
}

/** Whether no network sees what is sent there: it is encrypted, or stays on this machine. */
export const isConfidential = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)

export interface JsonAnswer {
  status: number
  /** Null if it is not JSON. */
  body: unknown
  headers: Headers
}

/** Make one request. Throws `NoAnswer`. */
export async function fetchJson(url: string, init: RequestInit, timeoutMillis = TIMEOUT_MILLIS): Promise<JsonAnswer> {
  const { origin, protocol } = new URL(url)
  try {
    const response = await fetch(url, {
      ...init,
      ...safeRoute(protocol),
      signal: AbortSignal.timeout(timeoutMillis),
    })
    return { status: response.status, body: parsedJson(await boundedText(response)) ?? null, headers: response.headers }
  } catch (error) {
    throw new NoAnswer(`${origin} cannot be reached: ${(error as Error).message}`, { cause: error })
  }
}

/**
 * A redirect could send a credential to another host, and a proxy from the environment could read unencrypted requests.
 * The runtime would end an upload after five minutes, even while it moves.
 */
export const safeRoute = (protocol: string) =>
  ({ redirect: 'manual', timeout: false, ...(protocol === 'http:' ? { proxy: false } : {}) }) as const

async function boundedText(response: Response): Promise<string> {
  const tooLong = () => new Error(`the response is longer than ${MAX_ANSWER_BYTES} bytes`)
  return response.body === null ? '' : (await wholeOf(response.body, MAX_ANSWER_BYTES, tooLong)).toString()
}

/**
 * Reads all forms of errors: `{ error, message }`, `{ error, error_description }` and `{ error: { code, message } }`.
 */
export function refusalOf(url: string, { status, body, headers }: JsonAnswer): ServerRefusal {
  const answer = membersOf(body)
  const { error, message, error_description: description } = answer
  const nested = membersOf(error)
  const code = nested['code'] ?? error
  const said = nested['message'] ?? message ?? description
  const text = typeof said === 'string' && said !== '' ? inOneLine(said) : `answered ${status}`
  const retryAfter = headers.get('retry-after')
  const wait = status === 429 && retryAfter !== null ? ` (try again in ${retryAfter} s)` : ''
  const time = Date.parse(headers.get('date') ?? '')
  return new ServerRefusal(
    status,
    typeof code === 'string' ? code : '',
    `${url}: ${text}${wait}`,
    Number.isNaN(time) ? null : time,
    answer,
  )
}

/** How tokens begin. If a server repeats a token that it was sent, that must be neither shown nor logged. */
const tokens = /\b(?:eyJ|clm_)[\w.~+/=-]{8,}/g

/**
 * What a server says is shown to people and stored, so it must not look like several lines, fill the screen, or contain
 * a token or a character that databases refuse.
 */
export const inOneLine = (said: string, maxChars = MAX_SAID_CHARS): string =>
  said
    .slice(0, 4 * maxChars)
    .replace(tokens, '[token]')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .slice(0, maxChars)

/** A member of an answer that has to be there. Throws `NoAnswer` if it is not a text of one line. */
export function textOf(answer: Answer, name: string): string {
  const value = answer[name]
  if (typeof value !== 'string' || value === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    throw new NoAnswer(`the server's response has no "${name}"`)
  return value
}
