/** A client that asks, and reads no more than the beginning of the answer until it is told to. */
import type { Socket } from 'bun'

export interface Download {
  status: number
  headers: Headers
  body: Uint8Array
  /** Whether all of it arrived. */
  isWhole: boolean
}

export class SlowDownload {
  readonly #socket: Promise<Socket>
  readonly #closed = Promise.withResolvers<void>()
  readonly #chunks: Buffer[] = []
  #status: number | null = null
  #isReading = false

  /** `form`: it is sent as a browser sends one from a page of ours. */
  constructor(
    url: string,
    path: string,
    address: string,
    headers: Record<string, string> = {},
    form: Record<string, string> | null = null,
  ) {
    const { hostname, port, host, origin } = new URL(url)
    const body = new URLSearchParams(form ?? {}).toString()
    const sent = form !== null && {
      Origin: origin,
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': String(body.length),
    }
    const further = Object.entries({ ...headers, ...sent }).map(([name, value]) => `${name}: ${value}\r\n`)
    const over = () => this.#closed.resolve()
    this.#socket = Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (socket) =>
          void socket.write(
            `${form === null ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nX-Forwarded-For: ${address}\r\n${further.join('')}\r\n${body}`,
          ),
        data: (socket, chunk) => this.#take(socket, chunk),
        close: over,
        error: over,
        end: over,
      },
    })
  }

  #take(socket: Socket, chunk: Buffer): void {
    this.#status ??= Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1', 0, 20))![1])
    this.#chunks.push(Buffer.from(chunk))
    if (!this.#isReading) socket.pause()
  }

  /** Null until the answer begins. */
  get status(): number | null {
    return this.#status
  }

  /** Read everything that there is. */
  async read(): Promise<Download> {
    this.#isReading = true
    ;(await this.#socket).resume()
    await this.#closed.promise
    return downloadOf(Buffer.concat(this.#chunks))
  }

  /** Go away. */
  async leave(): Promise<void> {
    ;(await this.#socket).terminate()
    await this.#closed.promise
  }
}

function downloadOf(bytes: Buffer): Download {
  const end = bytes.indexOf('\r\n\r\n')
  const [first = '', ...lines] = bytes.subarray(0, Math.max(0, end)).toString('latin1').split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
  const status = Number(first.split(' ')[1] ?? 0)
  const rest = bytes.subarray(end + 4)
  if (headers.get('transfer-encoding') !== 'chunked')
    return {
      status,
      headers,
      body: rest,
      isWhole: end >= 0 && rest.length === Number(headers.get('content-length') ?? 0),
    }
  return { status, headers, ...unchunked(rest) }
}

/** RFC 9112 section 7.1. */
function unchunked(bytes: Buffer): { body: Uint8Array; isWhole: boolean } {
  const parts: Buffer[] = []
  for (let at = 0; ;) {
    const line = bytes.indexOf('\r\n', at)
    const size = line < 0 ? Number.NaN : Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16)
    if (!(size > 0)) return { body: Buffer.concat(parts), isWhole: size === 0 }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 2 + size + 2
  }
}
