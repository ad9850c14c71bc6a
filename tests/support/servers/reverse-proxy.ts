/** A reverse proxy in front of a server, on loopback, with the habits that proxies have. */
import { createServer, request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'

export interface ProxyHabits {
  /** What becomes of X-Forwarded-For. `keep`: it is passed on as it came. */
  forwardedFor: 'append' | 'replace' | 'drop' | 'keep'
  /** What becomes of Host. `replace`: it names the server behind. `report`: X-Forwarded-Host keeps the name besides. */
  host: 'keep' | 'replace' | 'report'
  /** Responses with more headers are answered with 502. */
  maxHeaderBytes: number
  /** Larger bodies are refused with 413 before they are read. */
  maxBodyBytes: number
  upgrades: boolean
  /** Paths that begin so it answers itself, with a page. */
  ownPaths: string | null
}

export interface ReverseProxy extends AsyncDisposable {
  url: string
}

const usual: ProxyHabits = {
  forwardedFor: 'append',
  host: 'keep',
  maxHeaderBytes: Infinity,
  maxBodyBytes: Infinity,
  upgrades: true,
  ownPaths: null,
}

/** `target` may be asked anew for each request. */
export async function startReverseProxy(
  target: string | (() => string),
  given: Partial<ProxyHabits> = {},
): Promise<ReverseProxy> {
  const habits = { ...usual, ...given }
  const next = () => new URL(typeof target === 'string' ? target : target())
  const server = createServer((incoming, answer) => {
    const path = incoming.url ?? '/'
    const own = (status: number) =>
      answer.writeHead(status, { 'content-type': 'text/html', connection: 'close' }).end('<h1>proxy</h1>')
    if (habits.ownPaths !== null && path.startsWith(habits.ownPaths)) return own(404)
    if (Number(incoming.headers['content-length'] ?? 0) > habits.maxBodyBytes) return own(413)
    const { hostname, port } = next()
    const outgoing = request(
      {
        host: hostname,
        port,
        path,
        method: incoming.method,
        headers: passedOn(incoming, habits, `${hostname}:${port}`),
      },
      (upstream) => {
        if (upstream.rawHeaders.join('').length > habits.maxHeaderBytes) return own(502)
        answer.writeHead(upstream.statusCode ?? 502, upstream.headers)
        upstream.pipe(answer)
      },
    )
    outgoing.on('error', () => own(502))
    incoming.pipe(outgoing)
  })
  server.on('upgrade', (incoming, socket, head) => {
    if (!habits.upgrades) return socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
    const { hostname, port } = next()
    const upstream = connect(Number(port), hostname, () => {
      const headers = Object.entries(passedOn(incoming, habits, `${hostname}:${port}`)).map(
        ([name, value]) => `${name}: ${String(value)}`,
      )
      upstream.write([`${incoming.method} ${incoming.url} HTTP/1.1`, ...headers, '', ''].join('\r\n'))
      upstream.write(head)
      upstream.pipe(socket)
      socket.pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('error', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function passedOn(
  { headers, socket }: IncomingMessage,
  { forwardedFor, host }: ProxyHabits,
  target: string,
): IncomingMessage['headers'] {
  const { 'x-forwarded-for': came, ...others } = headers
  const peer = socket.remoteAddress ?? ''
  const values = {
    append: [came, peer].filter((each) => each !== undefined).join(', '),
    replace: peer,
    drop: undefined,
    keep: came,
  } as const
  const hosts = {
    keep: {},
    replace: { host: target },
    report: { host: target, 'x-forwarded-host': headers.host },
  } as const
  const value = values[forwardedFor]
  return { ...others, ...hosts[host], ...(value !== undefined && { 'x-forwarded-for': value }) }
}
