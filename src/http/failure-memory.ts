/**
 * The last failed and refused requests, which operators look up by the id that a user quotes. An entry has the endpoint
 * and the outcome: no address, parameter, name or text.
 */
import { perContext, type Context } from '../platform/context.ts'
import { LogRateLimiter } from '../platform/running/log-rate-limiter.ts'
import type { Millis } from '../protocol/identifiers.ts'
import type { Refusal } from './errors.ts'
import type { RequestExchange } from './exchange.ts'

export interface FailedRequest {
  id: string
  at: Millis
  method: string
  /** The name of the endpoint: an NSID, or a path with names in place of values. */
  route: string
  status: number
  /** The name of the refusal. */
  error: string
}

/** Refusals that clients recover from by themselves: they refresh a token, or use another nonce. */
const routine: ReadonlySet<string> = new Set(['ExpiredToken', 'use_dpop_nonce'])

/** Such a refusal gets no id: its bytes and headers are the same, whatever is wrong with the credential. */
const UNAUTHENTICATED = 401

/**
 * Whether a status says that this server has failed. A stranger can cause the others: by methods that do not exist, and
 * by services and names that do not answer.
 */
export const isFailure = (status: number): boolean => failures.includes(status)
export const failures: readonly number[] = [500, 503]

/** A flood of refusals must not push out all others: in a minute, at most this share of the kept number is added. */
const MINUTE_SHARE = 0.2
const MAX_PER_CLIENT = 10

/** A ring of the newest requests. */
class Ring {
  readonly #kept: FailedRequest[] = []
  /** Where the next one goes once the ring is full. */
  #next = 0

  constructor(readonly size: number) {}

  add(request: FailedRequest): void {
    this.#kept[this.#next] = request
    this.#next = (this.#next + 1) % this.size
  }

  /** Newest first. */
  all(): FailedRequest[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse()
  }
}

class FailureMemory {
  /** Kept apart, so that refusals, which strangers can cause, evict no failure of the server. */
  readonly #faults: Ring
  readonly #refusals: Ring
  readonly #limiter: LogRateLimiter
  #unsaved: FailedRequest[] = []

  constructor(
    { clock, config, db }: Context,
    readonly size = config.console.keptFailures,
    readonly isShared = db.cluster !== null,
  ) {
    this.#faults = new Ring(size)
    this.#refusals = new Ring(size)
    this.#limiter = new LogRateLimiter(clock, {
      total: Math.ceil(size * MINUTE_SHARE),
      perKey: MAX_PER_CLIENT,
    })
  }

  note(exchange: RequestExchange, { status, name }: Refusal): string | null {
    if (this.size === 0 || status === UNAUTHENTICATED || routine.has(name)) return null
    const { ctx, request, route, client } = exchange
    let id: string | null = null
    const keep = () => {
      id = exchange.requestId
      const failed = { id, at: ctx.clock.now(), method: request.method, route, status, error: name }
      const ring = isFailure(status) ? this.#faults : this.#refusals
      ring.add(failed)
      if (this.isShared && this.#unsaved.push(failed) > this.size) this.#unsaved.shift()
    }
    if (status === 500) keep()
    else this.#limiter.within(client.address, keep)
    return id
  }

  all(): FailedRequest[] {
    return [...this.#faults.all(), ...this.#refusals.all()]
  }

  takeUnsaved(): FailedRequest[] {
    const unsaved = this.#unsaved
    this.#unsaved = []
    return unsaved
  }
}

const memoryOf = perContext((ctx) => new FailureMemory(ctx))

/** Keep what failed. Returns the id under which operators find it; null if it is not kept. */
export const noteFailure = (exchange: RequestExchange, refusal: Refusal): string | null =>
  memoryOf(exchange.ctx).note(exchange, refusal)

/** The failed requests that this process keeps. */
export const failuresHere = (ctx: Context): FailedRequest[] => memoryOf(ctx).all()

/** What this node of a cluster has kept since the last call. */
export const takeUnsavedFailures = (ctx: Context): FailedRequest[] => memoryOf(ctx).takeUnsaved()
