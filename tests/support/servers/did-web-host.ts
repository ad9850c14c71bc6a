/**
 * A web server on loopback with a certificate for `web.test`, `*.web.test` and `localhost`: publishes documents by URL.
 */
import { testAuthority, serverCertificate, serverKey } from '../certificates.ts'

export interface WebHost extends AsyncDisposable {
  /** The https port; give it to the outbound client as `httpsPort`. */
  readonly port: number
  readonly authority: string
  /** `host` and path seen, in order. */
  readonly requests: string[]
  /** Publishes an answer at `https://{host}{path}`. A function answers each request anew. */
  publish(host: string, path: string, answer: Answer): void
  publishDidDocument(host: string, document: object): void
  publishHandle(handle: string, did: string): void
}
type Answer = string | ((request: Request) => Response | Promise<Response>)

/** `tls`: another certificate than that of the authority which the tests trust. */
export function startWebHost(tls = { cert: serverCertificate, key: serverKey }): WebHost {
  const pages = new Map<string, Answer>()
  const requests: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const place = (request.headers.get('host') ?? '') + pathname
      requests.push(place)
      const answer = pages.get(place)
      if (answer === undefined) return new Response('not here', { status: 404 })
      return typeof answer === 'string' ? new Response(answer) : answer(request)
    },
  })
  const publish = (host: string, path: string, answer: Answer) => void pages.set(host + path, answer)
  return {
    port: server.port!,
    authority: testAuthority,
    requests,
    publish,
    publishDidDocument: (host, document) => publish(host, '/.well-known/did.json', () => Response.json(document)),
    publishHandle: (handle, did) => publish(handle, '/.well-known/atproto-did', did),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}
