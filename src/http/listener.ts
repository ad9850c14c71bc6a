/**
 * The listener: sockets on one side, the dispatcher on the other. The only module that knows Elysia.
 *
 * Elysia takes every path to the one handler and never parses a body for us. It guesses from a handler's source text
 * what to parse, and a minifier changes that text; literal destructuring and `parse: 'none'` are what survives.
 */
import { Elysia } from 'elysia'
import type { ServerWebSocket } from 'bun'
import type { Config } from '../platform/configuration/config.ts'
import { listenFault } from '../platform/files/system-faults.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Socket, SocketHandler } from './endpoint.ts'
import type { Peer } from './peer.ts'

/** Bound of what the listener lets through at all; each route has its own, lower one. */
const MAX_REQUEST_BYTES = 16 * 1024 ** 3
/** A connection that is idle for this long is closed; `long` endpoints are exempt. */
const IDLE_TIMEOUT_SECS = 90
/** Nobody has anything to say to us. A longer message would be kept until it is complete. */
const SOCKET_MESSAGE_BYTES = 1024
/** What a client may leave unread before a message to it is dropped. `Socket.send` tells. */
const SOCKET_BACKPRESSURE_BYTES = 16 * 1024 ** 2
/** The server pings a silent WebSocket client, and drops it after this. */
const SOCKET_IDLE_SECS = 30

export interface Listener {
  /** `http://<address>:<port>` of the listener. */
  url: string
  port: number
  /** Refuse new connections, let running requests end (at most `graceMillis`), then close what is left. */
  stop(graceMillis: number): Promise<void>
}

export function listen(config: Config, { dispatch, stop }: Dispatcher): Listener {
  const sockets = new Set<ServerWebSocket<unknown>>()
  const app = new Elysia({
    aot: true,
    // Look for the path behind `http://`, and not some characters later: hosts may be short.
    handler: { standardHostname: false },
    serve: {
      hostname: config.bindAddress,
      port: config.port,
      reusePort: false,
      development: false,
      maxRequestBodySize: MAX_REQUEST_BYTES,
      idleTimeout: IDLE_TIMEOUT_SECS,
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
  // A property of Elysia's context would cost every request a getter, so the server is asked for the request.
  const peer: Peer = {
    addressOf: (request) => app.server!.requestIP(request)?.address ?? '',
    withoutTimeout: (request) => app.server!.timeout(request, 0),
    upgrade: (request, handler) => app.server!.upgrade(request, { data: socketData(handler, sockets) }),
  }
  app.all('/*', ({ request }) => dispatch(request, peer), { parse: 'none' })
  try {
    app.listen({})
  } catch (error) {
    throw listenFault(error, config)
  }

  const server = app.server!
  return {
    url: `http://${server.hostname}:${server.port}`,
    port: server.port!,
    async stop(graceMillis) {
      const stopped = stop(graceMillis)
      const closed = server.stop()
      for (const socket of sockets) socket.close(1001, 'server is going down')
      await stopped
      await server.stop(true)
      await closed
    },
  }
}

/** What Elysia calls as the WebSocket lives. */
const socketData = (handler: SocketHandler, sockets: Set<ServerWebSocket<unknown>>) => ({
  open(raw: ServerWebSocket<unknown>) {
    sockets.add(raw)
    handler.open(socketOf(raw))
  },
  drain: () => handler.drain(),
  close(raw: ServerWebSocket<unknown>) {
    sockets.delete(raw)
    handler.closed()
  },
})

const socketOf = (raw: ServerWebSocket<unknown>): Socket => ({
  send: (message) => raw.sendBinary(message) !== 0,
  bufferedBytes: () => raw.getBufferedAmount(),
  batch: (work) => void raw.cork(work),
  close: (code, reason) => raw.close(code, reason),
})
