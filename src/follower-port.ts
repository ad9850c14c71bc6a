/** The port of a machine that follows another one, and what answers reads there. */
import type { Following } from './features/operations/backup/backup.ts'
import { endpointName } from './http/endpoint.ts'
import { createFollowerEdge } from './http/follower-edge.ts'
import { openHttpServer, type HttpServer } from './http/http-server.ts'
import { openOr } from './http/listener.ts'
import type { Config } from './platform/configuration/config.ts'
import { plainAddress } from './platform/configuration/own-url.ts'
import type { Context } from './platform/context.ts'
import { CopyDatabase } from './platform/database/copy-database.ts'
import { onlyHere } from './platform/database/reader-database.ts'
import { readingContext } from './platform/readers/reading-context.ts'
import type { Clock } from './platform/running/clock.ts'
import { Limits } from './platform/running/limits.ts'
import { LiveConfig } from './platform/running/live-config.ts'
import type { Log } from './platform/running/log.ts'
import { followerEndpoints } from './reader-endpoints.ts'

interface Parts {
  clock: Clock
  log: Log
}

export interface FollowerReads {
  /** Reads the copy. */
  reading: CopyDatabase
  ctx: Context
}

export function openFollowerReads(loaded: Config, { clock, log }: Parts): FollowerReads {
  // Refused requests are looked up at the machine that serves only.
  const live = new LiveConfig({ ...loaded, console: { ...loaded.console, keptFailures: 0 } })
  const reading = new CopyDatabase((reader) => {
    live.reload(reader).catch((error: unknown) => log.warn('could not read the settings in the copy', { error }))
  })
  const limited = {
    get rateLimit() {
      return live.current.rateLimit
    },
  }
  const ctx = readingContext({
    get config() {
      return live.current
    },
    db: reading.asDatabase(),
    clock,
    log,
    limits: new Limits(limited, clock),
    // There are none of a machine that follows.
    metrics: onlyHere<Context['metrics']>('metrics', { count: () => {} }),
  })
  return { reading, ctx }
}

/** Blobs are here before a takeover if they are in a bucket. */
const endpointsOf = ({ blobs }: Config) =>
  followerEndpoints.filter((endpoint) => blobs.store === 's3' || endpointName(endpoint) !== 'com.atproto.sync.getBlob')

/** Without `reads`, everything is refused. */
export function openFollowerPort(
  config: Config,
  { clock, log }: Parts,
  following: Following,
  reads: FollowerReads | null,
): HttpServer {
  const edge = createFollowerEdge({
    clock,
    state: () => following.state,
    serving: () => following.serving,
    reads: reads && {
      ctx: reads.ctx,
      endpoints: endpointsOf(config),
      isReadable: () => reads.reading.isReadable,
    },
  })
  const unsent = (error: unknown) => {
    log.error('request failed', { error })
    return new Response(null, { status: 500 })
  }
  const place = { bindAddress: plainAddress(config), port: config.port }
  return openOr(() => openHttpServer({ ...edge, unsent }, { hostname: place.bindAddress, port: place.port }), place)
}
