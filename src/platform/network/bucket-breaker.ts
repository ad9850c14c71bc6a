/**
 * The circuit breaker of a bucket. It keeps a bucket that stalls from taking the rest of the server with it: the number
 * of concurrent requests is limited, and after several failures in a row every request fails at once for a while,
 * instead of waiting for its timeout.
 */
import { NoPlace, Places } from '../../base/places.ts'
import type { Clock } from '../running/clock.ts'
import type { Log } from '../running/log.ts'
import { clientHere } from '../running/request-scope.ts'
import { BucketRefusal, BucketUnavailable } from './bucket-faults.ts'
import type { Admission } from './bucket.ts'

/** The runtime has 256 connections for all requests to other services; the bucket gets a part of them. */
const MAX_AT_ONCE = 64
const MAX_WAITING = 4096
/** After this many failures in a row the bucket counts as lost. */
const MAX_FAILURES_IN_A_ROW = 8
/** While the bucket is lost, one request tries it again after this time. */
const REST_MILLIS = 5000
const RETRY_AFTER_SECS = 10

export class BucketBreaker implements Admission {
  readonly #places = new Places({ size: MAX_AT_ONCE, maxWaiting: MAX_WAITING })
  #failures = 0
  /** On the monotonic clock. */
  #restsUntil = -Infinity
  #lastFault: unknown = null

  constructor(
    readonly ctx: { clock: Pick<Clock, 'monotonic'>; log: Log },
    readonly url: string,
  ) {}

  /** Throws `BucketUnavailable` if the bucket counts as lost, or too many requests wait for it. */
  async attempt<T>(request: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    this.#refuseWhileLost()
    try {
      return await this.#places.run(clientHere(), () => this.#try(request, signal))
    } catch (error) {
      if (error instanceof NoPlace) throw new BucketUnavailable(RETRY_AFTER_SECS, this.url, error)
      throw error
    }
  }

  async #try<T>(request: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    signal?.throwIfAborted()
    // The bucket may have been lost while this request waited for its turn.
    this.#refuseWhileLost()
    // One request tries again; the others keep failing until it has succeeded.
    if (this.#failures >= MAX_FAILURES_IN_A_ROW) this.#rest()
    try {
      const answer = await request()
      this.#noteAnswer()
      return answer
    } catch (error) {
      // A request that the client gave up says nothing about the bucket.
      if (signal?.aborted === true) throw error
      if (error instanceof BucketRefusal && !error.isPassing && error.status !== 401 && error.status !== 403)
        this.#noteAnswer()
      else this.#noteFailure(error)
      throw error
    }
  }

  #refuseWhileLost(): void {
    if (this.ctx.clock.monotonic() < this.#restsUntil)
      throw new BucketUnavailable(RETRY_AFTER_SECS, this.url, this.#lastFault)
  }

  #noteAnswer(): void {
    if (this.#failures >= MAX_FAILURES_IN_A_ROW)
      this.ctx.log.info('the blob bucket is available again', { url: this.url })
    this.#failures = 0
    this.#restsUntil = -Infinity
  }

  #noteFailure(error: unknown): void {
    this.#lastFault = error
    if (++this.#failures === MAX_FAILURES_IN_A_ROW)
      this.ctx.log.error('the blob bucket is unavailable', { url: this.url, error })
    if (this.#failures >= MAX_FAILURES_IN_A_ROW) this.#rest()
  }

  #rest(): void {
    this.#restsUntil = this.ctx.clock.monotonic() + REST_MILLIS
  }
}
