/**
 * This server's endpoint for QUIC between peers. Imported only by servers that have one, because it loads the library.
 *
 * The library takes and returns bytes as arrays of numbers, and nothing in it can be cancelled: each call is raced
 * against a timeout, and what loses is closed. The messages of its errors end with a backtrace, so only their first
 * line is kept.
 */
import type { Connection, Endpoint } from '@number0/iroh'
import { OperatorError } from '../../base/operator-error.ts'
import { irohLibrary } from './iroh-library.ts'
import type { PeerConnection, Peers } from './peers.ts'

/** How long closing waits for peers to confirm. They are told at once. */
const CLOSE_MILLIS = 1000

interface Binding {
  /** Seed of the Ed25519 key, 32 bytes. */
  secret: Uint8Array
  /** Use the public relays and discovery, so that peers find each other by their ids alone. */
  discovery: boolean
  /** Sockets to open, each `address:port`. None: any port of all interfaces. */
  sockets: readonly string[]
}

export interface IrohEndpoint extends Peers {
  /** The sockets that are open, each `address:port`. */
  readonly sockets: readonly string[]
  close(): Promise<void>
}

/** Returns the endpoint once its sockets are open. Throws `OperatorError` if the library or a socket cannot be had. */
export async function openEndpoint({ secret, discovery, sockets }: Binding): Promise<IrohEndpoint> {
  const { Endpoint, RelayMode } = irohLibrary()
  const builder = Endpoint.builder()
  if (discovery) builder.applyN0()
  else {
    builder.applyMinimal()
    builder.relayMode(RelayMode.disabled())
  }
  builder.secretKey([...secret])
  for (const socket of sockets) builder.bindAddr(socket)
  try {
    return new BoundEndpoint(await builder.bind())
  } catch (error) {
    throw new OperatorError(`the QUIC endpoint cannot open its sockets: ${briefly(error)}`, { cause: error })
  }
}

class BoundEndpoint implements IrohEndpoint {
  readonly #endpoint: Endpoint
  readonly nodeId: string

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
    this.nodeId = endpoint.id().toString()
  }

  get sockets(): readonly string[] {
    return this.#endpoint.boundSockets()
  }

  async dial({ nodeId, addresses }: Parameters<Peers['dial']>[0], alpn: string, timeoutMillis: number): Promise<PeerConnection> {
    try {
      const connecting = this.#connect(nodeId, addresses, alpn)
      return new DialledPeer(
        await within(timeoutMillis, connecting, () => {
          // Connected too late for anybody to use it.
          void connecting.then(disconnect, () => undefined)
        }),
      )
    } catch (error) {
      throw new Error(`peer not reached: ${briefly(error)}`)
    }
  }

  async #connect(nodeId: string, addresses: readonly string[], alpn: string): Promise<Connection> {
    const { EndpointAddr, EndpointId } = irohLibrary()
    return this.#endpoint.connect(new EndpointAddr(EndpointId.fromString(nodeId), null, [...addresses]), [...Buffer.from(alpn)])
  }

  async close(): Promise<void> {
    await within(CLOSE_MILLIS, this.#endpoint.close()).catch(() => undefined)
  }
}

class DialledPeer implements PeerConnection {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async exchange(request: Uint8Array, { maxBytes, timeoutMillis }: Parameters<PeerConnection['exchange']>[1]): Promise<Uint8Array> {
    try {
      return await within(timeoutMillis, this.#transfer(request, maxBytes))
    } catch (error) {
      // A stream on which a read is waiting cannot be stopped, so the connection has to go.
      this.close()
      throw new Error(`exchange with a peer failed: ${briefly(error)}`)
    }
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

const disconnect = (connection: Connection): void => connection.close(0n, [])

/** Rejects if the work takes longer. The work itself goes on: `abandon` says what becomes of it. */
async function within<T>(millis: number, work: Promise<T>, abandon = () => {}): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(new Error(`not done after ${millis} ms`))
    abandon()
  }, millis)
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const briefly = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]!
