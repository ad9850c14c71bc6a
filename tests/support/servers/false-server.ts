/** A server that says what a test makes it say, to see whom a wallet believes. */
export interface FalseServer extends AsyncDisposable {
  readonly url: string
  /** Method and path of the requests that came, in order. */
  readonly requests: string[]
  /** What it says from now on: a value is sent as JSON, a function answers by itself. */
  answers: Record<string, unknown>
}

/**
 * By method and path, such as `POST /v1/dids`; everything else is not found. Its description is complete unless a test
 * has another.
 */
export function startFalseServer(answers: Record<string, unknown> = {}): FalseServer {
  const requests: string[] = []
  const server = Bun.serve({
    hostname: 'localhost',
    port: 0,
    fetch(request) {
      const name = `${request.method} ${new URL(request.url).pathname}`
      requests.push(name)
      const answer = host.answers[name]
      if (answer === undefined)
        return Response.json({ error: { code: 'NOT_FOUND', message: 'not here' } }, { status: 404 })
      return typeof answer === 'function' ? (answer as (request: Request) => Response)(request) : Response.json(answer)
    },
  })
  const url = `http://localhost:${server.port}`
  const description = {
    did: `did:web:localhost%3A${server.port}`,
    availableUserDomains: ['.test'],
    custos: {
      version: '1.0.0',
      capabilities: [
        'createCeremony',
        'optionalPassword',
        'sovereignSessions',
        'walletConsent',
        'escrow',
        'walletAccountDelete',
        'didWebHosting',
      ],
    },
  }
  const host: FalseServer = {
    url,
    requests,
    answers: { 'GET /xrpc/com.atproto.server.describeServer': description, ...answers },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return host
}
