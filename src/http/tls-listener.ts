/**
 * The listener for encrypted connections, and the one that redirects to it.
 *
 * The runtime takes certificates only when a port is opened. So another server opens the same port with new
 * certificates, and the former server retires. For some seconds, its responses ask clients to close their connections:
 * those that stay open are closed in the end, and a request on its way would be lost. Then it takes no new connections
 * and closes idle ones, while requests and WebSockets continue. A connection that the system has queued for it in that
 * moment is reset, and its client connects again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSOptions } from 'bun'
import type { Config } from '../platform/configuration/config.ts'
import type { Context } from '../platform/context.ts'
import { certificatesOf, covers, type Certificate } from '../platform/network/certificate-shelf.ts'
import type { Dispatcher } from './dispatcher.ts'
import { openHttpServer, type HttpServer } from './http-server.ts'
import { openOr, stopAll } from './listener.ts'
import { openRedirects } from './redirects.ts'

/** Most servers with former certificates that may still have connections. Beyond this, the oldest is closed. */
const MAX_RETIRED = 4
/** How long a former server keeps its port open. In this time, it gets some of the new connections too. */
const FAREWELL_MILLIS = 3000
/** RFC 6455 registry: the server restarts, and the client should connect again. */
const SERVICE_RESTART = 1012

export interface TlsListener {
  /** As in `Listener`. */
  stop(graceMillis: number): Promise<void>
}

/**
 * Open the ports, and serve what is on the shelf from then on. While there is no certificate yet, connections are
 * refused. Throws an error for the operator, from `listenFault`, if a port cannot be opened.
 */
export async function listenTls(ctx: Context, dispatcher: Dispatcher): Promise<TlsListener> {
  const { config, log } = ctx
  const shelf = certificatesOf(ctx)
  const place = { hostname: config.bindAddress, port: config.tls.port }
  const retired: Replaceable[] = []
  let current: Replaceable | null = null

  const retire = async (server: Replaceable) => {
    retired.push(server)
    server.isReplaced = true
    await pause(FAREWELL_MILLIS, undefined, { ref: false })
    const ended = server.retire()
    const oldest = retired.length > MAX_RETIRED ? retired.shift() : undefined
    oldest?.closeSockets(SERVICE_RESTART, 'this connection has a former certificate')
    await oldest?.close()
    await ended
    if (retired.includes(server)) retired.splice(retired.indexOf(server), 1)
  }
  const open = (certificates: readonly Certificate[]) => {
    const tls = entriesOf(config, certificates)
    const server = openReplaceable(dispatcher, { ...place, tls, reusePort: true })
    if (current !== null) retire(current).catch((error) => log.error('could not retire a listener', { error }))
    current = server
  }

  const at = { bindAddress: config.bindAddress, port: config.tls.port, key: 'tls.port' }
  if (shelf.served.length > 0) openOr(() => open(shelf.served), at)
  else await openOr(() => openHttpServer(dispatcher, place), at).close()
  const redirects = config.tls.httpPort === 0 ? null : openRedirects(config, shelf)
  const end = shelf.changed.subscribe(() => {
    try {
      open(shelf.served)
      log.info('serving new certificates', { report: namesIn(shelf.served) })
    } catch (error) {
      log.error('could not serve new certificates', { error })
    }
  })
  return {
    async stop(graceMillis) {
      end()
      await redirects?.close()
      await stopAll(dispatcher, current === null ? retired : [...retired, current], graceMillis)
    },
  }
}

interface Replaceable extends HttpServer {
  /** Its responses ask clients to close the connection. */
  isReplaced: boolean
}

function openReplaceable({ dispatch, unsent }: Dispatcher, place: Parameters<typeof openHttpServer>[1]): Replaceable {
  const server: Replaceable = Object.assign(
    openHttpServer(
      {
        unsent,
        dispatch: (request, peer) => {
          const response = dispatch(request, peer)
          return server.isReplaced ? response.then(asLast) : response
        },
      },
      place,
    ),
    { isReplaced: false },
  )
  return server
}

function asLast(response: Response): Response {
  response?.headers.set('connection', 'close')
  return response
}

/** An entry for each name. The certificate of the service comes first. */
function entriesOf({ publicUrl }: Config, certificates: readonly Certificate[]): TLSOptions[] {
  const { hostname } = new URL(publicUrl)
  const ordered = certificates.toSorted((a, b) => Number(covers(b, hostname)) - Number(covers(a, hostname)))
  return ordered.flatMap(({ names, chain, key }) => names.map((serverName) => ({ serverName, cert: chain, key })))
}

const MAX_LISTED_NAMES = 10

const namesIn = (certificates: readonly Certificate[]): string => {
  const names = certificates.flatMap((certificate) => certificate.names)
  const more = names.length - MAX_LISTED_NAMES
  return names.slice(0, MAX_LISTED_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
