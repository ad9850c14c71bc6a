/**
 * HTTP client for the server that hosts an account: requests, refusals, and the capabilities that the server announces.
 */
import { madeOnce } from '../base/made-once.ts'
import { OperatorError } from '../base/operator-error.ts'
import {
  fetchJson,
  NoAnswer,
  refusalOf,
  safeRoute,
  ServerRefusal,
  textOf,
  type Answer,
} from '../base/server-request.ts'
import { userAgentHeader } from '../base/user-agent-header.ts'
import { didWebOfHost, didWebUrl, parseDidDocument, pdsEndpoint } from '../protocol/did-document.ts'
import type { Did } from '../protocol/identifiers.ts'
import { isPlcDid } from '../protocol/plc.ts'

/** Timeout of a request that carries a repository or a blob. */
const CONTENT_TIMEOUT_MILLIS = 600_000

/** Content that is passed on as it arrives. */
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
  /** The DID of the server, the audience of everything that the wallet signs for it. */
  did: string
  availableUserDomains: readonly string[]
  /** Whether a sign-up requires a code. True unless the server says otherwise. */
  requiresCode: boolean
  capabilities: ReadonlySet<string>
}

export class WalletServer {
  /** Returns the description of the server, which is fetched once. */
  readonly describe = madeOnce(() => this.#describe())

  /**
   * Both are origins, as `serverOrigin` returns them. The directory is asked about the DID of a server whose DID is not
   * the did:web of its host.
   */
  constructor(
    readonly url: string,
    readonly directory: string,
  ) {}

  get(path: string, { query = {}, ...rest }: WalletRequest = {}): Promise<Answer> {
    const search = new URLSearchParams(query)
    return this.#ask('GET', search.size === 0 ? path : `${path}?${search}`, rest)
  }

  /** Download content as a stream. Returns null if the server does not have it. */
  async download(path: string, query: Readonly<Record<string, string>>): Promise<Content | null> {
    const url = `${this.url}${path}?${new URLSearchParams(query)}`
    const response = await fetch(url, {
      ...safeRoute(new URL(url).protocol),
      headers: { 'user-agent': userAgentHeader('wallet') },
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

  /** Throws OperatorError if the server does not list a capability. `purpose` completes the error message. */
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
   * The DID of an account that a person has entered as a DID or a handle. Throws OperatorError if the server does not
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
    if (!/^did:\S+$/.test(did))
      throw new NoAnswer(`${this.url} calls itself ${JSON.stringify(did)}, which is not a DID`)
    if (!isNameOf(did, new URL(this.url)) && !(await this.#isNamedBy(did)))
      throw new OperatorError(
        `${this.url} names itself ${did}, which is another server: a signature for one could be used at the other. Use the address of ${did}`,
      )
    const extension = (answer['custos'] ?? answer['extension'] ?? {}) as { capabilities?: unknown }
    return {
      did,
      availableUserDomains: listOf(answer['availableUserDomains']),
      requiresCode: answer['inviteCodeRequired'] !== false,
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
    const headers: Record<string, string> = { 'user-agent': userAgentHeader('wallet') }
    if (token) headers['authorization'] = `Bearer ${token}`
    if (sent !== null) headers['content-type'] = sent.type
    const timeoutMillis = content === undefined ? undefined : CONTENT_TIMEOUT_MILLIS
    const answer = await fetchJson(
      this.url + path,
      { method, headers, ...(sent === null ? {} : { body: sent.body }) },
      timeoutMillis,
    )
    if (answer.status >= 200 && answer.status < 300) return (answer.body ?? {}) as Answer
    throw refusalOf(this.url, answer)
  }
}

/**
 * Whether the did:web belongs to the URL. Development servers on this machine may leave the port out of their did:web.
 */
const isNameOf = (did: string, { protocol, host, hostname }: URL): boolean =>
  did === didWebOfHost(host) || (protocol === 'http:' && did === didWebOfHost(hostname))

const listOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
