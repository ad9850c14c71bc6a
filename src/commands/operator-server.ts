/** HTTP client for a running server, authenticated by the admin token. */
import type { Config } from '../platform/configuration/config.ts'
import { OperatorError } from '../base/operator-error.ts'
import { parsedJson } from '../base/parsed-json.ts'
import { safeRoute } from '../base/server-request.ts'
import { userAgentHeader } from '../base/user-agent-header.ts'
import { arriving } from './downloads.ts'
import { ownUrl } from '../platform/configuration/own-url.ts'

/** Timeout of a request: long enough to delete a large account or to check all blobs. */
const TIMEOUT_MILLIS = 600_000

const SERVER_ERROR = 500
/** The status for methods that a server does not offer. */
const NOT_OFFERED = 501

/** No server accepts connections at the address. */
export class NoServer extends OperatorError {}

export type Parameters = Readonly<Record<string, string | number | undefined>>

export class Server {
  readonly #token: string | null
  readonly #reason: string | null

  /**
   * `token` is null if none is configured. Requests then carry no credential, and a 401 tells the operator how to set
   * one. `reason` is why the operator acts, for the audit log.
   */
  constructor(
    readonly url: string,
    token: string | null,
    reason: string | null = null,
  ) {
    this.#token = token
    this.#reason = reason
  }

  get<T>(path: string, parameters: Parameters = {}): Promise<T> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value))
    return this.#ask<T>(query.size === 0 ? path : `${path}?${query}`, { method: 'GET' })
  }

  post<T>(path: string, json?: object): Promise<T> {
    return this.#ask<T>(path, postOf(json))
  }

  /** Send the request with an account holder's token, or without any credential. Never sends the admin token. */
  async postAsHolder<T>(path: string, json?: object, token?: string): Promise<T> {
    const { headers, ...init } = postOf(json)
    return this.#answer<T>(
      await this.#fetch(path, {
        ...init,
        headers: token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` },
      }),
    )
  }

  /** Yields the bytes of a download, which may take as long as bytes keep arriving. */
  async *download(path: string): AsyncGenerator<Uint8Array> {
    const response = await this.#authorized(path, { method: 'GET' }, null)
    if (!response.ok) throw new OperatorError(faultOf(response, await response.text()))
    yield* arriving(response, this.url)
  }

  /** Send a file, which may take as long as it needs. */
  async upload<T>(path: string, file: string, contentType: string): Promise<T> {
    const init = { method: 'POST', headers: { 'content-type': contentType }, body: Bun.file(file) }
    return this.#answer<T>(await this.#authorized(path, init, null))
  }

  async #ask<T>(path: string, init: Request): Promise<T> {
    return this.#answer<T>(await this.#authorized(path, init, TIMEOUT_MILLIS))
  }

  async #authorized(path: string, init: Request, timeoutMillis: number | null): Promise<Response> {
    // Basic authentication (RFC 7617) is accepted both under `/xrpc` and under `/v1`.
    const authorization: Record<string, string> =
      this.#token === null ? {} : { authorization: `Basic ${Buffer.from(`admin:${this.#token}`).toString('base64')}` }
    const reason: Record<string, string> =
      this.#reason === null ? {} : { 'x-admin-reason': encodeURIComponent(this.#reason) }
    const headers = { ...init.headers, ...authorization, ...reason }
    const response = await this.#fetch(path, { ...init, headers }, timeoutMillis)
    if (response.status !== 401) return response
    if (this.#token !== null) throw new OperatorError(`${this.url} does not accept this admin token`)
    throw new OperatorError(
      'the running server requires the admin token: set admin_token (SERVICE_ADMIN_TOKEN) for the server and for this command',
    )
  }

  /** `timeoutMillis` limits the time until the whole response has arrived; null sets no limit. */
  #fetch(path: string, init: Request, timeoutMillis: number | null = TIMEOUT_MILLIS): Promise<Response> {
    const route = safeRoute(new URL(this.url).protocol)
    const headers = { ...init.headers, 'user-agent': userAgentHeader('cli') }
    const signal = timeoutMillis === null ? null : AbortSignal.timeout(timeoutMillis)
    return fetch(this.url + path, { ...init, ...route, headers, signal }).catch((error: Error & { code?: string }) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ConnectionRefused')
        throw new NoServer(`no server is listening at ${this.url}: start it, or name another with --url`)
      throw new OperatorError(`${this.url} cannot be reached: ${error.message}`)
    })
  }

  async #answer<T>(response: Response): Promise<T> {
    const text = await response.text()
    if (!response.ok) throw new OperatorError(faultOf(response, text))
    if (text === '') return null as T
    const value = parsedJson(text) ?? null
    if (value === null) throw new OperatorError(`${this.url} is not a Holdfast server`)
    return value as T
  }
}

interface Request {
  method: string
  headers?: Record<string, string>
  body?: string | Blob
}

const postOf = (json: object | undefined): Request =>
  json === undefined
    ? { method: 'POST' }
    : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(json) }

/** Returns a client for the server that a configuration describes, on this machine. */
export const serverOf = (config: Config, token: string | null, reason: string | null = null): Server =>
  new Server(ownUrl(config), token, reason)

/**
 * Returns the server's error message, from `{ error, message }` under `/xrpc` or `{ error: { message } }` under `/v1`.
 * Of an error of its own, the server says no more than that to any caller.
 */
function faultOf({ status, headers }: Response, text: string): string {
  if (status === NOT_OFFERED)
    return 'the server does not offer this: what it is about is not turned on in its configuration, or its version is older'
  const body = parsedJson(text) as { error?: { message?: unknown }; message?: unknown } | null | undefined
  const message = body?.message ?? body?.error?.message
  const said = typeof message === 'string' && message !== '' ? message : `the server returned status ${status}`
  const id = headers.get('x-request-id')
  return status === SERVER_ERROR && id !== null ? `${said}: the log says why, in the lines with requestId ${id}` : said
}
