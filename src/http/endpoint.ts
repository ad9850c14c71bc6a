/**
 * How an endpoint is declared. A declaration names the lexicon method (or HTTP method and path), who may call it,
 * what limits it and the capability it belongs to; `targets.ts` turns it into what a request goes through.
 *
 * Order of work: limits of the address, parameters, authentication, body, limits of the caller, handler. So a request
 * with a bad parameter and no token answers 400, one with no token and a bad body 401. The address is charged first so
 * that bad requests are limited like good ones; unknown paths are charged too, preflights are not. The caller is charged
 * last, because only then it is known whose budget it is and how much the input costs. A handler charges by itself only
 * if the limit depends on what it finds, or if a form has to show the refusal; a test in `tests/limits` lists those.
 */
import type { CapabilityName } from '../platform/configuration/capabilities.ts'
import type { Context } from '../platform/context.ts'
import type { LimitName } from '../platform/running/limits.ts'
import type { LexMethods } from '../protocol/lexicons/generated/types.ts'
import type { RequestBody } from './body.ts'
import { weakEtag } from './encoding.ts'

/** One request on its way through the edge. */
export interface Exchange {
  readonly ctx: Context
  readonly request: Request
  /** Where reading starts: `await body.json(maxBytes)`. XRPC handlers get it read and checked, as `input`. */
  readonly body: RequestBody
  readonly url: URL
  /** Path of the request line, as sent. */
  readonly rawPath: string
  /** Address of the client, `::ffff:` removed, proxies seen through; `unknown` when a proxy does not tell. */
  readonly ip: string
  /** Whom limits count the request for. */
  readonly client: string
  /** Every line that the log gets while the request is answered carries it. */
  readonly requestId: string
  /** NSID of the method that was called; null outside `/xrpc`. */
  readonly nsid: string | null
  /** Headers for the answer, whatever it will be. */
  readonly replyHeaders: Headers
}

/** Says who calls, or refuses. Runs before the body is read. */
export interface Guard<Caller> {
  check(exchange: Exchange): Caller | Promise<Caller>
  /** Responses depend on the caller and are marked private. */
  personal: boolean
  /** Kinds of credentials that it takes, by name, in the order in which they are looked for. */
  takes: readonly string[]
}

/** Everybody may call. */
export const anyone: Guard<null> = { check: () => null, personal: false, takes: [] }

/** A limit that is charged once the caller and the input of a request are known. */
export interface CallLimit<Call> {
  name: LimitName
  /** Whose budget it is: a DID, or a DID and a purpose. */
  key(call: Call): string
  /** In points; 1 unless it says more. */
  cost?(call: Call): number
}

/** A name alone is charged to the client's address, one point, before the request is looked at. */
export type Limit<Call> = LimitName | CallLimit<Call>

export interface Common<Caller, Call = unknown> {
  auth?: Guard<Caller>
  limit?: Limit<Call> | readonly Limit<Call>[]
  /** The endpoint exists exactly when the capability is offered. */
  capability?: CapabilityName
  /** Exempt from the limit on all requests of one address. */
  unlimited?: boolean
  /** Responses or bodies may take arbitrarily long: no idle timeout. */
  long?: boolean
}

export const limitsOf = (spec: Common<unknown> | null): readonly Limit<unknown>[] => [spec?.limit ?? []].flat()

/** An answer that is JSON text already. Kept, it is hashed once. */
export class JsonText {
  #etag: string | null = null

  constructor(readonly text: string) {}

  get etag(): string {
    return (this.#etag ??= weakEtag(this.text))
  }
}

/** A value, its JSON, or a response of the handler's own. */
type Reply<T> = T | JsonText | Response | Promise<T | JsonText | Response>

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

/** Sends binary messages to one WebSocket client. */
export interface Socket {
  /** False when the message was dropped because the client's buffer is full. */
  send(message: Uint8Array): boolean
  bufferedBytes(): number
  /** Messages that `work` sends go out together. */
  batch(work: () => void): void
  close(code: number, reason: string): void
}

export interface SocketHandler {
  open(socket: Socket): void
  /** The client has read what was buffered. */
  drain(): void
  /** Once for each that was accepted, also when the upgrade fails. */
  closed(): void
}

export type Endpoint =
  | { kind: 'query'; nsid: string; spec: Common<unknown>; handler: (call: XrpcCall<unknown, unknown, unknown>) => unknown }
  | {
      kind: 'procedure'
      nsid: string
      spec: Common<unknown> & { maxBytes?: number }
      handler: (call: XrpcCall<unknown, unknown, unknown>) => unknown
    }
  | { kind: 'subscription'; nsid: string; accept: (exchange: Exchange) => SocketHandler }
  | { kind: 'route'; method: string; path: string; spec: Common<unknown>; handler: (call: RouteCall<unknown>) => unknown }
  | { kind: 'fallback'; spec: Common<unknown>; handler: (call: FallbackCall<unknown>) => unknown }

/** As the table of capabilities names it: a method and a path, or the NSID of an XRPC method. */
export function endpointName(endpoint: Endpoint): string {
  if (endpoint.kind === 'fallback') return '/xrpc/*'
  return endpoint.kind === 'route' ? `${endpoint.method} ${endpoint.path}` : endpoint.nsid
}

type Queries = { [N in keyof LexMethods]: LexMethods[N] extends { kind: 'query' } ? N : never }[keyof LexMethods]
type Procedures = { [N in keyof LexMethods]: LexMethods[N] extends { kind: 'procedure' } ? N : never }[keyof LexMethods]
type InputOf<N extends Procedures> = LexMethods[N] extends { input: infer Input } ? Input : null
/** A method whose lexicon has no JSON output answers a `Response` or nothing. */
type OutputOf<N extends keyof LexMethods> = LexMethods[N]['output'] extends undefined ? void : LexMethods[N]['output']

/** A query served here: GET, parameters checked against its lexicon. */
export function query<N extends Queries, Caller = null>(
  nsid: N,
  { handler, ...spec }: Common<Caller, XrpcCall<Caller, LexMethods[N]['params'], null>> & { handler(call: XrpcCall<Caller, LexMethods[N]['params'], null>): Reply<OutputOf<N>> },
): Endpoint {
  return { kind: 'query', nsid, spec, handler: handler as (call: XrpcCall<unknown, unknown, unknown>) => unknown }
}

/**
 * A procedure served here: POST, parameters and input checked against its lexicon.
 *
 * `input` is the parsed JSON body, null where the lexicon has none, and a `RequestBody` where its encoding is not
 * JSON. `maxBytes` is for the decoded body.
 */
export function procedure<N extends Procedures, Caller = null>(
  nsid: N,
  {
    handler,
    ...spec
  }: Common<Caller, XrpcCall<Caller, LexMethods[N]['params'], InputOf<N>>> & { maxBytes?: number; handler(call: XrpcCall<Caller, LexMethods[N]['params'], InputOf<N>>): Reply<OutputOf<N>> },
): Endpoint {
  return { kind: 'procedure', nsid, spec, handler: handler as (call: XrpcCall<unknown, unknown, unknown>) => unknown }
}

/** A WebSocket subscription. `accept` may refuse before the upgrade by throwing. */
export function subscription(nsid: string, accept: (exchange: Exchange) => SocketHandler): Endpoint {
  return { kind: 'subscription', nsid, accept }
}

/**
 * An endpoint outside `/xrpc`. `path` may hold `:name` segments. The handler answers a `Response`, or a value that is
 * sent as JSON. It reads the body itself.
 */
export function route<Caller = null>(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  { handler, ...spec }: Common<Caller, RouteCall<Caller>> & { handler(call: RouteCall<Caller>): unknown },
): Endpoint {
  return { kind: 'route', method, path, spec, handler: handler as (call: RouteCall<unknown>) => unknown }
}

/** What answers a well-formed NSID that is not served here. At most one. */
export function fallback<Caller = null>({ handler, ...spec }: Common<Caller, FallbackCall<Caller>> & { handler(call: FallbackCall<Caller>): unknown }): Endpoint {
  return { kind: 'fallback', spec, handler: handler as (call: FallbackCall<unknown>) => unknown }
}
