/** Another party that speaks QUIC, on loopback: the real library, which reaches neither public relays nor discovery. */
import type { BiStream, Connection, Endpoint } from '@number0/iroh'
import { irohLibrary } from '../../../src/platform/network/iroh-library.ts'

interface PeerOptions {
  /** The protocol that it accepts. None: it only dials. */
  alpn?: string
  /** Seed of its key, 32 bytes; random if omitted. */
  secret?: Uint8Array
  /** Its port for IPv4, so that it can come back at the same address; any free one if omitted. */
  port?: number
  /** Called for each stream that is opened to it, with the request once that is complete. Returns the response. */
  answer?(
    request: Uint8Array,
    from: { nodeId: string; connection: Connection; stream: BiStream },
  ): Promise<Uint8Array> | Uint8Array
}

export interface QuicPeer extends AsyncDisposable {
  readonly endpoint: Endpoint
  readonly nodeId: string
  /** Where it listens, each `address:port`. */
  readonly addresses: readonly string[]
  /** The connections that were opened to it, oldest first. */
  readonly accepted: readonly Connection[]
  /** Connects to a server. Rejects if the server refuses the protocol. */
  dial(to: { nodeId: string; addresses: readonly string[] }, alpn: string): Promise<Connection>
  close(): Promise<void>
}

const MAX_REQUEST_BYTES = 1024 * 1024

export const bytesOf = (alpn: string): number[] => [...Buffer.from(alpn)]

export async function startQuicPeer({
  alpn,
  secret,
  port = 0,
  answer = (request) => request,
}: PeerOptions = {}): Promise<QuicPeer> {
  const { Endpoint, EndpointAddr, EndpointId, RelayMode } = irohLibrary()
  const builder = Endpoint.builder()
  builder.applyMinimal()
  builder.relayMode(RelayMode.disabled())
  if (alpn !== undefined) builder.alpns([bytesOf(alpn)])
  if (secret !== undefined) builder.secretKey([...secret])
  for (const socket of [`127.0.0.1:${port}`, '[::1]:0']) builder.bindAddr(socket)
  const endpoint = await builder.bind()
  const nodeId = endpoint.id().toString()
  const accepted: Connection[] = []

  /** What fails here is what the tests provoke: connections and streams that end early. */
  const ends = () => undefined
  /** A stream that nothing refers to any more is finished by the library. */
  const held = new Set<BiStream>()
  const serveStream = async (connection: Connection, stream: BiStream) => {
    held.add(stream)
    const request = Uint8Array.from(await stream.recv.readToEnd(MAX_REQUEST_BYTES))
    const response = await answer(request, { nodeId: connection.remoteId().toString(), connection, stream })
    const { send } = stream
    await send.writeAll([...response])
    await send.finish()
    await send.stopped()
    held.delete(stream)
  }
  const serveConnection = async (connection: Connection) => {
    accepted.push(connection)
    for (;;) void serveStream(connection, await connection.acceptBi()).catch(ends)
  }
  const serve = async () => {
    for (let incoming = await endpoint.acceptNext(); incoming !== null; incoming = await endpoint.acceptNext())
      void incoming
        .accept()
        .then((accepting) => accepting.connect())
        .then(serveConnection)
        .catch(ends)
  }
  void serve()

  const close = () => endpoint.close()
  return {
    endpoint,
    nodeId,
    addresses: endpoint.boundSockets(),
    accepted,
    dial: (to, protocol) =>
      endpoint.connect(new EndpointAddr(EndpointId.fromString(to.nodeId), null, [...to.addresses]), bytesOf(protocol)),
    close,
    [Symbol.asyncDispose]: close,
  }
}
