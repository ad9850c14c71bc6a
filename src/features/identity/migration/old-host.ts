/**
 * A client of the server that an account comes from. A stranger named this server, so nothing that it sends is trusted:
 * requests use the outbound client for untrusted hosts, every answer is bounded in bytes and time, and its messages are
 * shortened before they are shown.
 */
import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { HOUR_SECS, MINUTE_SECS } from '../../../base/durations.ts'
import { isDeeperThan } from '../../../base/json-depth.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { inOneLine } from '../../../base/server-request.ts'
import type { Context } from '../../../platform/context.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'

const HEADERS_TIMEOUT_MILLIS = 20_000
const JSON_TIMEOUT_MILLIS = 20_000
/** Longest JSON answer. Preferences are the longest. */
const MAX_JSON_BYTES = 2 * 1024 * 1024
const MAX_REFUSAL_BYTES = 16 * 1024
const MAX_SAID_CHARS = 300
/** Most nesting levels of a JSON answer. Preferences nest deepest. */
const MAX_DEPTH = 64
/** Longest token of a session that is accepted. */
const MAX_TOKEN_CHARS = 8192
/** Longest email address. RFC 3696, erratum 1690, allows less. */
export const MAX_ADDRESS_CHARS = 320
/** Longest time that the old server may ask us to wait. */
const MAX_WAIT_SECS = HOUR_SECS

export interface OldSession {
  accessJwt: string
  refreshJwt: string
}

const token = Type.String({ minLength: 1, maxLength: MAX_TOKEN_CHARS })
const sessionShape = Type.Object({ accessJwt: token, refreshJwt: token })
const loginShape = Type.Object({
  accessJwt: token,
  refreshJwt: token,
  did: Type.String(),
  email: Type.Optional(Type.String({ maxLength: MAX_ADDRESS_CHARS })),
})

/** What `createSession` answers. */
export type OldLogin = Static<typeof loginShape>

/** Thrown if the old server understood a request and refused it. The message is the old server's own, in one line. */
export class OldHostRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Thrown if the old server cannot be used at the moment. The message is a sentence for the holder of the account. */
export class OldHostAway extends Error {
  constructor(
    message: string,
    /** How long the old server asks to wait; null if it does not say. */
    readonly waitSecs: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** Thrown if the session at the old server has ended. */
export class OldSessionEnded extends Error {}

type Params = Readonly<Record<string, string>>

interface Ask {
  method: 'GET' | 'POST'
  nsid: string
  params?: Params
  input?: object
  token: string | null
  maxBytes: number
  bodyTimeoutMillis: number
  signal?: AbortSignal
}

export class OldHost {
  constructor(
    readonly ctx: Pick<Context, 'outbound'>,
    /** Origin of the server, from the DID document. */
    readonly origin: string,
    private session: OldSession | null,
    /** Called with the tokens that replace those of the session. */
    private readonly keep: (session: OldSession) => Promise<void> = () => Promise.resolve(),
  ) {}

  get hasSession(): boolean {
    return this.session !== null
  }

  /**
   * Call a query with the session, if there is one. All methods throw `OldHostRefusal`, `OldHostAway` and
   * `OldSessionEnded`.
   */
  query<Schema extends TSchema>(nsid: string, params: Params, schema: Schema): Promise<Static<Schema>> {
    return this.#json({ method: 'GET', nsid, params, ...jsonBounds }, schema)
  }

  procedure<Schema extends TSchema>(nsid: string, input: object | undefined, schema: Schema): Promise<Static<Schema>> {
    return this.#json({ method: 'POST', nsid, input, ...jsonBounds }, schema)
  }

  /** Open a session with the password. */
  async logIn(input: object): Promise<OldLogin> {
    const ask = { method: 'POST', nsid: 'com.atproto.server.createSession', input, token: null, ...jsonBounds } as const
    const login = await parsed(await this.#send(ask), loginShape, this.origin)
    this.session = { accessJwt: login.accessJwt, refreshJwt: login.refreshJwt }
    return login
  }

  /** Download a body of at most `maxBytes`. Reading the body fails with an `OutboundError`. */
  download(
    nsid: string,
    params: Params,
    bounds: { maxBytes: number; bodyTimeoutMillis: number; signal?: AbortSignal },
  ): Promise<Response> {
    return this.#authorized({ method: 'GET', nsid, params, ...bounds })
  }

  /** End the session. Afterwards the object has no session. */
  async endSession(): Promise<void> {
    if (this.session === null) return
    const { refreshJwt } = this.session
    this.session = null
    const nsid = 'com.atproto.server.deleteSession'
    await parsed(
      await this.#send({ method: 'POST', nsid, token: refreshJwt, ...jsonBounds }),
      Type.Unknown(),
      this.origin,
    )
  }

  async #json<Schema extends TSchema>(ask: Omit<Ask, 'token'>, schema: Schema): Promise<Static<Schema>> {
    return parsed(await this.#authorized(ask), schema, this.origin)
  }

  async #authorized(ask: Omit<Ask, 'token'>): Promise<Response> {
    try {
      return await this.#send({ ...ask, token: this.session?.accessJwt ?? null })
    } catch (error) {
      if (this.session === null || !isExpired(error)) throw error
      await this.#refresh(this.session)
      return this.#send({ ...ask, token: this.session.accessJwt })
    }
  }

  async #refresh({ refreshJwt }: OldSession): Promise<void> {
    const nsid = 'com.atproto.server.refreshSession'
    try {
      const answer = await this.#send({ method: 'POST', nsid, token: refreshJwt, ...jsonBounds })
      const renewed = await parsed(answer, sessionShape, this.origin)
      this.session = { accessJwt: renewed.accessJwt, refreshJwt: renewed.refreshJwt }
    } catch (error) {
      if (!(error instanceof OldHostRefusal)) throw error
      throw new OldSessionEnded('The sign-in at the old server has ended', { cause: error })
    }
    await this.keep(this.session)
  }

  async #send({ method, nsid, params = {}, input, token, ...bounds }: Ask): Promise<Response> {
    const query = new URLSearchParams(params).toString()
    try {
      const response = await this.ctx.outbound.fetch(`${this.origin}/xrpc/${nsid}${query && `?${query}`}`, {
        method,
        headers: {
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(input !== undefined && { 'content-type': 'application/json' }),
        },
        ...(input !== undefined && { body: JSON.stringify(input) }),
        headersTimeoutMillis: HEADERS_TIMEOUT_MILLIS,
        ...bounds,
      })
      if (response.ok) return response
      throw await refusalIn(response, this.origin)
    } catch (error) {
      throw awayOf(error, this.origin)
    }
  }
}

const jsonBounds = { maxBytes: MAX_JSON_BYTES, bodyTimeoutMillis: JSON_TIMEOUT_MILLIS }

const isExpired = (error: unknown): boolean =>
  error instanceof OldHostRefusal && (error.status === 401 || ['ExpiredToken', 'InvalidToken'].includes(error.code))

async function parsed<Schema extends TSchema>(
  response: Response,
  schema: Schema,
  origin: string,
): Promise<Static<Schema>> {
  let text: string
  try {
    text = await response.text()
  } catch (error) {
    throw awayOf(error, origin)
  }
  const value = text === '' ? {} : isDeeperThan(text, MAX_DEPTH) ? undefined : parsedJson(text)
  if (!Value.Check(schema, value)) throw new OldHostAway(`${hostOf(origin)} sent an answer that is not understood.`)
  return value
}

async function refusalIn(response: Response, origin: string): Promise<Error> {
  const value = parsedJson(await beginningOf(response)) as { error?: unknown; message?: unknown } | null | undefined
  const said =
    typeof value?.message === 'string' ? inOneLine(value.message, MAX_SAID_CHARS) : `status ${response.status}`
  if (response.status === 429 || response.status >= 500)
    return new OldHostAway(`${hostOf(origin)} is busy or out of order (${said}).`, waitOf(response))
  return new OldHostRefusal(
    response.status,
    typeof value?.error === 'string' ? value.error.slice(0, MAX_SAID_CHARS) : '',
    said,
  )
}

/** A refusal may have as many bytes as the requested content, so only the beginning, which says why, is read. */
async function beginningOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    length += chunk.byteLength
    if (length > MAX_REFUSAL_BYTES) break
  }
  return Buffer.concat(chunks).toString()
}

/** Source: RFC 9110 section 10.2.3, and the header of the reference. */
function waitOf({ status, headers }: Response): number | null {
  const given = headers.get('retry-after') ?? ''
  const secs = /^\d{1,9}$/.test(given) ? Number(given) : status === 429 ? MINUTE_SECS : null
  return secs === null ? null : Math.min(Math.max(secs, 1), MAX_WAIT_SECS)
}

/** Converts the failure of a request, or of reading its body, to an error about the old server. */
export function awayOf(error: unknown, origin: string): unknown {
  if (error instanceof LookupsFull) return new OldHostAway('This server is busy.', null, { cause: error })
  if (!(error instanceof OutboundError)) return error
  if (error.fault === 'too-large')
    return new OldHostRefusal(413, 'PayloadTooLarge', `${hostOf(origin)} sent more than this server accepts`)
  const words = {
    refused: 'is not an address that this server may call',
    unresolved: 'has no address',
    unreachable: 'cannot be reached',
    timeout: 'does not answer in time',
    redirects: 'sent this server somewhere else',
  } as const
  return new OldHostAway(`${hostOf(origin)} ${words[error.fault]}.`, null, { cause: error })
}

export const hostOf = (origin: string): string => new URL(origin).host
