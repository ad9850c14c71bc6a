/**
 * Serves one protocol to peers that connect: each bidirectional stream brings a request and gets a response. Any peer
 * may connect, so everything is bounded, and exceeding a bound costs the sender more than this server.
 */
import type { BiStream, Connection, Endpoint, Incoming, RecvStream, SendStream } from '@number0/iroh'
import { connectedWithin, disconnect, isOver } from './iroh-calls.ts'

/** Bytes that one call reads. The library reserves them while it waits. */
const READ_BYTES = 4096

/** Error codes for peers whose stream is refused or has taken too long. */
const REFUSED = 1n
const TOO_LATE = 2n

/** `refused`: a bound was exceeded. `failed`: the peer gave up, or broke the rules of the protocol. */
export type Outcome = 'served' | 'refused' | 'failed'

export interface Service {
  maxConnections: number
  /** Per connection, at a time. */
  maxStreams: number
  maxRequestBytes: number
  /** Bytes of all requests that are in memory until they are answered. The first bytes of each do not count. */
  maxHeldBytes: number
  /** How many bytes of each request do not count, so that short ones are served even while others fill the memory. */
  freeBytes: number
  handshakeMillis: number
  /** From the opening of a stream until the response is on its way. */
  streamMillis: number
  /**
   * `source` is the address of the peer, without its port, or that of the public relay through which it comes. False:
   * the peer is refused.
   */
  admits(source: string): boolean
  /** Asked for each stream, and for each piece of a request of `source`. False: the connection is closed. */
  affords(source: string, work: { streams: number; bytes: number }): boolean
  answer(request: Uint8Array): Uint8Array
  /** Called at the end of each attempt to connect, and of each stream. */
  count(what: 'connection' | 'stream', outcome: Outcome): void
}

export class Listener {
  readonly #connections = new Set<ServedConnection>()
  #handshakes = 0
  #heldBytes = 0

  constructor(readonly service: Service) {}

  /** Connections that are open. */
  get connections(): number {
    return this.#connections.size
  }

  /** Resolves when the endpoint is closed, which also ends all connections. */
  async listen(endpoint: Endpoint): Promise<void> {
    for (let incoming = await endpoint.acceptNext(); incoming !== null; incoming = await endpoint.acceptNext())
      void this.#take(incoming)
  }

  async #take(incoming: Incoming): Promise<void> {
    const { service } = this
    this.#handshakes++
    const admitted = await this.#admitted(incoming)
      .catch(() => {
        // The peer gave up, or offered only protocols that are not served.
        service.count('connection', 'failed')
        return null
      })
      .finally(() => this.#handshakes--)
    if (admitted === null) return
    service.count('connection', 'served')
    const served = new ServedConnection(admitted, this)
    this.#connections.add(served)
    await served.run()
    this.#connections.delete(served)
  }

  /** Returns null if the peer was refused. */
  async #admitted(incoming: Incoming): Promise<Admitted | null> {
    const { handshakeMillis } = this.service
    const { addr, kind } = await incoming.remoteAddr()
    const source = addr === undefined ? kind : withoutPort(addr)
    if (this.service.admits(source) && this.#hasRoom()) {
      const accepting = incoming.accept()
      const connecting = accepting.then((handshake) => handshake.connect())
      return { connection: await connectedWithin(handshakeMillis, connecting), source }
    }
    this.service.count('connection', 'refused')
    await incoming.refuse().catch(isOver)
    return null
  }

  /** When all places are taken, the oldest connection that is idle gives up its own. */
  #hasRoom(): boolean {
    if (this.#connections.size + this.#handshakes <= this.service.maxConnections) return true
    const idle = this.#connections.values().find((connection) => connection.isIdle)
    idle?.close()
    return idle !== undefined && this.#connections.delete(idle)
  }

  /** Returns whether there is memory for more bytes, which are then taken. */
  hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.service.maxHeldBytes) return false
    this.#heldBytes += bytes
    return true
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
  }
}

interface Admitted {
  connection: Connection
  source: string
}

class ServedConnection {
  readonly #connection: Connection
  readonly #source: string
  readonly #listener: Listener
  #streams = 0
  /** Streams past their deadline. A stream on which a read is waiting can be neither stopped nor forgotten. */
  #late = 0

  constructor({ connection, source }: Admitted, listener: Listener) {
    this.#connection = connection
    this.#source = source
    this.#listener = listener
  }

  /** Whether no stream is within its deadline. */
  get isIdle(): boolean {
    return this.#streams === this.#late
  }

  /** Resolves when the connection ends. */
  async run(): Promise<void> {
    const { service } = this.#listener
    const connection = this.#connection
    try {
      connection.setMaxConcurrentBiStreams(BigInt(service.maxStreams))
      connection.setMaxConcurrentUniStreams(0n)
      // Unidirectional streams and datagrams are never read, so their content would stay in memory.
      const stray = Promise.race([connection.acceptUni(), connection.readDatagram()])
      void stray.then(() => this.close(), isOver)
      for (;;) {
        const stream = await connection.acceptBi()
        if (service.affords(this.#source, { streams: 1, bytes: 0 })) void this.#serve(stream)
        else this.close()
      }
    } catch {
      // Closed, by either side.
    }
  }

  close(): void {
    disconnect(this.#connection)
  }

  async #serve({ send, recv }: BiStream): Promise<void> {
    const { service } = this.#listener
    const outcome = this.#streams < service.maxStreams ? await this.#exchange(send, recv) : 'refused'
    if (outcome !== 'late') service.count('stream', outcome)
    if (outcome === 'served') return
    void recv.stop(REFUSED).catch(isOver)
    void send.reset(REFUSED).catch(isOver)
  }

  async #exchange(send: SendStream, recv: RecvStream): Promise<Outcome | 'late'> {
    const { service } = this.#listener
    const request = new HeldBytes(this.#listener)
    let isComplete = false
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#late++
      service.count('stream', 'refused')
      request.release()
      void send.reset(TOO_LATE).catch(isOver)
      // Closing the connection is the only way to end a response that the peer does not take, or a connection full of
      // late streams.
      if (isComplete || this.#late === service.maxStreams) this.close()
    }, service.streamMillis)
    this.#streams++
    try {
      for (;;) {
        const piece = await recv.read(READ_BYTES)
        if (isLate) return 'late'
        if (piece.length === 0) break
        if (!service.affords(this.#source, { streams: 0, bytes: piece.length })) this.close()
        if (request.length + piece.length > service.maxRequestBytes || !request.add(piece)) return 'refused'
      }
      isComplete = true
      await send.writeAll([...service.answer(request.bytes())])
      await send.finish()
      return isLate ? 'late' : 'served'
    } catch {
      return isLate ? 'late' : 'failed'
    } finally {
      clearTimeout(timer)
      request.release()
      this.#streams--
      if (isLate) this.#late--
    }
  }
}

/** `addr` is `address:port`, with brackets around an IPv6 address. */
const withoutPort = (addr: string): string => addr.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')

/** A request while it arrives. It counts against what all requests may take together. */
class HeldBytes {
  readonly #listener: Listener
  #pieces: Uint8Array[] = []
  length = 0

  constructor(listener: Listener) {
    this.#listener = listener
  }

  /** Returns false if there is no memory for it. */
  add(piece: readonly number[]): boolean {
    const length = this.length + piece.length
    if (!this.#listener.hold(this.#counted(length) - this.#counted(this.length))) return false
    this.#pieces.push(Uint8Array.from(piece))
    this.length = length
    return true
  }

  #counted(length: number): number {
    return Math.max(0, length - this.#listener.service.freeBytes)
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#pieces)
  }

  /** May be called more than once. */
  release(): void {
    this.#listener.release(this.#counted(this.length))
    this.#pieces = []
    this.length = 0
  }
}
