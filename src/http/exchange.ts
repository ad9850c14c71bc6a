/** One request on its way through the edge. What few requests need is computed on first use. */
import { perContext, type Context } from '../platform/context.ts'
import type { Client } from '../base/fair-queue.ts'
import { authorizationOf, type Authorization } from './authorization-header.ts'
import { RequestBody } from './body.ts'
import { clientAddress, clientOf, isNear, isProxy, proxyList } from './client-address.ts'
import { chosenCoding } from './encoding.ts'
import type { Common, Exchange } from './endpoint.ts'
import type { Peer } from './peer.ts'
import type { Revalidate } from './revalidation.ts'
import { surfaceOf, type Surface } from './surfaces.ts'

const proxiesOf = perContext(({ config }) => proxyList(config.trustedProxies))

/** A request without a credential has nothing that could end. */
const nothingToRevalidate: Revalidate = () => Promise.resolve()

export class RequestExchange implements Exchange {
  readonly surface: Surface
  // Filled in by the edge before the handler runs.
  caller: unknown = null
  params: unknown = null
  input: unknown = null
  revalidate = nothingToRevalidate
  #body: RequestBody | null = null
  #url: URL | null = null
  #ip: string | null = null
  #client: Client | null = null
  #requestId: string | null = null
  #replyHeaders: Headers | null = null
  #authorization: Authorization | null | undefined

  constructor(
    readonly ctx: Context,
    readonly request: Request,
    readonly peer: Peer,
    readonly rawPath: string,
    readonly nsid: string | null,
    /** Name of the endpoint in metrics and traces. */
    readonly route: string,
    /** Declaration of the requested endpoint; null if the path has none. */
    readonly spec: Common<unknown> | null,
    readonly path: Record<string, string> = {},
  ) {
    this.surface = surfaceOf(rawPath)
  }

  get replyHeaders(): Headers {
    return (this.#replyHeaders ??= new Headers(this.#standardHeaders))
  }

  /** Pass these to a `Response` only: it makes its own copy, and they may be shared. */
  get headersToSend(): Headers {
    return this.#replyHeaders ?? this.#standardHeaders
  }

  get #standardHeaders(): Headers {
    return this.spec?.auth?.personal ? this.surface.personalHeaders : this.surface.headers
  }

  get body(): RequestBody {
    return (this.#body ??= new RequestBody(this.request))
  }

  get url(): URL {
    return (this.#url ??= new URL(this.request.url))
  }

  get ip(): string {
    return (this.#ip ??= clientAddress(
      this.peer.addressOf(this.request),
      this.request.headers,
      proxiesOf(this.ctx),
      this.peer.isDirect,
    ))
  }

  get forwardedHost(): string | null {
    const { peer, request, ctx } = this
    const hosts = request.headers.get('x-forwarded-host')
    if (hosts === null || !isProxy(peer.addressOf(request), proxiesOf(ctx), peer.isDirect)) return null
    return hosts.split(',')[0]!.trim()
  }

  /** A direct connection from a private address may come through something that forwards everyone's connections. */
  get isNear(): boolean {
    return this.peer.isDirect !== true && isNear(this.ip)
  }

  get isOfProxy(): boolean {
    return isProxy(this.ip, proxiesOf(this.ctx), this.peer.isDirect)
  }

  get takesPieces(): boolean {
    return this.peer.takesPieces === true && chosenCoding(this.request.headers.get('accept-encoding')) === null
  }

  /** Parsed once, because each kind of credential asks for it. */
  get authorization(): Authorization | null {
    return this.#authorization === undefined
      ? (this.#authorization = authorizationOf(this.request))
      : this.#authorization
  }

  get client(): Client {
    return (this.#client ??= clientOf(this.ip))
  }

  mayIdle(may: boolean): void {
    this.peer.mayIdle(this.request, may)
  }

  resumed(): void {
    this.ctx.loop.enter(this.route)
  }

  get requestId(): string {
    return (this.#requestId ??= crypto.randomUUID())
  }
}
