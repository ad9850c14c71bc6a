/** The listener for requests that are not encrypted: those of a reverse proxy, or of this machine. */
import type { Config } from '../platform/configuration/config.ts'
import { plainAddress } from '../platform/configuration/own-url.ts'
import { listenFault } from '../platform/files/system-faults.ts'
import type { Dispatcher } from './dispatcher.ts'
import { openHttpServer, type HttpServer } from './http-server.ts'

export interface Listener {
  /** `http://<address>:<port>` of the listener. */
  url: string
  port: number
  /** Refuse new connections, wait at most `graceMillis` for requests in progress, then close the rest. */
  stop(graceMillis: number): Promise<void>
}

/** Open the port. Throws an error for the operator, from `listenFault`, if that fails. */
export function listen(config: Config, dispatcher: Dispatcher, { reusePort = false } = {}): Listener {
  const server = openOr(
    () => openHttpServer(dispatcher, { hostname: plainAddress(config), port: config.port, reusePort }),
    {
      bindAddress: plainAddress(config),
      port: config.port,
    },
  )
  return { url: server.url, port: server.port, stop: (graceMillis) => stopAll(dispatcher, [server], graceMillis) }
}

/** Returns what `open` opens. Throws what `listenFault` says of its error. */
export function openOr<Server>(open: () => Server, place: Parameters<typeof listenFault>[1]): Server {
  try {
    return open()
  } catch (error) {
    throw listenFault(error, place)
  }
}

/** Stop servers that share a dispatcher, as `Listener.stop` says. */
export async function stopAll(
  dispatcher: Pick<Dispatcher, 'stop'>,
  servers: readonly HttpServer[],
  graceMillis: number,
): Promise<void> {
  const stopped = dispatcher.stop(graceMillis)
  const retired = servers.map((server) => server.retire())
  for (const server of servers) server.closeSockets(1001, 'server is shutting down')
  await stopped
  for (const server of servers) await server.close()
  await Promise.all(retired)
}
