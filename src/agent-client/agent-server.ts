/** Client of the server at which an agent is registered: finds its endpoints and checks its answers. */
import { madeOnce } from '../base/made-once.ts'
import { OperatorError } from '../base/operator-error.ts'
import { fetchJson, inOneLine, NoAnswer, serverOrigin, refusalOf, textOf, type Answer } from '../base/server-request.ts'
import { userAgentHeader } from '../base/user-agent-header.ts'
import { membersOf } from '../base/members.ts'
import { CLAIM_GRANT, JWT_BEARER_GRANT } from '../protocol/agent-names.ts'
import type { ClaimCode, RegistrationType } from './agent-contents.ts'

interface Endpoints {
  identity: string
  claim: string
  token: string
  types: readonly string[]
}

export interface XrpcCall {
  method: 'GET' | 'POST'
  query?: Readonly<Record<string, string>> | URLSearchParams
  json?: unknown
  content?: { body: Uint8Array<ArrayBuffer>; type: string }
  /** The service to which the server forwards the call, such as `did:web:api.example.com#bsky_appview`. */
  proxy?: string
  token?: string
}

/** Short, because a person may have to type the URI. */
const MAX_URI_CHARS = 500
/** Timeout of an upload. */
const UPLOAD_TIMEOUT_MILLIS = 300_000

export class AgentServer {
  readonly #found = madeOnce(() => this.#find())

  /** `url` is an origin, as `serverOrigin` returns it. */
  constructor(readonly url: string) {}

  /** Throws OperatorError if agents of this type cannot register here. */
  async register(type: RegistrationType, more: Record<string, string>): Promise<Answer> {
    const { identity, types } = await this.#found()
    if (!types.includes(type))
      throw new OperatorError(
        `${this.url} does not take agents of type ${type}; it takes: ${types.join(', ') || 'none'}`,
      )
    return this.#post(identity, { type, ...more })
  }

  async openClaim(claimToken: string): Promise<Answer> {
    return this.#post((await this.#found()).claim, { claim_token: claimToken })
  }

  poll = (claimToken: string): Promise<Answer> => this.#grant({ grant_type: CLAIM_GRANT, claim_token: claimToken })

  exchange = (assertion: string): Promise<Answer> => this.#grant({ grant_type: JWT_BEARER_GRANT, assertion })

  /** Call a method. Throws `ServerRefusal` and `NoAnswer`. */
  async xrpc(nsid: string, { method, query, json, content, proxy, token }: XrpcCall): Promise<Answer> {
    const headers: Record<string, string> = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(proxy !== undefined && { 'atproto-proxy': proxy }),
    }
    const search = new URLSearchParams(query)
    const url = `${this.url}/xrpc/${nsid}${search.size === 0 ? '' : `?${search}`}`
    if (content !== undefined)
      return this.#ask(
        url,
        { method, headers: { ...headers, 'content-type': content.type }, body: content.body },
        UPLOAD_TIMEOUT_MILLIS,
      )
    if (json === undefined) return this.#ask(url, { method, headers })
    return this.#ask(url, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
  }

  #post = (url: string, json: object): Promise<Answer> =>
    this.#ask(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(json) })

  async #grant(fields: Record<string, string>): Promise<Answer> {
    return this.#ask((await this.#found()).token, { method: 'POST', body: new URLSearchParams(fields) })
  }

  async #ask(url: string, init: RequestInit, timeoutMillis?: number): Promise<Answer> {
    const headers = { ...(init.headers as Record<string, string> | undefined), 'user-agent': userAgentHeader('agent') }
    const answer = await fetchJson(url, { ...init, headers }, timeoutMillis)
    const { status, body } = answer
    if (status < 200 || status >= 300) throw refusalOf(this.url, answer)
    return membersOf(body)
  }

  /**
   * Find the endpoints at which agents register. Credentials go only to the authorization server that the server names.
   * Source: RFC 9728, section 3; RFC 8414, section 3.
   */
  async #find(): Promise<Endpoints> {
    const resource = await this.#ask(`${this.url}/.well-known/oauth-protected-resource`, {})
    if (originOrNull(resource['resource']) !== this.url)
      throw new NoAnswer(`${this.url} calls itself ${shown(resource['resource'])}`)
    const servers = resource['authorization_servers']
    const issuer = serverOrigin(String(Array.isArray(servers) ? servers[0] : ''))
    const metadata = await this.#ask(`${issuer}/.well-known/oauth-authorization-server`, {})
    if (originOrNull(metadata['issuer']) !== issuer)
      throw new NoAnswer(`${issuer} calls itself ${shown(metadata['issuer'])}`)
    const agents = metadata['agent_auth'] as Answer | undefined
    if (typeof agents !== 'object' || agents === null) throw new OperatorError(`${this.url} does not offer agents`)
    const endpoint = (from: Answer, name: string): string => {
      const url = textOf(from, name)
      if (originOrNull(url) !== issuer)
        throw new NoAnswer(`${issuer} names ${inOneLine(url)} as its ${name}, which is another server`)
      return url
    }
    const types = agents['identity_types_supported']
    return {
      identity: endpoint(agents, 'identity_endpoint'),
      claim: endpoint(agents, 'claim_endpoint'),
      token: endpoint(metadata, 'token_endpoint'),
      types: Array.isArray(types) ? types.filter((type) => typeof type === 'string') : [],
    }
  }
}

/** Part of a server's description of itself, for an error message. */
const shown = (said: unknown): string => inOneLine(JSON.stringify(said) ?? 'nothing')

const originOrNull = (url: unknown): string | null =>
  typeof url === 'string' ? (URL.parse(url)?.origin ?? null) : null

/** Read a code and where to enter it. Throws `NoAnswer` if a person could not use them, or could be misled by them. */
export function claimCodeOf(claim: unknown, expiresAt: unknown): ClaimCode {
  const answer = membersOf(claim)
  const [userCode, uri] = [textOf(answer, 'user_code'), URL.parse(textOf(answer, 'verification_uri'))]
  if (!/^[\dA-Za-z-]{4,16}$/.test(userCode))
    throw new NoAnswer('the server returned a code in a form that is not known')
  if (uri === null || serverOrigin(uri.href) !== uri.origin || uri.href.length > MAX_URI_CHARS)
    throw new NoAnswer('the server named no address at which to enter the code')
  const expires = new Date(typeof expiresAt === 'string' ? expiresAt : NaN)
  if (Number.isNaN(expires.getTime())) throw new NoAnswer('the server does not say when the code expires')
  return { userCode, verificationUri: uri.href, expiresAt: expires.toISOString() }
}
