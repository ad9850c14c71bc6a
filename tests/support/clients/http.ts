/** Plain requests, for tests that look at the wire. */

export interface Answer {
  status: number
  headers: Headers
  /** Parsed JSON, or the text when it is none. */
  body: any
}

export async function request(url: string, init: RequestInit & { json?: unknown } = {}): Promise<Answer> {
  const { json, ...rest } = init
  const headers = new Headers(rest.headers)
  if (json !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
  const response = await fetch(url, {
    method: json === undefined ? 'GET' : 'POST',
    redirect: 'manual',
    ...rest,
    headers,
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
export const basic = (user: string, password: string) => ({ authorization: `Basic ${btoa(`${user}:${password}`)}` })

/**
 * Bytes as they are over a raw connection; resolves with everything the server sent until it closed, it was enough, or
 * `maxMillis` passed.
 */
export async function raw(
  url: string,
  bytes: string | Uint8Array,
  maxMillis = 10_000,
  isEnough: (received: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(url)
  const { promise, resolve } = Promise.withResolvers<void>()
  let received = ''
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, chunk) => {
        received += chunk.toString('latin1')
        if (isEnough(received)) resolve()
      },
      close: () => resolve(),
      error: () => resolve(),
    },
  })
  socket.write(bytes)
  const timer = setTimeout(resolve, maxMillis)
  await promise
  clearTimeout(timer)
  socket.end()
  return received
}
