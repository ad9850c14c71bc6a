/** HTTP client for the server that hosts an account: requests, refusals, and what the server says that it offers. */
import { OperatorError } from '../base/operator-error.ts'
import { didWebOfHost, didWebUrl, parseDidDocument, pdsEndpoint } from '../protocol/did-document.ts'
import type { Did, Millis } from '../protocol/identifiers.ts'
import { isPlcDid } from '../protocol/plc.ts'

/** Timeout of a request. A ceremony waits for the directory, which the server gives 10 s. */
const TIMEOUT_MILLIS = 60_000
/** Timeout of a request that carries a repository or a blob. */
const CONTENT_TIMEOUT_MILLIS = 600_000
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
    /** The server's clock, from its `Date` header; null if it sent none. */
    readonly serverTime: Millis | null,
  ) {
    super(message)
  }
}

/** There was no answer, or none that can be used: whether the request took effect is unknown. */
export class NoAnswer extends OperatorError {}

/** Bytes that are passed on as they come. */
export interface Content {
  body: ReadableStream<Uint8Array> | Uint8Array
  type: string
}

export interface WalletRequest {
  token?: string | null
  json?: object
  content?: Content
  query?: Readonly<Record<string, string>>
}

export interface ServerDescription {
  /** The DID of the server: the audience of everything that is signed for it. */
  did: string
  availableUserDomains: readonly string[]
  capabilities: ReadonlySet<string>
}

type Answer = Readonly<Record<string, unknown>>

export class WalletServer {
  #description: Promise<ServerDescription> | null = null

  /**
   * Both are origins, as `originOf` returns them. The directory is asked about a server that is not named after its
   * host.
   */
  constructor(
    readonly url: string,
    readonly directory: string,
  ) {}

  get(path: string, { query = {}, ...rest }: WalletRequest = {}): Promise<Answer> {
    const search = new URLSearchParams(query)
    return this.#ask('GET', search.size === 0 ? path : `${path}?${search}`, rest)
  }

  /** Get bytes as they come. Returns null if the server does not have them. */
  async download(path: string, query: Readonly<Record<string, string>>): Promise<Content | null> {
    const url = `${this.url}${path}?${new URLSearchParams(query)}`
    const response = await fetch(url, {
      ...safeRoute(new URL(url).protocol),
      signal: AbortSignal.timeout(CONTENT_TIMEOUT_MILLIS),
    }).catch((error: Error) => {
      throw new NoAnswer(`${this.url} cannot be reached: ${error.message}`, { cause: error })
    })
    if (response.ok && response.body !== null)
      return { body: response.body, type: response.headers.get('content-type') ?? 'application/octet-stream' }
    await response.body?.cancel()
    if (response.status === 400 || response.status === 404) return null
    throw new NoAnswer(`${this.url} returned ${response.status} for a request for data`)
  }

  post(path: string, request: WalletRequest = {}): Promise<Answer> {
    return this.#ask('POST', path, request)
  }

  put(path: string, request: WalletRequest): Promise<Answer> {
    return this.#ask('PUT', path, request)
  }

  delete(path: string, request: WalletRequest): Promise<Answer> {
    return this.#ask('DELETE', path, request)
  }

  describe(): Promise<ServerDescription> {
    return (this.#description ??= this.#describe())
  }

  /** Throws OperatorError if the server does not list a capability. `purpose` ends the sentence that says so. */
  async need(capability: string, purpose: string): Promise<ServerDescription> {
    const description = await this.describe()
    if (!description.capabilities.has(capability))
      throw new OperatorError(`${this.url} does not offer ${purpose}: "${capability}" is not among its capabilities`)
    return description
  }

  /** The DID that a handle resolves to at the server; null if none. */
  async resolveHandle(handle: string): Promise<string | null> {
    try {
      return textOf(await this.get('/xrpc/com.atproto.identity.resolveHandle', { query: { handle } }), 'did')
    } catch (error) {
      if (error instanceof ServerRefusal && error.status === 400) return null
      throw error
    }
  }

  /**
   * The DID of an account that a person names by its DID or its handle. Throws OperatorError if the server does not
   * know it.
   */
  async didOf(account: string): Promise<string> {
    const did = account.startsWith('did:') ? account : await this.resolveHandle(account.replace(/^@/, '').toLowerCase())
    if (did === null) throw new OperatorError(`${account} is not known at ${this.url}`)
    return did
  }

  async #describe(): Promise<ServerDescription> {
    const answer = await this.get('/xrpc/com.atproto.server.describeServer')
    const did = textOf(answer, 'did')
    if (!/^did:\S+$/.test(did)) throw new NoAnswer(`${this.url} calls itself ${JSON.stringify(did)}, which is not a DID`)
    if (!isNameOf(did, new URL(this.url)) && !(await this.#isNamedBy(did)))
      throw new OperatorError(
        `${this.url} calls itself ${did}, which names another server: what is signed for one could be used at the other. Give the address that it is named after`,
      )
    const extension = (answer['custos'] ?? answer['extension'] ?? {}) as { capabilities?: unknown }
    return {
      did,
      availableUserDomains: listOf(answer['availableUserDomains']),
      capabilities: new Set(listOf(extension.capabilities)),
    }
  }

  /** Whether the document of a DID names this server. */
  async #isNamedBy(did: string): Promise<boolean> {
    const url = didWebUrl(did as Did)?.href ?? (isPlcDid(did) ? `${this.directory}/${did}` : null)
    if (url === null) return false
    const { body } = await fetchJson(url, { method: 'GET' })
    const document = parseDidDocument(body, did as Did)
    const endpoint = document && pdsEndpoint(document)
    return endpoint !== null && URL.parse(endpoint)?.origin === this.url
  }

  async #ask(method: string, path: string, { token, json, content }: WalletRequest): Promise<Answer> {
    const sent = content ?? (json === undefined ? null : { body: JSON.stringify(json), type: 'application/json' })
    const headers: Record<string, string> = {}
    if (token) headers['authorization'] = `Bearer ${token}`
    if (sent !== null) headers['content-type'] = sent.type
    const timeoutMillis = content === undefined ? TIMEOUT_MILLIS : CONTENT_TIMEOUT_MILLIS
    const answer = await fetchJson(this.url + path, { method, headers, ...(sent === null ? {} : { body: sent.body }) }, timeoutMillis)
    if (answer.status >= 200 && answer.status < 300) return (answer.body ?? {}) as Answer
    throw refusalOf(this.url, answer)
  }
}

/** Whether a did:web is that of the address. On this machine, servers for development leave the port out. */
const isNameOf = (did: string, { protocol, host, hostname }: URL): boolean =>
  did === didWebOfHost(host) || (protocol === 'http:' && did === didWebOfHost(hostname))

/** Returns the origin of a URL. Throws OperatorError unless it is https, or http on this machine. */
export function originOf(text: string): string {
  const url = URL.parse(/^https?:/.test(text) ? text : `https://${text}`)
  if (url === null || url.hostname === '') throw new OperatorError(`${text} is not the address of a server`)
  if (url.protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname))
    throw new OperatorError(`data sent to ${url.origin} would not be encrypted: use https`)
  return url.origin
}

interface JsonAnswer {
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
    return { status: response.status, body: jsonOf(await boundedText(response)), headers: response.headers }
  } catch (error) {
    throw new NoAnswer(`${origin} cannot be reached: ${(error as Error).message}`, { cause: error })
  }
}

/**
 * A redirect could send a credential to another host, and a proxy from the environment could read unencrypted requests.
 */
const safeRoute = (protocol: string) => ({ redirect: 'manual', ...(protocol === 'http:' ? { proxy: false } : {}) }) as const

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength
    if (length > MAX_ANSWER_BYTES) throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Reads both forms of errors: `{ error, message }` and `{ error: { code, message } }`. */
function refusalOf(url: string, { status, body, headers }: JsonAnswer): ServerRefusal {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  const nested = typeof error === 'object' && error !== null ? (error as { code?: unknown; message?: unknown }) : null
  const code = nested?.code ?? error
  const said = nested?.message ?? message
  const text = typeof said === 'string' && said !== '' ? inOneLine(said) : `answered ${status}`
  const retryAfter = headers.get('retry-after')
  const wait = status === 429 && retryAfter !== null ? ` (try again in ${retryAfter} s)` : ''
  const time = Date.parse(headers.get('date') ?? '')
  return new ServerRefusal(status, typeof code === 'string' ? code : '', `${url}: ${text}${wait}`, Number.isNaN(time) ? null : time)
}

/** What a server says is shown to people, so it must not look like more lines than one, nor fill the screen. */
export const inOneLine = (said: string): string => said.replace(/\s+/g, ' ').slice(0, MAX_SAID_CHARS)

/** A member of an answer that has to be there. Throws `NoAnswer` if it is not a text of one line. */
export function textOf(answer: Answer, name: string): string {
  const value = answer[name]
  if (typeof value !== 'string' || value === '' || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    throw new NoAnswer(`the server's response has no "${name}"`)
  return value
}

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [])
