/** A server that lies in front of one that does not: what a test does not answer itself goes through. */
export interface LyingHost extends AsyncDisposable {
  readonly url: string
  /** The server behind it. */
  to: string
  /** Methods that were called, in order. */
  readonly called: string[]
  /** Answers the call of a method itself, or changes the request that goes through; null lets it through. */
  lie: (nsid: string, request: Request) => Response | Request | null | Promise<Response | Request | null>
}

export function startLyingHost(): LyingHost {
  const called: string[] = []
  const server = Bun.serve({
    hostname: 'localhost',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const nsid = pathname.replace('/xrpc/', '')
      called.push(nsid)
      const lie = await host.lie(nsid, request.clone() as Request)
      if (lie instanceof Response) return lie
      const { method, headers, body } = lie ?? request
      return fetch(`${host.to}${pathname}${search}`, { method, headers: plainly(headers), body })
    },
  })
  const host: LyingHost = {
    url: `http://localhost:${server.port}`,
    to: '',
    called,
    lie: () => null,
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return host
}

/** A body that never ends. */
export function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)) })
}

/** The headers of a request whose answer comes uncompressed. */
function plainly(headers: Headers): Headers {
  const plain = new Headers(headers)
  plain.set('accept-encoding', 'identity')
  return plain
}
