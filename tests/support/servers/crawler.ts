/** A crawler that counts who asks to be crawled. */

export interface FakeCrawler extends AsyncDisposable {
  readonly url: string
  /** Hostnames, oldest first. */
  readonly requests: string[]
  /** Statuses to answer next; 200 when there is none left. */
  readonly statuses: number[]
  until(count: number): Promise<void>
}

export function startCrawler(): FakeCrawler {
  const requests: string[] = []
  const statuses: number[] = []
  let onRequest: (() => void) | null = null
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/xrpc/com.atproto.sync.requestCrawl': {
        async POST(request) {
          const { hostname } = (await request.json()) as { hostname: string }
          requests.push(hostname)
          onRequest?.()
          return new Response(null, { status: statuses.shift() ?? 200 })
        },
      },
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    statuses,
    async until(count) {
      while (requests.length < count) await new Promise<void>((resolve) => (onRequest = resolve))
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
