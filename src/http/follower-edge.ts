/**
 * The edge of a machine that follows another one. It refuses everything, and says which machine to ask; or it answers
 * public reads from its copy, as a reader thread does, with their age.
 *
 * What the copy lacks may have come to the serving machine by now. So refusals are left to that machine, too.
 */
import { SOFTWARE } from '../base/version.ts'
import type { Context } from '../platform/context.ts'
import type { Clock } from '../platform/running/clock.ts'
import type { Millis } from '../protocol/identifiers.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Endpoint } from './endpoint.ts'
import { Refusal, serviceUnavailable } from './errors.ts'
import { RequestExchange } from './exchange.ts'
import { createReaderEdge } from './reader-edge.ts'
import { failure, preflight } from './reply.ts'
import { surfaceOf } from './surfaces.ts'
import { pathOf } from './targets.ts'

/** `Retry-After` of requests that another machine has to answer. */
const RETRY_SECS = 5
/** A copy that is further behind is not read, so that what was taken down meanwhile is not seen for longer. */
const MAX_BEHIND_MILLIS = 60_000

export interface FollowerEdge {
  clock: Pick<Clock, 'monotonic'>
  /** What is known of the copy. */
  state(): { behindMillis: number | null; at: Millis | null; fault: string | null }
  /** The name of the machine that serves, if it is known. */
  serving(): string | null
  /** Null if it answers no reads. */
  reads: { ctx: Context; endpoints: readonly Endpoint[]; isReadable(): boolean } | null
}

export function createFollowerEdge({ state, serving, reads, clock }: FollowerEdge): Pick<Dispatcher, 'dispatch'> {
  const reason = () => {
    const name = serving()
    return `this machine follows another one${name === null ? '' : `, ${name}`}`
  }
  const unavailable = (body: object) =>
    Response.json(body, { status: 503, headers: { 'Retry-After': String(RETRY_SECS) } })
  const answersReads = () =>
    reads !== null && reads.isReadable() && (state().behindMillis ?? Infinity) <= MAX_BEHIND_MILLIS

  const refuse = () => unavailable({ error: 'ServiceUnavailable', message: reason() })
  const edge =
    reads &&
    createReaderEdge({
      ctx: reads.ctx,
      endpoints: reads.endpoints,
      isCurrent: answersReads,
      async forward(request, peer, failed) {
        const path = pathOf(request.url)
        if (request.method === 'OPTIONS') return preflight(surfaceOf(path), request)
        const exchange = failed?.exchange ?? new RequestExchange(reads.ctx, request, peer, path, null, path, null)
        if (failed?.error instanceof Refusal && failed.error.status === 429) return failure(exchange, failed.error)
        return failure(exchange, serviceUnavailable(`${reason()}, which has to answer this`, RETRY_SECS))
      },
      chargesAgain: false,
      answered() {},
      logsRequests: reads.ctx.log.writes('debug'),
    })

  return {
    async dispatch(request, peer) {
      const path = pathOf(request.url)
      if (path === '/livez') return Response.json({ status: 'ok' })
      if (path === '/readyz')
        return unavailable({
          status: 'unavailable',
          reason: reason(),
          role: 'follower',
          answersReads: answersReads(),
          ...state(),
        })
      if (edge === null) return refuse()
      if (path === '/xrpc/_health')
        return answersReads()
          ? Response.json({ version: SOFTWARE, role: 'follower', behindMillis: state().behindMillis })
          : refuse()
      // Reads show the state of this instant, or of a later one.
      const completeAt = clock.monotonic() - (state().behindMillis ?? 0)
      const response = await edge.dispatch(request, peer)
      if (response.status < 400 && request.method !== 'OPTIONS') {
        response.headers.set('Age', String(Math.ceil((clock.monotonic() - completeAt) / 1000)))
        response.headers.append('Access-Control-Expose-Headers', 'Age')
      }
      return response
    },
  }
}
