/**
 * This server's endpoint for QUIC between peers. Imported only by servers that have one, because it loads the library.
 */
import type { Connection, Endpoint } from '@number0/iroh'
import { OperatorError } from '../../base/operator-error.ts'
import { briefly, connectedWithin, disconnect, isOver, within } from './iroh-calls.ts'
import { irohLibrary } from './iroh-library.ts'
import { Listener, type Service } from './iroh-listener.ts'
import type { ExchangeLimits, PeerConnection, Peers } from './peers.ts'

/** How long closing waits for peers to confirm. They are told at once. */
const CLOSE_MILLIS = 1000

interface Binding {
  /** Seed of the Ed25519 key, 32 bytes. */
  secret: Uint8Array
  /** Use the public relays and discovery, so that peers find each other by their ids alone. */
  discovery: boolean
  /** Sockets to open, each `address:port`. None: any port of all interfaces. */
  sockets: readonly string[]
  /** The only protocol that peers may ask for, and what serves it. */
  alpn: string
  service: Service
}

export interface IrohEndpoint extends Peers {
  /** The sockets that are open, each `address:port`. */
  readonly sockets: readonly string[]
  /** Connections that peers have opened. */
  readonly connections: number
  close(): Promise<void>
}

/** Returns the id of the endpoint with this secret. Throws `OperatorError` if the library cannot be loaded. */
export const nodeIdOf = (secret: Uint8Array): string =>
  irohLibrary()
    .SecretKey.fromBytes([...secret])
    .public()
    .toString()

/** Returns the endpoint once its sockets are open. Throws `OperatorError` if the library or a socket does not open. */
export async function openEndpoint({ secret, discovery, sockets, alpn, service }: Binding): Promise<IrohEndpoint> {
  const { Endpoint, RelayMode } = irohLibrary()
  const builder = Endpoint.builder()
  if (discovery) builder.applyN0()
  else {
    builder.applyMinimal()
    builder.relayMode(RelayMode.disabled())
  }
  builder.secretKey([...secret])
  builder.alpns([numbersOf(alpn)])
  for (const socket of sockets) builder.bindAddr(socket)
  try {
    return new BoundEndpoint(await builder.bind(), service)
  } catch (error) {
    throw new OperatorError(`the QUIC endpoint cannot open its sockets: ${briefly(error)}`, { cause: error })
  }
}

class BoundEndpoint implements IrohEndpoint {
  readonly #endpoint: Endpoint
  readonly #listener: Listener
  readonly #listening: Promise<void>
  readonly nodeId: string

  constructor(endpoint: Endpoint, service: Service) {
    this.#endpoint = endpoint
    this.nodeId = endpoint.id().toString()
    this.#listener = new Listener(service)
    this.#listening = this.#listener.listen(endpoint)
  }

  get connections(): number {
    return this.#listener.connections
  }

  get sockets(): readonly string[] {
    return this.#endpoint.boundSockets()
  }

  async dial(
    { nodeId, addresses }: Parameters<Peers['dial']>[0],
    alpn: string,
    timeoutMillis: number,
  ): Promise<PeerConnection> {
    try {
      return new DialledPeer(await connectedWithin(timeoutMillis, this.#connect(nodeId, addresses, alpn)))
    } catch (error) {
      throw new Error(`peer not reached: ${briefly(error)}`)
    }
  }

  async #connect(nodeId: string, addresses: readonly string[], alpn: string): Promise<Connection> {
    const { EndpointAddr, EndpointId } = irohLibrary()
    return this.#endpoint.connect(
      new EndpointAddr(EndpointId.fromString(nodeId), null, [...addresses]),
      numbersOf(alpn),
    )
  }

  async close(): Promise<void> {
    await within(CLOSE_MILLIS, Promise.all([this.#endpoint.close(), this.#listening])).catch(isOver)
  }
}

const numbersOf = (alpn: string): number[] => [...Buffer.from(alpn)]

class DialledPeer implements PeerConnection {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
    // The peer must only answer. Streams that it opened would never be read, and up to 120 MiB would stay in memory.
    const stray = Promise.race([connection.acceptBi(), connection.acceptUni(), connection.readDatagram()])
    void stray.then(() => this.close(), isOver)
  }

  async exchange(request: Uint8Array, { maxBytes, timeoutMillis, silenceMillis }: ExchangeLimits): Promise<Uint8Array> {
    // Without this, a connection to a peer that was killed would be given up only after half a minute.
    const before = this.#received
    const silence = setTimeout(() => this.#received === before && this.close(), silenceMillis)
    try {
      return await within(timeoutMillis, this.#transfer(request, maxBytes))
    } catch (error) {
      // A stream on which a read is waiting cannot be stopped, so the connection has to go.
      this.close()
      throw new Error(`exchange with a peer failed: ${briefly(error)}`)
    } finally {
      clearTimeout(silence)
    }
  }

  get #received(): number {
    return this.#connection.stats().udpRxDatagrams
  }

  async #transfer(request: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    const { send, recv } = await this.#connection.openBi()
    await send.writeAll([...request])
    await send.finish()
    return Uint8Array.from(await recv.readToEnd(maxBytes))
  }

  close(): void {
    disconnect(this.#connection)
  }
}
