/**
 * One open port, whose requests go to the dispatcher. It is the only module that knows Elysia.
 *
 * Elysia sends every path to one handler and parses no bodies. It infers what to parse from the handler's source text,
 * which a minifier changes; literal destructuring and `parse: 'none'` survive that.
 */
import { Elysia } from 'elysia'
import type { ServerWebSocket, TLSOptions } from 'bun'
import type { Dispatcher } from './dispatcher.ts'
import type { Socket, SocketHandler } from './endpoint.ts'
import type { Peer } from './peer.ts'

/** Upper bound for any request body; every route has its own, lower bound. */
const MAX_REQUEST_BYTES = 16 * 1024 ** 3
/** A connection that is idle for this long is closed; `long` endpoints are exempt. */
const IDLE_TIMEOUT_SECS = 90
/** Clients have nothing to send over a WebSocket, and a message is buffered until it is complete. */
const SOCKET_MESSAGE_BYTES = 1024
/** Unread bytes of a client above which a message is dropped; `Socket.send` then returns false. */
const SOCKET_BACKPRESSURE_BYTES = 16 * 1024 ** 2
/**
 * A client that sends this many pings and reads nothing is disconnected. The runtime answers each ping, and would keep
 * up to `SOCKET_BACKPRESSURE_BYTES` of answers in memory for each client.
 */
const MAX_UNREAD_PINGS = 100
/** A silent WebSocket client is pinged, and dropped if it stays silent for this long. */
const SOCKET_IDLE_SECS = 30

interface Place {
  hostname: string
  port: number
  /** Encrypt connections; the first entry is for clients that name none of the others. */
  tls?: TLSOptions[]
  /** Share the port with other sockets that do the same: new connections go to any of them. */
  reusePort?: boolean
}

export interface HttpServer {
  /** `<scheme>://<address>:<port>`. */
  url: string
  port: number
  /** Refuse new connections and close idle ones. Resolves when the others have ended. */
  retire(): Promise<void>
  /** Close all WebSockets. */
  closeSockets(code: number, reason: string): void
  /** Close everything at once. */
  close(): Promise<void>
}

/** Open the port. Throws the error of the system if that fails. */
export function openHttpServer(
  { dispatch, unsent }: Pick<Dispatcher, 'dispatch' | 'unsent'>,
  { hostname, port, tls, reusePort = false }: Place,
): HttpServer {
  const sockets = new Set<ServerWebSocket<unknown>>()
  const app = new Elysia({
    aot: true,
    // Search for the path directly after `http://`: Elysia otherwise skips a few characters, and a host may be short.
    handler: { standardHostname: false },
    serve: {
      hostname,
      port,
      reusePort,
      ...(tls && { tls }),
      development: false,
      maxRequestBodySize: MAX_REQUEST_BYTES,
      idleTimeout: IDLE_TIMEOUT_SECS,
      error: unsent,
    },
    websocket: {
      perMessageDeflate: false,
      maxPayloadLength: SOCKET_MESSAGE_BYTES,
      backpressureLimit: SOCKET_BACKPRESSURE_BYTES,
      closeOnBackpressureLimit: false,
      idleTimeout: SOCKET_IDLE_SECS,
      sendPings: true,
    },
  })
  // Ask the server per request: a property on Elysia's context would cost every request a getter.
  const peer: Peer = {
    addressOf: (request) => app.server!.requestIP(request)?.address ?? '',
    isDirect: tls !== undefined,
    takesPieces: true,
    mayIdle: (request, may) => app.server!.timeout(request, may ? 0 : IDLE_TIMEOUT_SECS),
    upgrade: (request, handler) => app.server!.upgrade(request, { data: socketData(handler, sockets) }),
  }
  app.all('/*', ({ request }) => dispatch(request, peer), { parse: 'none' })
  forgetting('beforeExit', () => app.listen({}))

  const server = app.server!
  return {
    url: `${tls ? 'https' : 'http'}://${server.hostname}:${server.port}`,
    port: server.port!,
    retire: () => server.stop(),
    closeSockets(code, reason) {
      for (const socket of sockets) socket.close(code, reason)
    },
    close: () => server.stop(true),
  }
}

/**
 * Removes the listeners that `work` adds to the process. Through them, Elysia would keep every server until the process
 * ends, with its certificates: there is another server whenever a certificate is renewed.
 */
function forgetting(event: 'beforeExit', work: () => unknown): void {
  const before = new Set(process.listeners(event))
  work()
  for (const added of process.listeners(event)) if (!before.has(added)) process.off(event, added)
}

/** The callbacks that Elysia calls during the life of a WebSocket. */
function socketData(handler: SocketHandler, sockets: Set<ServerWebSocket<unknown>>) {
  let unreadPings = 0
  return {
    open(raw: ServerWebSocket<unknown>) {
      sockets.add(raw)
      handler.open(socketOf(raw))
    },
    /** The runtime has answered already. */
    ping(raw: ServerWebSocket<unknown>) {
      unreadPings = raw.getBufferedAmount() > 0 ? unreadPings + 1 : 0
      if (unreadPings > MAX_UNREAD_PINGS) raw.terminate()
    },
    drain: () => handler.drain(),
    close(raw: ServerWebSocket<unknown>) {
      sockets.delete(raw)
      handler.closed()
    },
  }
}

const socketOf = (raw: ServerWebSocket<unknown>): Socket => ({
  send: (message) => raw.sendBinary(message) !== 0,
  bufferedBytes: () => raw.getBufferedAmount(),
  batch: (work) => void raw.cork(work),
  close: (code, reason) => raw.close(code, reason),
  cut: () => raw.terminate(),
})
