/** A line to a server that loses questions and answers, and holds them up, as a test says. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PassingRequest {
  method: string
  path: string
  body: string
}

/**
 * What becomes of a request: it is answered, it never arrives, it arrives and its answer is lost, or the line itself
 * answers, with this status or with this body. A promise holds it up.
 */
export type Fate = 'answered' | 'question lost' | 'answer lost' | number | { body: string }

export interface FaultyLine extends AsyncDisposable {
  readonly url: string
  /** The other end, which may be named later. */
  to: string
  /** Requests that arrived at the other end, in order. */
  readonly arrived: PassingRequest[]
  /** How many connections were opened to this end. */
  readonly connections: number
  fate: (request: PassingRequest) => Fate | Promise<Fate>
}

export async function startFaultyLine(to = ''): Promise<FaultyLine> {
  const arrived: PassingRequest[] = []
  let connections = 0
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const passing = { method: incoming.method!, path: incoming.url!, body: Buffer.concat(chunks).toString() }
    const fate = await line.fate(passing)
    if (fate === 'question lost') return incoming.socket.destroy()
    if (typeof fate === 'object') return outgoing.writeHead(200, { 'content-type': 'application/json' }).end(fate.body)
    if (typeof fate === 'number')
      return outgoing.writeHead(fate, { 'content-type': 'application/json' }).end('{"message":"not now"}')
    arrived.push(passing)
    const { host, authorization, 'content-type': type } = incoming.headers
    const headers = Object.entries({ host, authorization, 'content-type': type }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    )
    const answer = await fetch(line.to + passing.path, {
      method: passing.method,
      headers,
      ...(passing.body !== '' && { body: passing.body }),
    })
    const text = await answer.text()
    if (fate === 'answer lost') return incoming.socket.destroy()
    outgoing.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }).end(text)
  })
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const line: FaultyLine = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    to,
    arrived,
    get connections() {
      return connections
    },
    fate: () => 'answered',
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return line
}

/** A line that breaks with the first POST, and stays broken. */
export function brokenByPost(fate: Fate): FaultyLine['fate'] {
  let isBroken = false
  return ({ method }) => {
    isBroken ||= method === 'POST'
    return isBroken ? fate : 'answered'
  }
}

/** Holds POST requests up. `reached` resolves with the first; `open` lets all go on, or says what becomes of them. */
export function holdPosts(line: FaultyLine) {
  const waiting = Promise.withResolvers<void>()
  const { promise, resolve } = Promise.withResolvers<Fate>()
  line.fate = ({ method }) => {
    if (method !== 'POST') return 'answered'
    waiting.resolve()
    return promise
  }
  return { reached: waiting.promise, open: (fate: Fate = 'answered') => resolve(fate) }
}
