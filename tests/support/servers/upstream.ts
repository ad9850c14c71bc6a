/**
 * Another service of the network, on loopback: keeps what it was asked and answers as a test tells it. Without being
 * told it answers what it received.
 */
import { didWebOfHost } from '../../../src/protocol/did-document.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'

export interface Received {
  method: string
  /** With the query, as it was written. */
  path: string
  headers: Headers
  /** Resolves when the other side gives the request up. */
  aborted: Promise<void>
}

export type Answerer = (request: Request, received: Received) => Response | Promise<Response>

export interface Upstream extends AsyncDisposable {
  readonly url: string
  /** A DID whose document is served here. */
  readonly did: Did
  /** Requests for methods, oldest first. */
  readonly received: Received[]
  /** Services of its DID document, by fragment; the own address unless told otherwise. */
  services: Record<string, string>
  /** Further members of its DID document. */
  document: Record<string, unknown>
  answer(nsid: string, answerer: Answerer): void
}

/** Whom the service token speaks for, for which service and method. The signature is not looked at. */
export function tokenClaims({ headers }: Received): Record<string, unknown> {
  const [, payload = ''] = (headers.get('authorization') ?? '').split('.')
  return payload === '' ? {} : (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>)
}

/** Types that matter to somebody. */
const serviceTypes: Record<string, string> = { atproto_pds: 'AtprotoPersonalDataServer' }

export function startUpstream(): Upstream {
  const answerers = new Map<string, Answerer>()
  const received: Received[] = []
  const services: Record<string, string> = {}
  const document: Record<string, unknown> = {}
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request): Promise<Response> {
      const path = request.url.slice(request.url.indexOf('/', 'http://'.length))
      if (path === '/.well-known/did.json') return Response.json(didDocument())
      const { promise: aborted, resolve } = Promise.withResolvers<void>()
      request.signal.addEventListener('abort', () => resolve())
      const entry: Received = { method: request.method, path, headers: request.headers, aborted }
      received.push(entry)
      const answerer = answerers.get(path.replace(/^\/xrpc\//, '').replace(/[/?].*$/, ''))
      if (answerer) return answerer(request, entry)
      return Response.json({ method: request.method, path, body: await request.text() })
    },
  })
  const url = `http://localhost:${server.port}`
  const did: Did = didWebOfHost(`localhost:${server.port}`)!
  const didDocument = (): object => ({
    id: did,
    service: Object.entries(services).map(([fragment, serviceEndpoint]) => ({
      id: `#${fragment}`,
      type: serviceTypes[fragment] ?? 'TestService',
      serviceEndpoint,
    })),
    ...document,
  })
  return {
    url,
    did,
    received,
    services,
    document,
    answer: (nsid, answerer) => void answerers.set(nsid, answerer),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

/** Answers every connection with the same bytes, whatever they are, and closes it. */
export function startRawUpstream(bytes: string): AsyncDisposable & { url: string } {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.end(bytes) } })
  return {
    url: `http://localhost:${server.port}`,
    async [Symbol.asyncDispose]() {
      server.stop(true)
    },
  }
}
