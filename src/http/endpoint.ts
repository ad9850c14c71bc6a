/**
 * How an endpoint is declared. A declaration names the lexicon method (or HTTP method and path), who may call it, its
 * limits and the capability that it belongs to; `targets.ts` turns it into the steps that a request goes through.
 *
 * Order of work: limits of the address, parameters, authentication, body, limits of the caller, handler. So a bad
 * parameter without a token gets a 400, and a bad body without a token a 401. The address is charged first so that bad
 * requests are limited like good ones; unknown paths are charged too, preflights are not. The caller is charged last,
 * because only then are the owner of the budget and the cost of the input known. A handler charges a limit itself only
 * if the limit depends on what it finds, or if a form has to show the refusal; a test in `tests/system/limits` lists
 * those.
 */
import type { Client } from '../base/fair-queue.ts'
import type { CapabilityName } from '../platform/configuration/capabilities.ts'
import type { Context } from '../platform/context.ts'
import type { LimitName } from '../platform/running/limits.ts'
import type { Did } from '../protocol/identifiers.ts'
import type { LexMethods } from '../protocol/lexicons/generated/types.ts'
import type { RequestBody } from './body.ts'
import type { Authorization } from './authorization-header.ts'
import { weakEtag } from './encoding.ts'
import type { Revalidate } from './revalidation.ts'

/** Whether the method is GET, or HEAD, which is answered with the same headers. */
export const isRead = ({ method }: Pick<Request, 'method'>): boolean => method === 'GET' || method === 'HEAD'

/** One request on its way through the edge. */
export interface Exchange {
  readonly ctx: Context
  readonly request: Request
  /** Not read yet: `await body.json(maxBytes)`. XRPC handlers receive it read and validated, as `input`. */
  readonly body: RequestBody
  readonly url: URL
  /** Path of the request line, as the client sent it. */
  readonly rawPath: string
  /** Address of the client behind any trusted proxies, without `::ffff:`; `unknown` if a proxy does not reveal it. */
  readonly ip: string
  /** The host that the client asked for, as a trusted proxy states it; null if none does. */
  readonly forwardedHost: string | null
  /** Whether the client is on this machine or a private network, as far as its address tells. */
  readonly isNear: boolean
  /** Whether a trusted proxy asks for itself, not for a client; or a program beside it, which has the same address. */
  readonly isOfProxy: boolean
  /** The `Authorization` header; null if there is none. Throws `InvalidToken` if it is malformed. */
  readonly authorization: Authorization | null
  /** What limits know of the client: `address` is its /64 network for IPv6. */
  readonly client: Client
  /** Carried by every log line that is written while the request is handled. */
  readonly requestId: string
  /** NSID of the called method; null outside `/xrpc`. */
  readonly nsid: string | null
  /** As in `Peer.takesPieces`; false if the response may get a content coding. */
  readonly takesPieces: boolean
  /** Headers for the response, whether it is a success or a failure. */
  readonly replyHeaders: Headers
  /** The guard sets it; without one it does nothing. */
  revalidate: Revalidate
  /** Lifts the idle timeout of the connection while a response waits for its client, or restores it. */
  mayIdle(may: boolean): void
}

/** Identifies the caller, or throws a `Refusal`. Runs before the body is read. */
export interface Guard<Caller> {
  check(exchange: Exchange): Caller | Promise<Caller>
  /** Responses depend on the caller and are marked private. */
  personal: boolean
  /** Names of the credential kinds that it accepts, in the order in which it tries them. */
  takes: readonly string[]
}

/** Anyone may call. */
export const anyone: Guard<null> = { check: () => null, personal: false, takes: [] }

/** A limit that is charged once the caller and the input of the request are known. */
export interface CallLimit<Call> {
  name: LimitName
  /** Whose budget it is: a DID, or a DID and a purpose. */
  key(call: Call): string
  /** In points; 1 when omitted. */
  cost?(call: Call): number
}

/** One point for each call, from the budget of the account that calls. */
export const perAccount = (name: LimitName): CallLimit<{ caller: { did: Did } }> => ({
  name,
  key: ({ caller }) => caller.did,
})

/** A name alone charges one point to the client's address, before the request is examined. */
export type Limit<Call> = LimitName | CallLimit<Call>

export interface Common<Caller, Call = unknown> {
  auth?: Guard<Caller>
  limit?: Limit<NoInfer<Call>> | readonly Limit<NoInfer<Call>>[]
  /** The endpoint exists if and only if the capability is offered. */
  capability?: CapabilityName
  /** Exempt from the limit that counts every request of an address. */
  unlimited?: boolean
  /** The body and the handler may take arbitrarily long: there is no idle timeout until the handler returns. */
  long?: boolean
}

export const limitsOf = (spec: Common<unknown> | null): readonly Limit<unknown>[] => [spec?.limit ?? []].flat()

/** A result that is already JSON text. An instance that is used again computes its entity tag only once. */
export class JsonText {
  #etag: string | null = null

  constructor(readonly text: string) {}

  get etag(): string {
    return (this.#etag ??= weakEtag(this.text))
  }
}

/**
 * The parts of a response that is not made yet, so that its headers and those of its request are set in one step: the
 * headers of a `Response` would be copied again.
 */
export class Outline {
  constructor(
    readonly status: number,
    readonly headers: Readonly<Record<string, string>>,
    readonly body: ConstructorParameters<typeof Response>[0],
  ) {}
}

/** A value, its JSON text, or a complete response. */
type Answer<T> = T | JsonText | Response | Outline
type Reply<T> = Answer<T> | Promise<Answer<T>>

export interface XrpcCall<Caller, Params, Input> extends Exchange {
  caller: Caller
  params: Params
  input: Input
}

export interface RouteCall<Caller> extends Exchange {
  caller: Caller
  /** Values of `:name` segments of the path. */
  path: Record<string, string>
}

export interface FallbackCall<Caller> extends Exchange {
  nsid: string
  caller: Caller
}

/** One WebSocket client, to which the server sends binary messages. */
export interface Socket {
  /** False when the message was dropped because the client's buffer is full. */
  send(message: Uint8Array): boolean
  bufferedBytes(): number
  /** Messages that `work` sends are written together. */
  batch(work: () => void): void
  /** The client gets what was sent before, if it reads it. */
  close(code: number, reason: string): void
  /** End the connection at once, and forget what the client has not read. */
  cut(): void
}

export interface SocketHandler {
  open(socket: Socket): void
  /** The buffer has drained to the client. */
  drain(): void
  /** Called exactly once for each accepted handler, even if the upgrade fails. */
  closed(): void
}

/** Decides about a WebSocket before it opens. */
export type Accept = (exchange: Exchange) => SocketHandler | Promise<SocketHandler>

export type Endpoint =
  | {
      kind: 'query'
      nsid: string
      spec: Common<unknown>
      handler: (call: XrpcCall<unknown, unknown, unknown>) => unknown
    }
  | {
      kind: 'procedure'
      nsid: string
      spec: Common<unknown> & { maxBytes?: number }
      handler: (call: XrpcCall<unknown, unknown, unknown>) => unknown
    }
  | { kind: 'subscription'; nsid: string; accept: Accept }
  | {
      kind: 'route'
      method: string
      path: string
      spec: Common<unknown>
      handler: (call: RouteCall<unknown>) => unknown
    }
  | { kind: 'fallback'; spec: Common<unknown>; handler: (call: FallbackCall<unknown>) => unknown }

/** Returns the name that the table of capabilities uses: a method and a path, or the NSID of an XRPC method. */
export function endpointName(endpoint: Endpoint): string {
  if (endpoint.kind === 'fallback') return '/xrpc/*'
  return endpoint.kind === 'route' ? `${endpoint.method} ${endpoint.path}` : endpoint.nsid
}

/** Returns the name of its requests in metrics: an NSID, or the path of a route. */
export function endpointRoute(endpoint: Endpoint): string {
  return endpoint.kind === 'route' ? endpoint.path : endpointName(endpoint)
}

type Queries = { [N in keyof LexMethods]: LexMethods[N] extends { kind: 'query' } ? N : never }[keyof LexMethods]
type Procedures = { [N in keyof LexMethods]: LexMethods[N] extends { kind: 'procedure' } ? N : never }[keyof LexMethods]
type InputOf<N extends Procedures> = LexMethods[N] extends { input: infer Input } ? Input : null
/** A method whose lexicon declares no JSON output returns a `Response` or nothing. */
type OutputOf<N extends keyof LexMethods> = LexMethods[N]['output'] extends undefined ? void : LexMethods[N]['output']

/** Declare an XRPC query: GET, with parameters validated against its lexicon. */
export function query<N extends Queries, Caller = null>(
  nsid: N,
  {
    handler,
    ...spec
  }: Common<Caller, XrpcCall<Caller, LexMethods[N]['params'], null>> & {
    handler(call: XrpcCall<Caller, LexMethods[N]['params'], null>): Reply<OutputOf<N>>
  },
): Endpoint {
  return { kind: 'query', nsid, spec, handler: handler as (call: XrpcCall<unknown, unknown, unknown>) => unknown }
}

/**
 * Declare an XRPC procedure: POST, with parameters and input validated against its lexicon.
 *
 * `input` is the parsed JSON body, null if the lexicon declares no input, or a `RequestBody` if its encoding is not
 * JSON. `maxBytes` bounds the decoded body.
 */
export function procedure<N extends Procedures, Caller = null>(
  nsid: N,
  {
    handler,
    ...spec
  }: Common<Caller, XrpcCall<Caller, LexMethods[N]['params'], InputOf<N>>> & {
    maxBytes?: number
    handler(call: XrpcCall<Caller, LexMethods[N]['params'], InputOf<N>>): Reply<OutputOf<N>>
  },
): Endpoint {
  return { kind: 'procedure', nsid, spec, handler: handler as (call: XrpcCall<unknown, unknown, unknown>) => unknown }
}

/** Declare a WebSocket subscription. `accept` may throw a `Refusal` before the upgrade. */
export function subscription(nsid: string, accept: Accept): Endpoint {
  return { kind: 'subscription', nsid, accept }
}

/**
 * Declare an endpoint outside `/xrpc`. `path` may contain `:name` segments. The handler reads the body itself, and
 * returns a `Response` or a value to send as JSON.
 */
export function route<Caller = null>(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  { handler, ...spec }: Common<Caller, RouteCall<Caller>> & { handler(call: RouteCall<Caller>): unknown },
): Endpoint {
  return { kind: 'route', method, path, spec, handler: handler as (call: RouteCall<unknown>) => unknown }
}

/** Declare the handler of every well-formed NSID that is not served here. At most one exists. */
export function fallback<Caller = null>({
  handler,
  ...spec
}: Common<Caller, FallbackCall<Caller>> & { handler(call: FallbackCall<Caller>): unknown }): Endpoint {
  return { kind: 'fallback', spec, handler: handler as (call: FallbackCall<unknown>) => unknown }
}
