/**
 * The echo with which others check whether this server is reachable over QUIC: what a peer sends on a stream comes
 * back. It needs no authentication, and must never become an interface to anything else.
 */
import { clientOf } from '../../../http/client-address.ts'
import { chargesOf } from '../../../http/limiting.ts'
import type { Context } from '../../../platform/context.ts'
import type { Outcome, Service } from '../../../platform/network/iroh-listener.ts'

export const ECHO_ALPN = 'ezpds/iroh/0'

const MAX_ECHO_BYTES = 64 * 1024
const MAX_CONNECTIONS = 256
const MAX_STREAMS_PER_CONNECTION = 16
/**
 * Most bytes held at a time: 64 of the longest probes, beside all short ones. Probes are usually far shorter than they
 * may be.
 */
const MAX_HELD_BYTES = 64 * MAX_ECHO_BYTES
const SHORT_BYTES = 1024
const HANDSHAKE_MILLIS = 10_000
const STREAM_MILLIS = 30_000

/** Cost of a stream in addition to its bytes, as the number of bytes that take as long. */
const STREAM_COST_BYTES = 4096

/** What peers have done since the start. */
export interface EchoTally {
  connections: Record<Outcome, number>
  streams: Record<Outcome, number>
}

export const emptyTally = (): EchoTally => ({
  connections: { served: 0, refused: 0, failed: 0 },
  streams: { served: 0, refused: 0, failed: 0 },
})

/** Counts in `tally`. */
export function livenessEcho({ limits, metrics }: Pick<Context, 'limits' | 'metrics'>, tally: EchoTally): Service {
  return {
    maxConnections: MAX_CONNECTIONS,
    maxStreams: MAX_STREAMS_PER_CONNECTION,
    maxRequestBytes: MAX_ECHO_BYTES,
    maxHeldBytes: MAX_HELD_BYTES,
    freeBytes: SHORT_BYTES,
    handshakeMillis: HANDSHAKE_MILLIS,
    streamMillis: STREAM_MILLIS,
    admits(source) {
      const client = clientOf(source)
      const ofAll = { name: 'irohConnectionTotal', key: 'all', from: client } as const
      return limits.charge(...chargesOf(client, 'irohConnection'), ofAll)?.allowed ?? true
    },
    affords(source, { streams, bytes }) {
      const cost = streams * STREAM_COST_BYTES + bytes
      return limits.charge({ name: 'irohEchoTotal', key: 'all', cost, from: clientOf(source) })?.allowed ?? true
    },
    answer: (request) => request,
    count(what, outcome) {
      tally[`${what}s`][outcome]++
      metrics.count(what === 'connection' ? 'iroh_connections_total' : 'iroh_echoes_total', { outcome })
    },
  }
}
