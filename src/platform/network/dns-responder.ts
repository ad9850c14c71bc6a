/**
 * An authoritative name server for a few names, over UDP and TCP. Anyone may send to it: what it answers, how often and
 * for how long it listens to one sender is bounded.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, isIPv6, type Server, type Socket } from 'node:net'
import { dnsAnswer, isRefusal, MAX_MESSAGE_BYTES, type Zones } from '../../protocol/dns-answer.ts'

/** Most answers per second: to one address; to all about our names; to all about others. Resolvers ask again. */
const MAX_ANSWERS_PER_ADDRESS = 20
const MAX_ANSWERS = 5000
const MAX_REFUSALS = 200
const WINDOW_MILLIS = 1000
const MAX_CONNECTIONS = 64
const CONNECTION_MILLIS = 3000
const MAX_QUERIES_PER_CONNECTION = 16
/** Length of the prefix that tells the length of a message over TCP. RFC 1035, 4.2.2. */
const PREFIX_BYTES = 2
const MAX_TCP_ANSWER_BYTES = 4096

export interface DnsResponder {
  /** What it answers with, which may change. */
  zones: Zones
  close(): Promise<void>
}

/** Open a port for UDP and TCP at each address. Throws the error of the system if one cannot be opened. */
export async function openDnsResponder(
  { addresses, port }: { addresses: readonly string[]; port: number },
  zones: Zones,
): Promise<DnsResponder> {
  const responder = { zones }
  const shared = { responder, rate: new AnswerRate() }
  const open: (() => Promise<void>)[] = []
  const close = async () => {
    for (const end of open.splice(0)) await end()
  }
  try {
    for (const address of addresses) {
      open.push(await listenUdp(address, port, shared))
      open.push(await listenTcp(address, port, shared))
    }
  } catch (error) {
    await close()
    throw error
  }
  return Object.assign(responder, { close })
}

/** Counts answers in windows of a second. It knows at most as many addresses as it counts answers. */
class AnswerRate {
  #startedAt = -Infinity
  #answers = 0
  #refusals = 0
  readonly #counts = new Map<string, number>()

  /** Whether an answer may be sent to an address. If so, it counts. */
  allows(address: string, answer: Uint8Array): boolean {
    const now = performance.now()
    if (now - this.#startedAt >= WINDOW_MILLIS) {
      this.#startedAt = now
      this.#answers = this.#refusals = 0
      this.#counts.clear()
    }
    const count = this.#counts.get(address) ?? 0
    // Queries beyond the limit of one address use up nothing that others need.
    if (count >= MAX_ANSWERS_PER_ADDRESS) return false
    const isFull = isRefusal(answer) ? this.#refusals++ >= MAX_REFUSALS : this.#answers++ >= MAX_ANSWERS
    if (isFull) return false
    this.#counts.set(address, count + 1)
    return true
  }
}

interface Shared {
  responder: Pick<DnsResponder, 'zones'>
  rate: AnswerRate
}

/** Returns the function that closes the port. */
async function listenUdp(address: string, port: number, { responder, rate }: Shared): Promise<() => Promise<void>> {
  const socket: UdpSocket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', ipv6Only: isIPv6(address) })
  socket.on('message', (query, from) => {
    const answer = dnsAnswer(query, responder.zones)
    if (answer !== null && rate.allows(from.address, answer)) socket.send(answer, from.port, from.address)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('error', reject)
  socket.bind(port, address, resolve)
  await promise
  // For example, because nothing can be sent to the address: a query may come with any.
  socket.on('error', () => undefined)
  return () => new Promise((closed) => socket.close(() => closed()))
}

async function listenTcp(address: string, port: number, shared: Shared): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    if (sockets.size >= MAX_CONNECTIONS) return void socket.destroy()
    sockets.add(socket)
    const timer = setTimeout(() => socket.destroy(), CONNECTION_MILLIS)
    socket.on('close', () => {
      clearTimeout(timer)
      sockets.delete(socket)
    })
    socket.on('error', () => socket.destroy())
    converse(socket, shared)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen({ port, host: address, ipv6Only: true }, resolve)
  await promise
  return async () => {
    const closed = new Promise((done) => server.close(done))
    for (const socket of sockets) socket.destroy()
    await closed
  }
}

/** Answers one query after another. The length of each precedes it. A query that is too long ends the connection. */
function converse(socket: Socket, { responder, rate }: Shared): void {
  let received: Buffer = Buffer.alloc(0)
  let queries = 0
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    while (received.length >= PREFIX_BYTES) {
      const length = received.readUInt16BE(0)
      if (length > MAX_MESSAGE_BYTES) return void socket.destroy()
      if (received.length < PREFIX_BYTES + length) return
      if (++queries > MAX_QUERIES_PER_CONNECTION) return void socket.destroy()
      const query = received.subarray(PREFIX_BYTES, PREFIX_BYTES + length)
      received = received.subarray(PREFIX_BYTES + length)
      const answer = dnsAnswer(query, responder.zones, MAX_TCP_ANSWER_BYTES)
      if (answer === null || !rate.allows(socket.remoteAddress ?? '', answer)) return void socket.destroy()
      const prefix = Buffer.alloc(PREFIX_BYTES)
      prefix.writeUInt16BE(answer.length, 0)
      socket.write(Buffer.concat([prefix, answer]))
    }
  })
}
