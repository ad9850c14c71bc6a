/** A reverse proxy in front of a server, on loopback, with the habits that proxies have. */
import { createServer, request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'

export interface ProxyHabits {
  /** What becomes of X-Forwarded-For. `keep`: it is passed on as it came. */
  forwardedFor: 'append' | 'replace' | 'drop' | 'keep'
  /** Larger bodies are refused with 413 before they are read. */
  maxBodyBytes: number
  upgrades: boolean
  /** Paths that begin so it answers itself, with a page. */
  ownPaths: string | null
}

export interface ReverseProxy extends AsyncDisposable {
  url: string
}

const usual: ProxyHabits = { forwardedFor: 'append', maxBodyBytes: Infinity, upgrades: true, ownPaths: null }

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
      { host: hostname, port, path, method: incoming.method, headers: passedOn(incoming, habits) },
      (upstream) => {
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
      const headers = Object.entries(passedOn(incoming, habits)).map(([name, value]) => `${name}: ${String(value)}`)
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

function passedOn({ headers, socket }: IncomingMessage, { forwardedFor }: ProxyHabits): IncomingMessage['headers'] {
  const { 'x-forwarded-for': came, ...others } = headers
  const peer = socket.remoteAddress ?? ''
  const values = {
    append: [came, peer].filter((each) => each !== undefined).join(', '),
    replace: peer,
    drop: undefined,
    keep: came,
  } as const
  const value = values[forwardedFor]
  return value === undefined ? others : { ...others, 'x-forwarded-for': value }
}
